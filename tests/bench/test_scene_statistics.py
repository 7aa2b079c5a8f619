# SPDX-License-Identifier: Apache-2.0
"""Scenes are counted and resampled exactly."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from splatcert_bench.statistics.scenes import SceneError, compare, mean_over_scenes, sign_test


@pytest.mark.parametrize(("wins", "scenes"), [(11, 13), (7, 13), (9, 9), (5, 5), (0, 4)])
def test_sign_test_is_exact(wins, scenes):
    """Twice the shorter tail of fair coins, and never above one."""
    tail = sum(comb(scenes, k) for k in range(min(wins, scenes - wins) + 1))
    exact = min(Fraction(1), 2 * Fraction(tail, 2**scenes))
    assert sign_test(wins, scenes) == pytest.approx(float(exact), rel=1e-12)


def test_the_papers_own_sign_tests_come_out():
    assert round(sign_test(11, 13), 4) == 0.0225
    assert round(sign_test(9, 9), 4) == 0.0039
    assert sign_test(7, 13) == 1.0


def test_comparison_counts_scenes_that_differ():
    found = compare([3.0, 2.0, 5.0, 1.0], [1.0, 2.0, 4.0, 2.0])
    assert (found.wins, found.scenes) == (2, 3)
    assert found.gap.value == pytest.approx(0.5)
    assert found.p == 1.0
    assert compare([1.0] * 4, [1.0] * 4).p == 1.0


def test_fewer_than_four_scenes_have_no_interval_and_no_test():
    mean = mean_over_scenes([0.0, 10.0, 5.0])
    assert (mean.value, mean.low, mean.high, mean.scenes) == (5.0, None, None, 3)
    found = compare([3.0, 2.0, 5.0], [1.0, 1.0, 4.0])
    assert (found.wins, found.scenes, found.p) == (3, 3, None) and not found.is_shown


def test_interval_of_two_values_is_the_two_values():
    """One resample of 16 takes the smaller value alone: its share is beyond 2.5%."""
    mean = mean_over_scenes([0.0, 0.0, 10.0, 10.0])
    assert (mean.value, mean.low, mean.high, mean.scenes) == (5.0, 0.0, 10.0, 4)


def test_an_advantage_is_shown_only_by_interval_and_sign_test():
    none = np.zeros(8)
    assert compare([3.0, 2.0, 5.0, 4.0, 1.0, 2.0, 1.0, 3.0], none).is_shown
    assert not compare([3.0, -2.0, 5.0, -4.0, 1.0, 2.0, 1.0, 3.0], none).is_shown
    lucky = compare([9.0, 9.0, 9.0, 9.0, 9.0, -1.0, -1.0, -1.0], none)
    assert lucky.gap.low > 0 and lucky.p > 0.05 and not lucky.is_shown
    assert not compare([3.0, 2.0, 5.0, 4.0], none[:4]).is_shown  # p is 0.125 at best


def test_interval_is_the_same_every_time_and_narrows_with_scenes():
    values = np.random.default_rng(0).normal(size=40)
    few, many = mean_over_scenes(values[:10]), mean_over_scenes(values)
    assert many == mean_over_scenes(values)
    assert many.high - many.low < few.high - few.low
    assert many.low < many.value < many.high


def test_numbers_that_cannot_be_compared_are_refused():
    with pytest.raises(SceneError, match="one finite number per scene"):
        mean_over_scenes([1.0, np.nan])
    with pytest.raises(SceneError, match="3 scenes cannot be paired with 2"):
        compare([1, 2, 3], [1, 2])
