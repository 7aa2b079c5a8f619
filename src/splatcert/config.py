# SPDX-License-Identifier: Apache-2.0
"""Every knob, one frozen dataclass per stage. Standard library only, so help is instant.

A field's docstring is its help text on the command line.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import inf
from typing import Literal

from splatcert.errors import InputError

REFERENCE_ITERATIONS = 30_000
"""Length of the published schedules, to which all of ours are relative."""


class ConfigError(InputError):
    """A setting out of its range."""


LARGEST_COUNT = 1_000_000
"""Of splits and the like: beyond it is a slip of the pen."""
LARGEST_SEED = 2**32 - 1
LARGEST_START, LARGEST_FOLDS = 10_000_000, 100


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _require_draws(splits: int, seed: int) -> None:
    _require(1 <= splits <= LARGEST_COUNT, f"splits must be 1 to {LARGEST_COUNT}, got {splits}")
    _require_seed(seed)


def _require_seed(seed: int) -> None:
    _require(0 <= seed <= LARGEST_SEED, f"seed must be 0 to {LARGEST_SEED}, got {seed}")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How splats are fitted to photographs."""

    iterations: int = 7_000
    """Steps, one photograph each. Schedules published for 30,000 are scaled to it."""
    density: Literal["fastgs", "vanilla"] = "fastgs"
    """Rule that adds and removes Gaussians."""
    max_gaussians: int = 1_000_000
    """Hard limit; densification stops short of it."""
    sh_degree: int = 3
    """Degree of the colour harmonics, reached one degree at a time."""
    seed: int = 0
    """Of the initial jitter, the order of photographs and the splits."""
    ssim_weight: float = 0.2
    """Loss = (1 - w) L1 + w (1 - SSIM)."""
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Colour behind the splats, RGB in [0, 1]."""
    coarse_to_fine: bool = False
    """Start at a quarter of the resolution, then half, for the first third of the steps."""
    antialiased: bool = False
    """Compensate opacities for the low-pass filter, as Mip-Splatting does."""
    random_points: int = 50_000
    """Gaussians to start from where the scene has no sparse points."""

    def __post_init__(self) -> None:
        _require(self.iterations >= 1, f"iterations must be at least 1, got {self.iterations}")
        _require(
            self.density in ("fastgs", "vanilla"),
            f"density must be fastgs or vanilla, got {self.density!r}",
        )
        _require(
            self.max_gaussians >= 1, f"max_gaussians must be positive, got {self.max_gaussians}"
        )
        _require(0 <= self.sh_degree <= 4, f"sh_degree must be 0 to 4, got {self.sh_degree}")
        _require(0 <= self.ssim_weight <= 1, f"ssim_weight must be 0 to 1, got {self.ssim_weight}")
        _require(
            all(0 <= c <= 1 for c in self.background),
            f"background must lie in [0, 1], got {self.background}",
        )
        _require(
            1 <= self.random_points <= LARGEST_START,
            f"random_points must be 1 to {LARGEST_START}, got {self.random_points}",
        )
        _require_seed(self.seed)

    def scaled(self, published: int) -> int:
        """A step of the published 30,000-step schedule, in ours."""
        return max(1, round(published * self.iterations / REFERENCE_ITERATIONS))


@dataclass(frozen=True, kw_only=True)
class FieldConfig:
    """How the residual field is fitted to training residuals (eq:spatial-fit)."""

    degree: int = 2
    """Degree of the field's directional basis."""
    ridge: float = 1.0
    """Pull towards the prior, relative to the mean diagonal of the normal matrix."""
    prior_quantile: float = 0.95
    """The prior is a constant field at this quantile of the training residuals."""
    max_steps: int = 30
    """Conjugate-gradient steps before the fit is reported as unconverged."""
    tolerance: float = 1e-3
    """Relative residual at which the fit has converged."""
    progress: float = 1e-3
    """The fit also ends after two steps in a row that each lower its objective by less than
    this share of what all steps have; 0 goes on to the tolerance."""
    folds: int = 5
    """Interleaved folds of training views, each described by what the others saw."""
    cache_mib: int = 1_500
    """Memory for views kept prepared between conjugate-gradient steps."""

    def __post_init__(self) -> None:
        _require(0 <= self.degree <= 3, f"field degree must be 0 to 3, got {self.degree}")
        _require(0 < self.ridge < inf, f"ridge must be positive and finite, got {self.ridge}")
        _require(
            0 < self.prior_quantile <= 1,
            f"prior_quantile must lie in (0, 1], got {self.prior_quantile}",
        )
        _require(self.max_steps >= 1, f"max_steps must be at least 1, got {self.max_steps}")
        _require(
            0 < self.tolerance < inf, f"tolerance must be positive and finite, got {self.tolerance}"
        )
        _require(0 <= self.progress < 1, f"progress must lie in [0, 1), got {self.progress}")
        _require(
            2 <= self.folds <= LARGEST_FOLDS,
            f"folds must be 2 to {LARGEST_FOLDS}, got {self.folds}",
        )
        _require(self.cache_mib >= 0, f"cache_mib must be 0 or more, got {self.cache_mib}")


