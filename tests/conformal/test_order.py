# SPDX-License-Identifier: Apache-2.0
"""Exact ranks, and the order statistics they name."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from splatcert.conformal.pooled import Pool
from splatcert.conformal.ranks import (
    MANY,
    RankError,
    ceil_rank,
    order_statistic,
    order_statistics,
    outer_rank,
    rank_correlation,
    views_needed,
)


def test_the_rank_that_floating_point_gets_wrong():
    """alpha = 0.18 and m = 149: 150 * 0.82 is 123, not a little more."""
    assert math.ceil((149 + 1) * (1 - 0.18)) == 124
    assert outer_rank(149, Fraction("0.18")) == 123


def test_exact_ranks_differ_from_floating_ones_somewhere_and_are_right_everywhere():
    wrong = 0
    for percent in range(1, 51):
        for m in range(1, 301):
            exact = outer_rank(m, Fraction(percent, 100))
            assert exact == -((m + 1) * (percent - 100) // 100)
            wrong += exact != math.ceil((m + 1) * (1 - percent / 100))
    assert wrong == 30


def test_nine_views_are_enough_for_a_tenth():
    """Other libraries refuse m = 9 at alpha = 0.1, or call its threshold infinite."""
    assert outer_rank(9, Fraction(1, 10)) == 9
    assert views_needed(Fraction(1, 10)) == 9
    assert outer_rank(8, Fraction(1, 10)) == 9


@pytest.mark.parametrize(
    "alpha, views", [("1/2", 1), ("1/3", 2), ("0.3", 3), ("0.05", 19), ("0.01", 99), ("0.9", 1)]
)
def test_smallest_number_of_views(alpha, views):
    assert views_needed(Fraction(alpha)) == views


def test_a_rank_is_never_computed_from_a_float():
    with pytest.raises(TypeError, match=r"requires a Fraction, got 0.9"):
        ceil_rank(10, 0.9)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 5).map(float), min_size=1, max_size=40), st.data())
def test_order_statistics_are_entries_of_the_sorted_list(values, data):
    ranks = data.draw(st.lists(st.integers(1, len(values)), min_size=1, max_size=4))
    expected = [sorted(values)[rank - 1] for rank in ranks]
    assert order_statistics(np.array(values), ranks).tolist() == expected
    assert [order_statistic(values, rank) for rank in ranks] == expected


def test_order_statistics_leave_their_input_alone_and_accept_infinity():
    values = np.array([3.0, np.inf, 1.0])
    assert order_statistic(values, 3) == np.inf
    assert values.tolist() == [3.0, np.inf, 1.0]


def test_nan_has_no_rank():
    with pytest.raises(RankError, match="1 of 3 values are NaN"):
        order_statistic([1.0, float("nan"), 2.0], 1)


@pytest.mark.parametrize("rank", [0, 4, -1])
def test_a_rank_that_does_not_exist_is_refused(rank):
    with pytest.raises(RankError, match=f"no value of rank {rank} among 3"):
        order_statistic([1.0, 2.0, 3.0], rank)


@given(
    st.lists(
        st.lists(st.floats(0, allow_infinity=True) | st.sampled_from([0.0, -0.0, 0.5]), max_size=9),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
def test_a_pool_finds_the_same_without_holding_the_numbers(batches, data):
    everything = sorted(abs(value) for batch in batches for value in batch)
    pool = Pool(lambda: (np.array(batch, dtype=np.float64) for batch in batches))
    assert pool.size == len(everything)
    if everything:
        rank = data.draw(st.integers(1, len(everything)))
        assert pool.order_statistic(rank) == everything[rank - 1]
    with pytest.raises(RankError):
        pool.order_statistic(len(everything) + 1)


def test_a_pool_agrees_on_many_numbers_of_every_size():
    rng = np.random.default_rng(3)
    batches = [10.0 ** rng.uniform(-300, 300, 4000), rng.random(4000), np.ones(500)]
    pool, ordered = Pool(lambda: batches), np.sort(np.concatenate(batches))
    for rank in (1, 17, 4250, 8000, 8500):
        assert pool.order_statistic(rank) == ordered[rank - 1]


@pytest.mark.parametrize("size", [MANY - 1, MANY, 3 * MANY])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.lognormal(sigma=3, size=n),
        lambda rng, n: rng.integers(0, 5, n).astype(float),
        lambda rng, n: np.where(rng.random(n) < 0.3, np.inf, rng.random(n)),
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, 0.0),
        lambda rng, n: np.full(n, 7.0),
    ],
    ids=["many octaves", "ties", "infinite", "both signs", "signed zeros", "equal"],
)
def test_bins_give_the_order_statistics_of_sorting(draw, size):
    """Large maps are not sorted: bins of their leading bits must give the same numbers."""
    values = draw(np.random.default_rng(0), size)
    ranks = [1, 2, size // 10, size // 2, size // 2, size - 1, size]
    assert (order_statistics(values, ranks) == np.sort(values)[np.array(ranks) - 1]).all()


@pytest.mark.parametrize("distinct", [1, 3, 1_000])
def test_the_rank_correlation_is_that_of_scipy(distinct):
    rng = np.random.default_rng(distinct)
    x, y = rng.integers(0, distinct, 200), rng.integers(0, 7, 200)
    expected = 0.0 if distinct == 1 else spearmanr(x, y)[0]  # type: ignore[index]
    assert rank_correlation(x, y) == pytest.approx(expected, abs=1e-12)
