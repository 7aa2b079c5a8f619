# SPDX-License-Identifier: Apache-2.0
"""Readings from counts are those of the rounded ratios themselves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from splatcert.conformal.calibrate import threshold_of, view_score
from splatcert.conformal.pooled import pooled_threshold
from splatcert.conformal.splits import draw_splits
from splatcert_bench.statistics.readings import (
    cumulative,
    native_coverage,
    pooled_coverage,
    view_coverage,
)
from splatcert_bench.studies.counts import EDGES, count_ratios

TENTH = Fraction(1, 10)


@pytest.fixture(scope="module")
def ratios():
    rng = np.random.default_rng(3)
    return rng.lognormal(0, 0.5, (20, 1)) * rng.lognormal(0, 1, (20, 60))


def rounded(ratios):
    return EDGES[np.searchsorted(EDGES, ratios)]


def counted(ratios):
    return np.array([count_ratios(view) for view in ratios])


def test_pooling_counts_is_pooling_the_rounded_ratios(ratios):
    splits = draw_splits(20, 11, 5)
    found = pooled_coverage(cumulative(counted(ratios)), TENTH, splits)
    up = rounded(ratios)
    for split, inside in zip(splits, found.inside, strict=True):
        threshold = pooled_threshold(list(up[split]), [np.ones(60)] * 11, TENTH)
        np.testing.assert_array_equal(inside, (up <= threshold).sum(axis=1))


def test_view_cp_on_counts_is_view_cp_on_the_rounded_ratios(ratios):
    splits = draw_splits(20, 11, 5)
    found = view_coverage(cumulative(counted(ratios)), TENTH, TENTH, splits)
    up = rounded(ratios)
    scores = np.array([view_score(view, np.ones(60), TENTH) for view in up])
    shares = []
    for split, inside in zip(splits, found.inside, strict=True):
        threshold = threshold_of(scores[split], TENTH)
        np.testing.assert_array_equal(inside, (up <= threshold).sum(axis=1))
        shares.append(np.mean(scores[~split] <= threshold))
    assert found.view_coverage == pytest.approx(np.mean(shares))


def test_dividing_by_a_view_factor_never_makes_a_ratio_smaller(ratios):
    factors = np.random.default_rng(5).lognormal(0, 0.4, 20)
    moved = cumulative(counted(ratios), factors)
    exact = cumulative(counted(ratios / factors[:, None]))
    assert (moved <= exact).all()
    assert (moved[:, 2:] >= exact[:, :-2]).all()
    np.testing.assert_array_equal(moved[:, -1], 60)


def test_equal_pixel_coverage_and_unequal_view_coverage():
    """Twenty views of ten pixels: each misses one, or every second one misses two."""
    splits = np.zeros((1, 20), dtype=bool)
    splits[0, :10] = True
    even = native_coverage(np.full(20, 9), np.full(20, 10), TENTH, splits)
    uneven = native_coverage(np.array([10, 8] * 10), np.full(20, 10), TENTH, splits)
    assert (even.pixel_coverage, even.view_coverage) == (0.9, 1.0)
    assert (uneven.pixel_coverage, uneven.view_coverage) == (0.9, 0.5)
    assert sorted(set(uneven.fractions)) == [0.8, 1.0]
    assert uneven.successes.sum() == 5
