# SPDX-License-Identifier: Apache-2.0
"""What multiplying a scale does: prop:oracle, prop:identification, lem:gauge, lem:nullspace."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_in_fractions import (
    floats,
    levels,
    mean,
    positive,
    score,
    shapes,
    smallest,
    succeeds,
    views,
)
from paper_in_fractions import threshold as paper_threshold
from scipy.stats import spearmanr

from splatcert.conformal import Boxes, threshold, view_score
from splatcert.difficulty.factor import shape, unit_of, view_factor

TENTH = Fraction(1, 10)


def scaled(values, factor):
    return [factor * value for value in values]


@given(views(), levels, positive)
def test_oracle_score_is_the_ratio_of_oracle_to_used_factor(view, beta, factor):
    """prop:oracle, eq:ratio-identity: R_v(c b~) = a*_v / c."""
    residual, b = view
    oracle = score(residual, b, beta)
    assert score(residual, scaled(b, factor), beta) == oracle / factor
    found = view_score(floats(residual), floats(scaled(b, factor)), beta)
    assert found == pytest.approx(float(oracle / factor), rel=1e-14)


@given(views(), levels)
def test_oracle_factor_is_the_smallest_that_succeeds_at_multiplier_one(view, beta):
    """prop:oracle: a*_v attains the event at q = 1, and nothing smaller does."""
    residual, b = view
    oracle = score(residual, b, beta)
    for shrunk in (Fraction(1), Fraction(10**9 - 1, 10**9), Fraction(1, 2)):
        attained = succeeds(residual, scaled(b, shrunk * oracle), 1, beta)
        assert attained == (shrunk == 1 or oracle == 0)


@given(shapes(), positive, levels, st.data())
def test_identification_of_the_oracle_factor_in_a_separable_model(b, difficulty, beta, data):
    """prop:identification: r = A b~ eps gives a* = A c, c the inner quantile of the noise."""
    noise = data.draw(st.lists(positive, min_size=len(b), max_size=len(b)))
    residual = [difficulty * shape * e for shape, e in zip(b, noise, strict=True)]
    inner = score(noise, [Fraction(1)] * len(noise), beta)
    assert score(residual, b, beta) == difficulty * inner
    found = view_score(floats(residual), floats(b), beta)
    assert found == pytest.approx(float(difficulty * inner), rel=1e-13)


@given(st.lists(positive, min_size=9, max_size=30), positive)
def test_identification_with_one_noise_constant_changes_no_interval(difficulties, constant):
    """prop:identification (1): then A_v serves as well as a*_v, by lem:gauge."""
    oracle = [difficulty * constant for difficulty in difficulties]
    with_oracle = paper_threshold([Fraction(1) for _ in oracle], TENTH)
    with_difficulty = paper_threshold([constant for _ in difficulties], TENTH)
    for a_star, difficulty in zip(oracle, difficulties, strict=True):
        assert with_oracle * a_star == with_difficulty * difficulty


@given(st.data(), st.integers(9, 20), positive)
def test_identification_degrades_gracefully(data, count, centre):
    """prop:identification (2): noise within e^eta, tracking within e^epsilon, width e^2(both)."""
    near = st.integers(15, 60).map(lambda thirtieths: Fraction(thirtieths, 30))
    noise, tracking = (data.draw(st.lists(near, min_size=count, max_size=count)) for _ in "ab")
    difficulties = data.draw(st.lists(positive, min_size=count, max_size=count))
    bound = max(max(c, 1 / c) for c in noise) * max(max(t, 1 / t) for t in tracking)
    oracle = [a * c * centre for a, c in zip(difficulties, noise, strict=True)]
    deployed = [a * t for a, t in zip(difficulties, tracking, strict=True)]
    q = paper_threshold([o / a for o, a in zip(oracle, deployed, strict=True)], TENTH)
    for a_star, a in zip(oracle, deployed, strict=True):
        assert 1 / bound**2 <= q * a / a_star <= bound**2


@given(st.lists(views(), min_size=1, max_size=8), levels, levels, positive)
def test_gauge_a_global_constant_changes_no_interval(photographed, alpha, beta, constant):
    """lem:gauge: R_v(cs) = R_v(s) / c, q(cs) = q(s) / c, and q s is the same."""
    plain = [score(r, s, beta) for r, s in photographed]
    gauged = [score(r, scaled(s, constant), beta) for r, s in photographed]
    assert gauged == [value / constant for value in plain]
    assert paper_threshold(gauged, alpha) * constant == paper_threshold(plain, alpha)


@given(st.integers(0, 2**32 - 1), st.integers(-20, 20))
def test_gauge_a_power_of_two_changes_not_a_bit(seed, exponent):
    """lem:gauge in float64, where such a constant is exact: the boxes are identical."""
    rng = np.random.default_rng(seed)
    residuals, scales = rng.random((11, 6, 7)), rng.uniform(0.1, 2, (11, 6, 7))
    center, boxes = rng.random((6, 7, 3)), []
    for maps in (scales, scales * 2.0**exponent):
        scores = [view_score(r, s, TENTH) for r, s in zip(residuals, maps, strict=True)]
        boxes.append(Boxes.around(center, maps[0], threshold(scores, TENTH)))
    assert np.array_equal(boxes[0].lower, boxes[1].lower)
    assert np.array_equal(boxes[0].upper, boxes[1].upper)


@given(st.lists(positive, min_size=9, max_size=20), positive)
def test_gauge_makes_every_unit_of_the_view_factor_equal_without_shrinkage(raw, difficulty):
    """Batch unit or training unit, the widths q a_v agree when lambda_a = 1."""
    oracle = [difficulty * (1 + index) for index in range(len(raw))]
    widths = []
    for unit in (unit_of(raw), unit_of(raw[:3])):
        factors = view_factor(np.array(floats(raw)), unit, 1)
        q = threshold(np.array(floats(oracle)) / factors, TENTH)
        widths.append(q * factors)
    assert widths[0] == pytest.approx(widths[1], rel=1e-12)


def sparsification(scale, residual):
    """Mean error of what is left when the most uncertain pixels are taken away one by one."""
    kept = residual[np.argsort(scale, kind="stable")]
    return np.cumsum(kept) / np.arange(1, kept.size + 1)


@given(shapes(), levels, positive, st.data())
def test_nullspace_of_per_view_ranking_metrics(b, beta, factor, data):
    """lem:nullspace: the view factor changes no ranking within a view, and divides the score."""
    residual = data.draw(st.lists(positive, min_size=len(b), max_size=len(b)))
    order = sorted(range(len(b)), key=b.__getitem__)
    assert sorted(range(len(b)), key=scaled(b, factor).__getitem__) == order
    assert score(residual, scaled(b, factor), beta) == score(residual, b, beta) / factor


@given(st.integers(0, 2**32 - 1))
def test_nullspace_holds_for_spearman_and_ause(seed):
    rng = np.random.default_rng(seed)
    residual, field = rng.random(50), rng.uniform(0.1, 3, 50)
    plain = shape(field, Fraction(1, 2))
    for a in (0.5, 8.0):
        assert spearmanr(a * plain, residual) == spearmanr(plain, residual)
        assert np.array_equal(sparsification(a * plain, residual), sparsification(plain, residual))
        assert view_score(residual, a * plain, TENTH) == view_score(residual, plain, TENTH) / a


@given(shapes())
def test_shape_of_mean_one_makes_the_view_factor_the_mean_width(b):
    assert mean(b) == 1
    boxes = Boxes.around(np.zeros((1, len(b), 3)), [floats(scaled(b, Fraction(3)))], 2.0)
    assert boxes.view_factor == pytest.approx(3, rel=1e-12)
    assert boxes.half_width.mean() == pytest.approx(2 * 3, rel=1e-12)
    assert smallest(b, 1) <= 1
