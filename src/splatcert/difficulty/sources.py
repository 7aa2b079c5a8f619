# SPDX-License-Identifier: Apache-2.0
"""Source scenes for learning: features, targets, and groups of views to leave out."""

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
"""View level alpha at which the widths of shrinkages are compared."""
FOLDS = 5
"""Interleaved folds of a single source scene, used in place of scenes left out."""


class LearnError(InputError):
    """Source scenes that a predictor cannot be learned from."""


@dataclass(frozen=True, eq=False)
class Source:
    """One source scene for learning."""

    views: SceneViews
    features: Array
    """Descriptors in the scene's own units, [n, 24]."""
    oracle: Array
    """a* at each shape of LAMBDA_GRID, [n, 5]."""
    prior: Array
    """Log factor predicted by zero weights, up to a constant of the scene, [n]."""
    splits: NDArray[np.bool_]
    """[count, n]."""
    dropped: int = 0
    """Number of further views, which have no target."""

    def target(self, shape: int) -> Array:
        """Log a* at shape `shape` of the grid, centred, [n]."""
        log_oracle = np.log(self.oracle[:, shape])
        return log_oracle - log_oracle.mean()

    def departure(self, shape: int) -> Array:
        """The part of the target that the weights must explain: without the prior, centred, [n]."""
        return self.target(shape) - (self.prior - self.prior.mean())

    def log_factor(self, weights: Array) -> Array:
        """Predictions of all views, up to a constant, [n]."""
        return self.features @ weights + self.prior

    def width(self, shape: int, factor: Array) -> float:
        """Mean half-width at this shape with these view factors, over random splits."""
        return estimate(self.oracle[:, shape], factor, ALPHA, self.splits).mean_width

    def saving(self, shape: int, factor: Array) -> float:
        """Saving of this scale compared with the constant one."""
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
    """The scenes, if all are of different captures, whatever their folders are called."""
    if not scenes:
        raise LearnError("a view predictor requires at least one source scene, got none")
    known: dict[str, SceneViews] = {}
    for scene in scenes:
        identity = _identity(scene)
        if twin := next((known[mark] for mark in identity if mark in known), None):
            names = sorted({twin.scene, scene.scene})
            again = "" if len(names) == 1 else f" (as {' and '.join(names)})"
            raise LearnError(
                f"scene {names[0]} was given twice{again}: leaving out one leaves the other in.\n"
                "  Give every capture once."
            )
        known |= dict.fromkeys(identity, scene)
    return scenes


def _identity(scene: SceneViews) -> list[str]:
    """Hashes that identify a capture: those of its splats and its photos."""
    marks = {name: text.partition(" ")[0] for name, text in scene.hashes.items()}
    return sorted(set(marks.values())) or [f"name {scene.scene}"]


def source_scene(scene: SceneViews, config: LearnConfig) -> Source:
    """The views of a scene that have a target, in the scene's own units.

    Views without a photo, views that are masked completely and views that are rendered
    without any error have none.
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
    """Power of the residual field's magnitude that predictions start from: 1, or 0 for flat."""
    return 1.0 if config.prior == "magnitude" else 0.0
