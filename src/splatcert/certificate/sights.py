# SPDX-License-Identifier: Apache-2.0
"""The views of a certificate as the flag sees them, from its record and its per-view numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.content.record import ScaleRecord
from splatcert.certificate.content.view_records import CalibrationRecord, TrainingRecord
from splatcert.difficulty.guided.rule import GuidedRule
from splatcert.difficulty.rule import FactorRule
from splatcert.difficulty.views_file import SceneViews, ViewTable
from splatcert.strangeness.limit import StrangenessLimit
from splatcert.strangeness.measures import Sight, StrangenessError
from splatcert.strangeness.poses import TrainingPoses

Array = NDArray[np.float64]


def rule_of(scale: ScaleRecord) -> FactorRule | None:
    """How the view factor follows from a descriptor; None if the scale has its own rule."""
    return FactorRule.of(scale.parameters, scale.bounds) if scale.name == "paper" else None


def training_factors(scale: ScaleRecord, table: ViewTable) -> Array:
    """a_v of the training views, each described by the other folds, [T]."""
    if (rule := rule_of(scale)) is not None:
        return rule.factors(table.descriptors)
    if scale.name == "guided":
        return GuidedRule.of(scale.parameters).factors(table.field_means)
    return np.ones(len(table)) if scale.shape == 0 else table.field_means


def strangeness_limit(
    scale: ScaleRecord,
    training: Sequence[TrainingRecord],
    calibration: Sequence[CalibrationRecord],
    views: SceneViews,
    extent: float,
) -> StrangenessLimit:
    """The limit that follows from these views."""
    poses = TrainingPoses([view.camera for view in training], extent)
    seen = training_sights(scale, training, views)
    return StrangenessLimit.of(seen, calibration_sights(calibration, views), poses)


def training_sights(
    scale: ScaleRecord, training: Sequence[TrainingRecord], views: SceneViews
) -> list[Sight]:
    """The training views, each described by the other folds."""
    factors = training_factors(scale, views.training)
    return [
        Sight(view.camera, shares, float(factor))
        for view, shares, factor in zip(training, _shares(views.training), factors, strict=True)
    ]


def calibration_sights(calibration: Sequence[CalibrationRecord], views: SceneViews) -> list[Sight]:
    """The calibration views, in the order of the record."""
    shares = _shares(views.held_out)[views.held_out.rows_of(view.name for view in calibration)]
    return [
        Sight(view.camera, row, view.factor) for view, row in zip(calibration, shares, strict=True)
    ]


def _shares(table: ViewTable) -> Array:
    if table.shares is None:
        raise StrangenessError("views.npz has no shares of pixels that training hardly showed")
    return table.shares
