# SPDX-License-Identifier: Apache-2.0
"""Coverage on made exchangeable views, two-sided, over a grid of levels and sizes.

The views are hierarchical, as real ones are: a difficulty for each view, a smooth shape
inside it, noise that neighbouring pixels share. The scale knows some of the difficulty.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from splatcert.conformal import outer_rank, pooled_threshold, threshold, view_scores

ALPHAS = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(1, 3))
BETAS = (Fraction(1, 20), Fraction(1, 10), Fraction(3, 10))
SIZES = (9, 11, 19, 30)
CELLS = [
    (alpha, beta, m)
    for alpha in ALPHAS
    for beta in BETAS
    for m in SIZES
    if outer_rank(m, alpha) <= m
]
TRIALS = 700
FALSE_ALARM = 0.01 / (2 * len(CELLS))
"""Chance that a true claim fails on one side of one cell: one in a hundred over the grid."""


def made_views(rng, count, *, quantised=False):
    """Residuals and scales, [count, 6, 8] each; exchangeable, pixels dependent."""
    difficulty = rng.lognormal(0, 0.6, (count, 1, 1))
    shape = np.exp(rng.normal(0, 0.4, (count, 6, 1)) + rng.normal(0, 0.4, (count, 1, 8)))
    shared = rng.gamma(2, 0.5, (count, 1, 8))
    residual = 0.02 * difficulty * shape * (shared + rng.exponential(1, (count, 6, 8)))
    predicted = difficulty * rng.lognormal(0, 0.3, (count, 1, 1))
    scale = predicted * shape / shape.mean(axis=(1, 2), keepdims=True)
    return (np.round(residual * 255) / 255 if quantised else residual), scale


@cache
def made_scores(m, quantised=False):
    """Scores of TRIALS independent draws of m + 1 views, [trials, m + 1, betas]."""
    rng = np.random.default_rng([20, m])
    residuals, scales = made_views(rng, TRIALS * (m + 1), quantised=quantised)
    if quantised:
        scales = np.ones_like(scales)
    scores = [view_scores(r, s, BETAS) for r, s in zip(residuals, scales, strict=True)]
    return np.array(scores).reshape(TRIALS, m + 1, len(BETAS))


def covered_draws(scores, alpha):
    """In how many draws the last view is covered by the threshold of the others."""
    return sum(draw[-1] <= threshold(draw[:-1], alpha) for draw in scores)


def test_the_grid_is_a_grid():
    assert len(CELLS) == 42


@pytest.mark.parametrize("alpha, beta, m", CELLS, ids=str)
def test_coverage_lies_between_the_two_bounds(alpha, beta, m):
    """1 - alpha <= coverage <= 1 - alpha + 1/(m + 1), up to the binomial error of the test."""
    covered = covered_draws(made_scores(m)[:, :, BETAS.index(beta)], alpha)
    low, high = float(1 - alpha), float(1 - alpha + Fraction(1, m + 1))
    assert binom.cdf(covered, TRIALS, low) > FALSE_ALARM, covered / TRIALS
    assert binom.sf(covered - 1, TRIALS, min(high, 1)) > FALSE_ALARM, covered / TRIALS
    exact = outer_rank(m, alpha) / (m + 1)
    assert binom.cdf(covered, TRIALS, exact) > FALSE_ALARM, covered / TRIALS
    assert binom.sf(covered - 1, TRIALS, exact) > FALSE_ALARM, covered / TRIALS


@pytest.mark.parametrize("alpha", ALPHAS[1:], ids=str)
def test_coverage_is_no_less_with_the_ties_of_8_bit_photos(alpha):
    """Conservative: the upper bound needs scores without ties, the lower one does not."""
    scores = made_scores(11, quantised=True)[:, :, 1]
    assert min(len(np.unique(draw)) for draw in scores) < 12
    assert binom.cdf(covered_draws(scores, alpha), TRIALS, float(1 - alpha)) > FALSE_ALARM


def test_coverage_test_would_notice_a_rank_that_is_one_too_low():
    """The same test, on the (k - 1)-th score: the grid is sharp enough to tell."""
    scores, alpha = made_scores(9)[:, :, 1], Fraction(1, 10)
    covered = sum(draw[-1] <= np.sort(draw[:-1])[-2] for draw in scores)
    assert binom.cdf(covered, TRIALS, float(1 - alpha)) < FALSE_ALARM


def test_coverage_of_the_view_event_is_lost_by_pooling_pixels():
    """The right share of pixels, and far too few views: why views are the unit."""
    rng, beta = np.random.default_rng(21), Fraction(1, 10)
    residuals, scales = made_views(rng, 1030)
    q = pooled_threshold(residuals[:30], scales[:30], beta)
    inside = residuals[30:] / scales[30:] <= q
    assert inside.mean() == pytest.approx(0.9, abs=0.05)
    assert (inside.mean(axis=(1, 2)) >= 0.9).mean() < 0.75
