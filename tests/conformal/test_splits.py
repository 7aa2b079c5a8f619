# SPDX-License-Identifier: Apache-2.0
"""Repeated splits: drawn alike everywhere, evaluated without pixels."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatcert.conformal import ViewConformal, outer_rank, threshold, view_score
from splatcert.conformal.splits import SplitError, calibration_size, draw_splits, estimate, saving
from splatcert.difficulty.factor import shape

ALPHA = Fraction(1, 10)


@pytest.mark.parametrize(
    "views, size", [(32, 11), (38, 12), (29, 11), (16, 11), (39, 13), (100, 33), (5, 11)]
)
def test_calibration_sizes_are_those_of_the_manifest(views, size):
    assert calibration_size(views) == size


def test_splits_are_of_one_size_different_and_reproducible():
    splits = draw_splits(32, 11)
    assert splits.shape == (200, 32) and (splits.sum(axis=1) == 11).all()
    assert len({split.tobytes() for split in splits}) == 200
    assert np.array_equal(splits, draw_splits(32, 11))
    assert not np.array_equal(splits, draw_splits(32, 11, seed=1))
    assert np.array_equal(splits[:50], draw_splits(32, 11, count=50))


def test_every_view_calibrates_about_equally_often():
    assert draw_splits(20, 5, count=4000).mean(axis=0) == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize("views, calibration", [(11, 11), (5, 11), (3, 0), (0, 1)])
def test_a_split_without_test_or_calibration_views_is_refused(views, calibration):
    with pytest.raises(SplitError, match=r"leave no test view|at least"):
        draw_splits(views, calibration)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["1/10", "1/3", "1/2"]), st.booleans())
def test_an_estimate_is_what_the_definition_gives_split_by_split(seed, alpha, tied):
    rng = np.random.default_rng(seed)
    oracle = rng.integers(1, 6, 25) / 4 if tied else rng.lognormal(0, 0.5, 25)
    factor = np.ones(25) if tied else rng.lognormal(0, 0.3, 25)
    splits = draw_splits(25, 11, count=8, seed=seed)
    found = estimate(oracle, factor, alpha, splits)
    for split, q, coverage, width in zip(
        splits, found.thresholds, found.coverages, found.widths, strict=True
    ):
        scores = oracle / factor
        assert q == threshold(scores[split], alpha)
        assert coverage == (scores[~split] <= q).mean()
        assert width == pytest.approx(q * factor[~split].mean(), rel=1e-13)
    assert found.coverage == found.coverages.mean()
    assert found.mean_width == found.widths.mean()
    assert np.isfinite(found.thresholds).all()


def test_an_estimate_from_view_numbers_equals_one_from_pixels():
    """What the identity R_v(a b~) = a*_v / a_v buys: no pixel is read again."""
    rng = np.random.default_rng(15)
    residuals = rng.exponential(0.1, (20, 6, 7))
    shapes = [shape(field, Fraction(1, 2)) for field in rng.uniform(0.1, 1, (20, 6, 7))]
    factors = rng.lognormal(0, 0.3, 20)
    oracle = [view_score(r, b, ALPHA) for r, b in zip(residuals, shapes, strict=True)]
    splits = draw_splits(20, 11, count=5)
    found = estimate(oracle, factors, ALPHA, splits)
    scales = [a * b for a, b in zip(factors, shapes, strict=True)]
    for split, q, coverage, width in zip(
        splits, found.thresholds, found.coverages, found.widths, strict=True
    ):
        chosen, rest = np.flatnonzero(split), np.flatnonzero(~split)
        conformal = ViewConformal(ALPHA, ALPHA).conformalize(
            residuals[chosen], [scales[i] for i in chosen]
        )
        measured = conformal.evaluate(residuals[rest], [scales[i] for i in rest])
        assert conformal.threshold == pytest.approx(q, rel=1e-12)
        assert measured.view_coverage == coverage
        assert measured.mean_half_width == pytest.approx(width, rel=1e-12)


def test_the_mean_over_splits_is_near_its_expectation():
    """k / (m + 1) for scores without ties, whatever the factor."""
    rng = np.random.default_rng(16)
    found = estimate(rng.random(40), rng.random(40) + 0.5, ALPHA, draw_splits(40, 13, 4000))
    assert found.coverage == pytest.approx(outer_rank(13, ALPHA) / 14, abs=0.01)


def test_infinite_thresholds_are_reported_not_hidden():
    splits = draw_splits(12, 8, count=6)
    found = estimate(np.ones(12), np.ones(12), ALPHA, splits)
    assert np.isinf(found.thresholds).all()
    assert (found.coverage, found.mean_width) == (1, math.inf)
    splits[0] = np.arange(12) < 9
    mixed = estimate(np.ones(12), np.ones(12), ALPHA, splits)
    assert np.isinf(mixed.thresholds).sum() == 5
    assert (mixed.widths[0], mixed.mean_width) == (1, math.inf)


def test_saving_is_relative_to_the_constant_scale():
    assert saving(0.78, 1.0) == pytest.approx(0.22)
    assert saving(1.0, 1.0) == 0
    assert saving(math.inf, 1.0) == -math.inf
    assert math.isnan(saving(math.inf, math.inf)) and math.isnan(saving(0.0, 0.0))


@pytest.mark.parametrize(
    "oracle, factor, splits, message",
    [
        (np.ones(11), np.ones(12), draw_splits(12, 9), "must agree"),
        (np.ones(12), np.ones(12), draw_splits(13, 9), "must agree"),
        (np.full(12, np.nan), np.ones(12), draw_splits(12, 9), "known for every view"),
        (np.ones(12), np.zeros(12), draw_splits(12, 9), "positive and finite"),
        (np.ones(12), np.ones(12), np.ones((2, 12), dtype=bool), "leave a test view"),
        (np.ones(12), np.ones(12), np.ones((2, 12)), "must be bool"),
    ],
)
def test_numbers_that_do_not_fit_together_are_refused(oracle, factor, splits, message):
    with pytest.raises(SplitError, match=message):
        estimate(oracle, factor, ALPHA, splits)
