# SPDX-License-Identifier: Apache-2.0
"""The guarantee: exact ranks, view scores, thresholds, boxes. NumPy only."""

from splatcert.conformal.boxes import Boxes
from splatcert.conformal.calibrate import (
    CalibrationTooSmall,
    state_calibration,
    state_guarantee,
    threshold,
    view_score,
    view_scores,
)
from splatcert.conformal.exchangeability import PermutationTest, permutation_test
from splatcert.conformal.levels import Level, parse_level
from splatcert.conformal.maps import Coverage, measure_coverage, rgb_residual
from splatcert.conformal.pooled import native_multiplier, pooled_threshold
from splatcert.conformal.ranks import outer_rank, views_needed
from splatcert.conformal.risk_control import risk_control_threshold
from splatcert.conformal.view_conformal import ViewConformal

__all__ = [
    "Boxes",
    "CalibrationTooSmall",
    "Coverage",
    "Level",
    "PermutationTest",
    "ViewConformal",
    "measure_coverage",
    "native_multiplier",
    "outer_rank",
    "parse_level",
    "permutation_test",
    "pooled_threshold",
    "rgb_residual",
    "risk_control_threshold",
    "state_calibration",
    "state_guarantee",
    "threshold",
    "view_score",
    "view_scores",
    "views_needed",
]
