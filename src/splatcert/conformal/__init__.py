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
from splatcert.conformal.family_conformal import (
    FamilyConformal,
    PathFamilyConformal,
    family_scores,
    units_from,
)
from splatcert.conformal.levels import Level, parse_level
from splatcert.conformal.maps import Coverage, Quantity, measure_coverage, rgb_residual
from splatcert.conformal.path_conformal import (
    PathConformal,
    path_threshold,
    stretch_score,
    stretches_of,
)
from splatcert.conformal.permutation import PermutationTest, permutation_test
from splatcert.conformal.pooled import native_multiplier, pooled_threshold
from splatcert.conformal.ranks import outer_rank, views_needed
from splatcert.conformal.risk_control import (
    family_risk_control,
    path_risk_control,
    risk_control_threshold,
)
from splatcert.conformal.view_conformal import ViewConformal

__all__ = [
    "Boxes",
    "CalibrationTooSmall",
    "Coverage",
    "FamilyConformal",
    "Level",
    "PathConformal",
    "PathFamilyConformal",
    "PermutationTest",
    "Quantity",
    "ViewConformal",
    "family_risk_control",
    "family_scores",
    "measure_coverage",
    "native_multiplier",
    "outer_rank",
    "parse_level",
    "path_risk_control",
    "path_threshold",
    "permutation_test",
    "pooled_threshold",
    "rgb_residual",
    "risk_control_threshold",
    "state_calibration",
    "state_guarantee",
    "stretch_score",
    "stretches_of",
    "threshold",
    "units_from",
    "view_score",
    "view_scores",
    "views_needed",
]
