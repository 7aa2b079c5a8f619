# SPDX-License-Identifier: Apache-2.0
"""Every setting, one frozen dataclass per stage. Standard library only, so help is instant.

A field's docstring is its help text on the command line.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import inf
from typing import Literal

from splatcert.errors import InputError

Backend = Literal["cpu", "reference", "gpu", "cuda"]
"""Renderers by name: native code, plain torch, WebGPU, and gsplat."""
REFERENCE_ITERATIONS = 30_000
"""Length of the published schedules, to which ours are scaled."""


class ConfigError(InputError):
    """A setting outside its range."""


LARGEST_COUNT = 1_000_000
"""Largest number of splits; more is most likely a typing error."""
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
    """How to fit splats to photographs."""

    iterations: int = 4_000
    """Number of training steps, one photograph each. Published schedules are scaled to it."""
    recipe: Literal["fast", "published"] = "fast"
    """Learning rates: fast (matched to the number of steps) or published (for 30,000 steps)."""
    density: Literal["fastgs", "vanilla"] = "fastgs"
    """Rule that adds and removes Gaussians."""
    max_gaussians: int = 1_000_000
    """Largest number of Gaussians."""
    sh_degree: int = 3
    """Degree of the spherical harmonics for colour, reached one degree at a time."""
    seed: int = 0
    """Random seed for the initial jitter, the photo order and splitting Gaussians."""
    ssim_weight: float = 0.2
    """Weight w of SSIM in the loss (1 - w) L1 + w (1 - SSIM)."""
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Colour behind the splats, RGB in [0, 1]."""
    coarse_to_fine: bool = False
    """Start at a quarter of the resolution, then half, for the first third of the steps."""
    antialiased: bool = False
    """Compensate opacities for the low-pass filter, as Mip-Splatting does."""
    random_points: int = 50_000
    """Number of initial Gaussians if the scene has no sparse points."""

    def __post_init__(self) -> None:
        _require(self.iterations >= 1, f"iterations must be at least 1, got {self.iterations}")
        _require(
            self.density in ("fastgs", "vanilla"),
            f"density must be fastgs or vanilla, got {self.density!r}",
        )
        _require(
            self.recipe in ("fast", "published"),
            f"recipe must be fast or published, got {self.recipe!r}",
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
        """A step of the published 30,000-step schedule, scaled to ours."""
        return max(1, round(published * self.iterations / REFERENCE_ITERATIONS))


@dataclass(frozen=True, kw_only=True)
class FieldConfig:
    """How to fit the residual field to training residuals (eq:spatial-fit)."""

    degree: int = 2
    """Degree of the field's directional basis."""
    ridge: float = 1.0
    """Strength of the prior, relative to the mean diagonal of the normal matrix."""
    prior_quantile: float = 0.95
    """Quantile of the training residuals that the constant prior field takes."""
    max_steps: int = 30
    """Conjugate-gradient steps before the fit is reported as unconverged."""
    tolerance: float = 1e-3
    """Relative residual at which the fit has converged."""
    progress: float = 1e-3
    """Also stop after two steps that each gain less than this share of the total; 0 for never."""
    folds: int = 5
    """Number of interleaved folds of training views, each described by the other folds."""
    cache_mib: int = 1_500
    """Memory in MiB for views kept between conjugate-gradient steps."""

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
    """How to train a view predictor on source scenes."""

    beta: str = "1/10"
    """Level to train for: largest share of a view's pixels that may lie outside their boxes."""
    views: Literal["training", "held-out"] = "training"
    """Source views to learn from. After held-out, the source scenes cannot be certified."""
    prior: Literal["magnitude", "flat"] = "flat"
    """Initial view difficulty: flat (equal, as in the paper) or the residual field's magnitude."""
    penalty: Literal["width", "rank"] = "width"
    """Criterion for the ridge penalty: width of boxes, or rank of views (as in the paper)."""
    splits: int = 200
    """Number of random splits on which penalties and shrinkages are compared."""
    seed: int = 0
    """Random seed for the splits."""

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
    """What to certify, and how."""

    alpha: str = "1/10"
    """Largest probability that a new view falls short of its pixel coverage."""
    beta: str = "1/10"
    """Largest share of a view's pixels that may lie outside their boxes."""
    unit: Literal["deployed", "batch"] = "deployed"
    """Unit of the view factor: mean one over training views (deployed) or the batch."""
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Colour behind splats passed in memory, RGB in [0, 1]; an opened capture has its own."""
    splits: int = 200
    """Number of random splits for the diagnostic estimate. Does not affect the guarantee."""
    seed: int = 0
    """Random seed for the diagnostic splits and the permutation test."""
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


@dataclass(frozen=True)
class PathPromise:
    """A promise about a path: the length of a stretch, and how many of its views may fall short."""

    stretch: int
    """L, the number of consecutive views of a stretch."""
    gamma: str = "1/5"
    """Largest share of a stretch's views that may fall short; 0 for none."""


@dataclass(frozen=True, kw_only=True)
class ReportConfig:
    """What a report shows."""

    views: int = 7
    """Number of views to show, evenly chosen from easiest to hardest."""
    photos: bool = False
    """Embed the photographs of these views as well; every reader can then see them."""

    def __post_init__(self) -> None:
        _require(1 <= self.views <= 40, f"a report shows 1 to 40 views, got {self.views}")
