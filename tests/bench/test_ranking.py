# SPDX-License-Identifier: Apache-2.0
"""Ranking of pixels: the curves by hand, and what they cannot see."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import spearmanr

from splatcert.conformal.ranks import rank_correlation
from splatcert_bench.statistics.ranking import Errors, ascending, ause, rank_by


def by_hand(error, uncertainty):
    """Sparsification with a loop, as papers describe it."""
    removed = np.linspace(0, 0.999, 100)
    curves = []
    for key in (uncertainty, error):
        ranked = error[np.argsort(key, kind="stable")]
        kept = [max(1, int(np.ceil((1 - share) * len(error)))) for share in removed]
        curves.append(np.array([ranked[:count].mean() for count in kept]) / error.mean())
    return trapezoid(curves[0] - curves[1], removed)


def test_ause_is_the_area_between_the_curves():
    rng = np.random.default_rng(0)
    error, uncertainty = rng.random(501), rng.random(501)
    assert ause(error, uncertainty) == pytest.approx(by_hand(error, uncertainty), rel=1e-12)
    assert ause(error.reshape(3, 167), uncertainty.reshape(3, 167)) == ause(error, uncertainty)


def test_a_perfect_order_has_no_area_and_a_reversed_one_the_most():
    error = np.random.default_rng(1).random(300)
    assert ause(error, error**3) == 0
    assert ause(error, -error) > ause(error, np.roll(error, 1)) > 0
    assert ause(np.zeros(9), error[:9]) == 0


def test_rank_correlation_is_spearmans_with_ties():
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 9, 200), rng.integers(0, 5, 200) + 0.1
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, rel=1e-12)
    assert rank_correlation(x, np.ones(200)) == 0


def test_a_view_factor_cannot_be_seen():
    rng = np.random.default_rng(3)
    error, shape = rng.random(400), rng.random(400) + 0.1
    for metric in (ause, rank_correlation):
        assert metric(error, 7.3 * shape) == metric(error, shape)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_one_sort_gives_both_rankings(kind):
    random = np.random.default_rng(1)
    residual = random.random(3_000).round(2)
    uncertainty = (1 + random.random(3_000).round(2)).astype(kind)  # many ties
    assert np.array_equal(ascending(uncertainty), np.argsort(uncertainty, kind="stable"))
    area, correlation = rank_by(Errors(residual), uncertainty)
    assert area == ause(residual, uncertainty)
    assert correlation == rank_correlation(residual, uncertainty)
    assert rank_by(Errors(residual), np.ones(3_000, kind))[1] == 0
