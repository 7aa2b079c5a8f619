# SPDX-License-Identifier: Apache-2.0
"""lem:event: a view reaches its coverage at multiplier q if and only if q >= R_v."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_in_fractions import floats, levels, positive, score, succeeds, views

from splatcert.conformal import Boxes, measure_coverage, rgb_residual, view_score

TENTH = Fraction(1, 10)


@given(views(), levels, st.data())
def test_event_is_an_order_statistic_event(view, beta, data):
    """On both sides of every ratio, and at a multiplier of no particular kind."""
    residual, scale = view
    reached = score(residual, scale, beta)
    edges = [r / s for r, s in zip(residual, scale, strict=True)]
    steps = [edge + step for edge in edges for step in (-Fraction(1, 10**9), 0)]
    for q in [*steps, data.draw(positive)]:
        assert succeeds(residual, scale, q, beta) == (q >= reached)


@given(views(), levels)
def test_event_of_the_package_is_the_event_of_the_paper(view, beta):
    """In float64 the equivalence survives: score and count divide by the same division."""
    residual, scale = map(floats, view)
    reached = view_score(residual, scale, beta)
    assert reached == pytest.approx(float(score(*view, beta)), rel=1e-15)
    for q in {*np.divide(residual, scale), reached}:
        for multiplier in (q, np.nextafter(q, -math.inf), np.nextafter(q, math.inf)):
            found = measure_coverage([residual], [scale], float(multiplier), beta)
            assert bool(found.covered_views) == (multiplier >= reached)


@given(st.integers(0, 2**32 - 1), levels)
def test_event_holds_for_the_boxes_that_are_handed_out(seed, beta):
    """At q = R_v enough pixels of the photo lie in their boxes, edges and rounding included."""
    rng = np.random.default_rng(seed)
    photo = (rng.integers(0, 256, (4, 5, 3)) / 255).astype(np.float32)
    center = np.clip(photo + rng.normal(0, 0.1, photo.shape), 0, 1).astype(np.float32)
    scale = rng.choice([rng.uniform(0.01, 1, (4, 5)), np.full((4, 5), rng.uniform(0.01, 1))])
    reached = view_score(rgb_residual(photo, center), scale, beta)
    inside = Boxes.around(center, scale, reached).contains(photo)
    assert Fraction(int(inside.sum()), inside.size) >= 1 - beta


def test_event_would_miss_pixels_if_boxes_were_not_rounded_outwards():
    """Why Boxes widens by a few units in the last place: a whole tie can fall outside."""
    residual, scale = 47 / 255, 0.3
    assert any((step / 255) / scale * scale < step / 255 for step in range(256)), (
        "the product never fell below the residual it came from"
    )
    tied = np.full((3, 3), residual)
    q = view_score(tied, scale, TENTH)
    boxes = Boxes.around(np.zeros((3, 3, 3)), scale, q)
    assert boxes.contains(np.repeat(tied[..., None], 3, axis=2)).all()


def test_event_is_false_of_an_interpolated_quantile():
    """Between the fifth and the sixth of six pixels it covers five, which is not 9 in 10."""
    residual = np.arange(1.0, 7.0)
    interpolated = np.quantile(residual, 0.9)
    assert (residual <= interpolated).mean() < 0.9
    assert (residual <= view_score(residual, 1.0, TENTH)).mean() >= 0.9
