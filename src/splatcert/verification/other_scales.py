# SPDX-License-Identifier: Apache-2.0
"""Checks of scales other than the paper's: the factors follow from what is stored."""

from __future__ import annotations

from typing import get_args

import numpy as np

from splatcert.certificate.store import Stored
from splatcert.difficulty.guided.guide import ShippedGuide, shipped_guide
from splatcert.difficulty.guided.rule import GuidedRule
from splatcert.verification.checks import NotCheckable, check, close


def check_other_scale(stored: Stored) -> str:
    """Factors of a guided scale follow from its rule, others are the mean of their scale."""
    record, held_out = stored.record, stored.views.held_out
    name = record.scale.name
    check(record.center == "render" or name == "guided", "this scale does not correct pictures")
    check(record.scale.shape == (0 if name == "constant" else 1), "the shape is not the scale's")
    means = np.ones(len(held_out)) if name == "constant" else held_out.field_means
    if name == "guided":
        check(record.scale.needs_photos, "a guided scale requires the training photos")
        means = GuidedRule.of(record.scale.parameters).factors(means)
    known = dict(zip(held_out.names, means.tolist(), strict=True))
    for view in (*record.calibration, *record.unlabelled):
        check(
            close(view.factor, known[view.name]),
            f"the factor of {view.name} does not follow from its scale",
        )
    return f"scale {name}: every factor follows from the mean of its view's scale"


def guide_origin(stored: Stored) -> str:
    """Who learned the guide: one that has seen the calibration labels breaks the promise."""
    guide = GuidedRule.of(stored.record.scale.parameters).guide
    for name in get_args(ShippedGuide):
        if guide.sha256 == shipped_guide(name).sha256:
            return f"{name}, which comes with splatcert (hash {guide.sha256[:12]})"
    raise NotCheckable(f"unknown origin (hash {guide.sha256[:12]}): it is not splatcert's")