@dataclass(frozen=True, kw_only=True)
class LearnConfig:
    """How a view predictor is learned on source scenes."""

    beta: str = "1/10"
    """Share of a view's pixels that may miss; the target is built for it."""
    views: Literal["training", "held-out"] = "training"
    """Source views to learn from. Held-out labels of a source scene make the predictor
    unfit to certify that scene."""
    prior: Literal["magnitude", "flat"] = "flat"
    """What views are taken to be before anything is learned: all alike, as in the paper, or
    as difficult as the residual field is large in them."""
    penalty: Literal["width", "rank"] = "width"
    """What chooses the ridge penalty on scenes left out: the width of calibrated boxes, or how
    well views are ranked, as in the paper."""
    splits: int = 200
    """Random splits that score a penalty and a pair of shrinkages."""
    seed: int = 0
    """Of the splits."""

    def __post_init__(self) -> None:
        _require(
            self.views in ("training", "held-out"),
            f"views must be training or held-out, got {self.views!r}",
        )
        _require(
            self.prior in ("magnitude", "flat"),
            f"prior must be magnitude or flat, got {self.prior!r}",
        )
        _require(
            self.penalty in ("width", "rank"),
            f"penalty must be width or rank, got {self.penalty!r}",
        )
        _require_draws(self.splits, self.seed)


@dataclass(frozen=True, kw_only=True)
class CertifyConfig:
    """What is certified, and how."""

    alpha: str = "1/10"
    """A new view may fall short of its pixel coverage with at most this probability."""
    beta: str = "1/10"
    """Share of a view's pixels that may lie outside their boxes."""
    unit: Literal["deployed", "batch"] = "deployed"
    """Unit of the view factor: mean one over the training views, so that a camera's box
    never depends on what else is asked, or over the query batch, as in the paper."""
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Colour behind the splats, RGB in [0, 1]."""
    splits: int = 200
    """Random splits of the diagnostic estimate; the guarantee does not depend on them."""
    seed: int = 0
    """Of the diagnostic splits and the permutation test."""
    field: FieldConfig = dataclasses.field(default_factory=FieldConfig)

    def __post_init__(self) -> None:
        _require(
            self.unit in ("deployed", "batch"),
            f"unit must be deployed or batch, got {self.unit!r}",
        )
        _require(
            all(0 <= c <= 1 for c in self.background),
            f"background must lie in [0, 1], got {self.background}",
        )
        _require_draws(self.splits, self.seed)


@dataclass(frozen=True, kw_only=True)
class ReportConfig:
    """What a report shows of the views it is given."""

    views: int = 7
    """Views in the strip, evenly chosen from the easiest to the hardest."""
    photos: bool = False
    """Embed the photographs of these views as well. Think of who will read it."""

    def __post_init__(self) -> None:
        _require(1 <= self.views <= 40, f"a report shows 1 to 40 views, got {self.views}")
