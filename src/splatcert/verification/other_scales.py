# SPDX-License-Identifier: Apache-2.0
"""Checks of scales other than the paper's: the factors follow from what is stored."""

from __future__ import annotations

from typing import get_args

import numpy as np

from splatcert.certificate.store import Stored
from splatcert.difficulty.guided.guide import ShippedGuide, shipped_guide
from splatcert.difficulty.guided.rule import GuidedRule
from splatcert.difficulty.views_file import SceneViews
from splatcert.verification.checks import NotCheckable, check, close


def check_other_scale(stored: Stored) -> str:
    """Factors of a guided scale follow from its rule, others are the mean of their scale."""
    record, views = stored.record, stored.views
    name, held_out = record.scale.name, stored.views.held_out
    check(record.center == "render" or name == "guided", "this scale does not correct pictures")
    check(record.scale.shape == (0 if name == "constant" else 1), "the shape is not the scale's")
    if name == "guided":
        known = _guided_factors(stored, views)
    else:
        means = np.ones(len(held_out)) if name == "constant" else held_out.field_means
        known = dict(zip(held_out.names, means.tolist(), strict=True))
    for view in (*record.calibration, *record.unlabelled):
        check(
            close(view.factor, known[view.name]),
            f"the factor of {view.name} does not follow from its scale",
        )
    return f"scale {name}: every factor follows from the mean of its view's scale"


def _guided_factors(stored: Stored, views: SceneViews) -> dict[str, float]:
    record = stored.record
    check(record.scale.needs_photos, "a guided scale requires the training photos")
    cameras = [view.camera for view in record.training]
    rule = GuidedRule.of(record.scale.parameters, cameras)
    oracle = views.oracle("training", rule.guide.beta, 1)
    again = GuidedRule.freeze(rule.guide, cameras, views.training.field_means, oracle)
    check(
        rule.needed.shape == again.needed.shape
        and bool(np.allclose(rule.needed, again.needed, rtol=0, atol=1e-9)),
        "what training views needed does not follow from their numbers",
    )
    batch = {view.name: view.camera for view in (*record.calibration, *record.unlabelled)}
    table = views.held_out
    factors = rule.factors(table.field_means, [batch[name] for name in table.names])
    return dict(zip(table.names, factors.tolist(), strict=True))


def guide_origin(stored: Stored) -> str:
    """Who learned the guide: one that has seen the calibration labels breaks the promise."""
    guide = GuidedRule.of(stored.record.scale.parameters, ()).guide
    for name in get_args(ShippedGuide):
        if guide.sha256 == shipped_guide(name).sha256:
            return f"{name}, which comes with splatcert (hash {guide.sha256[:12]})"
    raise NotCheckable(f"unknown origin (hash {guide.sha256[:12]}): it is not splatcert's")
