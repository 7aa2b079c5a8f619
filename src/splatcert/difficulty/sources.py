# SPDX-License-Identifier: Apache-2.0
"""Source scenes as learning sees them: features, targets, and what is left out together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from splatcert.config import LearnConfig
from splatcert.conformal.levels import parse_level
from splatcert.conformal.splits import calibration_size, draw_splits, estimate, saving
from splatcert.difficulty.descriptor import check_schema
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.difficulty.predictor import FeatureUnits
from splatcert.difficulty.views_file import SceneViews
from splatcert.errors import InputError

if TYPE_CHECKING:
    pass

Array = NDArray[np.float64]
ALPHA = Fraction(1, 10)
"""View level at which the width of shrinkages is compared."""
FOLDS = 5
"""Of a single source scene, interleaved, in place of scenes left out."""


class LearnError(InputError):
    """Source scenes that a predictor cannot be learned from."""


@dataclass(frozen=True, eq=False)
class Source:
    """One source scene as learning sees it."""

    views: SceneViews
    features: Array
    """Descriptors in the scene's own units, [n, 24]."""
    oracle: Array
    """a* at each shape of LAMBDA_GRID, [n, 5]."""
    prior: Array
    """Log factor that weights of zero stand for, up to a constant of the scene, [n]."""
    splits: NDArray[np.bool_]
    """[count, n]."""
    dropped: int = 0
    """Further views, without a target."""

    def target(self, shape: int) -> Array:
        """Log a* at shape `shape` of the grid, centred, [n]."""
        log_oracle = np.log(self.oracle[:, shape])
        return log_oracle - log_oracle.mean()

    def departure(self, shape: int) -> Array:
        """What the weights have to explain: the target without the prior, centred, [n]."""
        return self.target(shape) - (self.prior - self.prior.mean())

    def log_factor(self, weights: Array) -> Array:
        """Predictions of all views, up to a constant, [n]."""
        return self.features @ weights + self.prior

    def width(self, shape: int, factor: Array) -> float:
        """Mean half-width at that shape with these view factors, over random splits."""
        return estimate(self.oracle[:, shape], factor, ALPHA, self.splits).mean_width

    def saving(self, shape: int, factor: Array) -> float:
        """What that scale saves against the constant one."""
        return saving(self.width(shape, factor), self.width(0, np.ones(len(factor))))


@dataclass(frozen=True)
class LeftOutGroup:
    """Views that are left out together: a scene, or a fold of the only one."""

    source: int
    rows: slice


def left_out_parts(sources: Sequence[Source]) -> list[LeftOutGroup]:
    """Every scene, or the interleaved folds of the only one."""
    if len(sources) > 1:
        return [LeftOutGroup(k, slice(None)) for k in range(len(sources))]
    return [LeftOutGroup(0, slice(fold, None, FOLDS)) for fold in range(FOLDS)]


def distinct(scenes: Sequence[SceneViews]) -> Sequence[SceneViews]:
    """Scenes of different captures; folders may be called as they like."""
    if not scenes:
        raise LearnError("a view predictor needs at least one source scene, got none")
    known: dict[str, SceneViews] = {}
    for scene in scenes:
        identity = _identity(scene)
        if twin := next((known[mark] for mark in identity if mark in known), None):
            names = sorted({twin.scene, scene.scene})
            again = "" if len(names) == 1 else f" (as {' and '.join(names)})"
            raise LearnError(
                f"scene {names[0]} was given twice{again}: leaving one out would leave it in.\n"
                "  Give every capture once."
            )
        known |= dict.fromkeys(identity, scene)
    return scenes


def _identity(scene: SceneViews) -> list[str]:
    """What no other capture shares: the hash of its splats and those of its photos."""
    marks = {name: text.partition(" ")[0] for name, text in scene.hashes.items()}
    return sorted(set(marks.values())) or [f"name {scene.scene}"]


def source_scene(scene: SceneViews, config: LearnConfig) -> Source:
    """A scene's views in its own units, those with a target.

    There is none for a view without a photo, one that is masked altogether, and one that
    is rendered without any error.
    """
    check_schema(scene.schema, f"the views of scene {scene.scene}")
    beta = parse_level(config.beta, "beta")
    table = scene.views(config.views)
    oracle = np.stack([scene.oracle(config.views, beta, value) for value in LAMBDA_GRID], axis=1)
    usable = np.isfinite(oracle).all(axis=1) & (oracle > 0).all(axis=1)
    count = int(usable.sum())
    calibration = calibration_size(count)
    if count <= calibration:
        unusable = len(table) - count
        without = f" with a target and {unusable} without" if unusable else ""
        raise LearnError(
            f"scene {scene.scene} has {count} {config.views} views{without}; widths are compared "
            f"on splits of at least {calibration + 1}.\n  Leave it out, or use its other views."
        )
    units = FeatureUnits.from_descriptors(scene.training.descriptors)
    splits = draw_splits(count, calibration, config.splits, config.seed)
    return Source(
        views=scene,
        features=units.standardise(table.descriptors[usable]),
        oracle=oracle[usable],
        prior=magnitude_of(config) * units.log_magnitude(table.descriptors[usable]),
        splits=splits,
        dropped=len(table) - count,
    )


def magnitude_of(config: LearnConfig) -> float:
    """How far predictions start from the magnitude of the residual field: 1, or 0 for flat."""
    return 1.0 if config.prior == "magnitude" else 0.0
