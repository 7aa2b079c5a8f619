# SPDX-License-Identifier: Apache-2.0
"""What boxes cost: prop:decomposition, thm:width, eq:realizable-gain-main.

With e^delta = a / a*, every claim is one about ratios of rational numbers, and exact.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from paper_in_fractions import floats, levels, mean, positive, smallest, threshold

from splatcert.conformal import outer_rank
from splatcert.conformal.splits import estimate


@st.composite
def split_scenes(draw):
    """Levels, and (oracle, used) factors of calibration and test views."""
    alpha = draw(levels)
    pairs = st.tuples(positive, positive)
    calibration = draw(st.lists(pairs, min_size=1, max_size=20))
    assume(outer_rank(len(calibration), alpha) <= len(calibration))
    return alpha, calibration, draw(st.lists(pairs, min_size=1, max_size=5))


def calibrated(calibration, alpha) -> Fraction:
    return threshold([oracle / used for oracle, used in calibration], alpha)


def split_estimate(alpha, calibration, test, *, use_oracle=False):
    """The package's coverage and width of one split."""
    oracle = floats([oracle for oracle, _ in (*calibration, *test)])
    factor = oracle if use_oracle else floats([used for _, used in (*calibration, *test)])
    split = np.arange(len(oracle)) < len(calibration)
    return estimate(oracle, factor, alpha, split[None])


@given(split_scenes())
def test_decomposition_of_excess_width_view_by_view(scene):
    """eq:exact-width: q = e^-delta_(j), and W_i / W_i* = e^(delta_i - delta_(j))."""
    alpha, calibration, test = scene
    j = math.floor((len(calibration) + 1) * alpha)
    tail = smallest([used / oracle for oracle, used in calibration], j)
    q = calibrated(calibration, alpha)
    assert q == 1 / tail
    for oracle, used in test:
        assert q * used / oracle == (used / oracle) / tail


@given(split_scenes())
def test_decomposition_of_mean_width_into_test_side_and_calibration_side(scene):
    """eq:aggregate-decomposition, exactly and as the package computes it."""
    alpha, calibration, test = scene
    j = math.floor((len(calibration) + 1) * alpha)
    tail = smallest([used / oracle for oracle, used in calibration], j)
    oracle_width = mean([oracle for oracle, _ in test])
    dispersion = mean([used for _, used in test]) / oracle_width
    q = calibrated(calibration, alpha)
    assert q * mean([used for _, used in test]) / oracle_width == dispersion / tail
    ours, best = split_estimate(*scene), split_estimate(*scene, use_oracle=True)
    assert best.mean_width == pytest.approx(float(oracle_width), rel=1e-13)
    assert ours.mean_width / best.mean_width == pytest.approx(float(dispersion / tail), rel=1e-12)


def test_decomposition_rests_on_an_identity_of_integers():
    """m - ceil((m + 1)(1 - alpha)) + 1 = floor((m + 1) alpha), for every m and alpha."""
    for percent in range(1, 100):
        alpha = Fraction(percent, 100)
        for m in range(1, 301):
            assert m - outer_rank(m, alpha) + 1 == math.floor((m + 1) * alpha)


@given(split_scenes())
def test_width_bound_is_deterministic(scene):
    """thm:width: log errors within epsilon keep every width within e^(2 epsilon)."""
    alpha, calibration, test = scene
    bound = max(max(o / u, u / o) for o, u in (*calibration, *test))
    q = calibrated(calibration, alpha)
    for oracle, used in test:
        assert 1 / bound**2 <= q * used / oracle <= bound**2


def test_width_bound_is_attained():
    """One view underestimated by e^epsilon calibrates, one overestimated is tested."""
    epsilon = Fraction(3, 2)
    calibration = [(Fraction(1), 1 / epsilon)] + [(Fraction(1), Fraction(1))] * 8
    assert calibrated(calibration, Fraction(1, 10)) * epsilon == epsilon**2


@given(split_scenes())
def test_realizable_gain_of_a_perfect_view_factor(scene):
    """eq:realizable-gain-main: the mean difficulty over an upper quantile of it."""
    alpha, calibration, test = scene
    oracles = [oracle for oracle, _ in test]
    q_oracle = calibrated([(oracle, oracle) for oracle, _ in calibration], alpha)
    q_constant = calibrated([(oracle, Fraction(1)) for oracle, _ in calibration], alpha)
    upper = smallest([oracle for oracle, _ in calibration], outer_rank(len(calibration), alpha))
    gain = mean([q_oracle * oracle for oracle in oracles]) / q_constant
    assert gain == mean(oracles) / upper
    constant = [(oracle, Fraction(1)) for oracle, _ in calibration]
    flat = split_estimate(alpha, constant, [(oracle, Fraction(1)) for oracle in oracles])
    best = split_estimate(*scene, use_oracle=True)
    assert best.mean_width / flat.mean_width == pytest.approx(float(gain), rel=1e-12)
