# SPDX-License-Identifier: Apache-2.0
"""Two roads to the threshold: order statistic and conformal risk control."""

from __future__ import annotations

import ast
import inspect
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatcert.conformal import (
    family_risk_control,
    family_scores,
    path_risk_control,
    path_threshold,
    risk_control,
    risk_control_threshold,
    stretch_score,
    threshold,
    view_score,
)
from splatcert.conformal.path_conformal import PathError

LEVELS = st.integers(1, 99).map(lambda percent: Fraction(percent, 100))

pytestmark = pytest.mark.filterwarnings("ignore::splatcert.conformal.CalibrationTooSmall")


@given(st.lists(st.floats(0, 100) | st.integers(0, 4).map(float), max_size=60), LEVELS)
def test_both_roads_lead_to_the_same_threshold(scores, alpha):
    assert risk_control_threshold(scores, alpha) == threshold(scores, alpha)


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=8), min_size=1, max_size=15),
    LEVELS,
    LEVELS,
)
def test_the_loss_is_that_of_falling_short_of_the_pixel_coverage(residuals, alpha, beta):
    """From pixels, by the risk of 1{missed fraction > beta}, over every multiplier tried."""

    def risk(q):
        missed = [Fraction(sum(r > q for r in view), len(view)) for view in residuals]
        return Fraction(sum(fraction > beta for fraction in missed), len(residuals))

    n = len(residuals)
    good = [q for q in range(10) if (n * risk(q) + 1) / (n + 1) <= alpha]
    scores = [view_score(view, 1.0, beta) for view in residuals]
    assert risk_control_threshold(scores, alpha) == min(good, default=math.inf)


def test_levels_are_exact_on_this_road_too():
    scores = [float(score) for score in range(1, 150)]
    assert risk_control_threshold(scores, 0.18) == risk_control_threshold(scores, "0.18") == 123
    assert risk_control_threshold(range(1, 10), 0.1) == 9
    assert risk_control_threshold(range(1, 9), 0.1) == math.inf
    assert risk_control_threshold([], 0.1) == math.inf


def test_nan_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        risk_control_threshold([1.0, math.nan], "1/2")


def test_the_second_road_shares_no_code_with_the_first():
    tree = ast.parse(inspect.getsource(risk_control))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {getattr(node, "module", None) or node.names[0].name for node in imported}
    assert modules == {"__future__", "math", "bisect", "collections.abc", "fractions"}


SCORES = st.floats(0, 100) | st.integers(0, 4).map(float)
SHARES = LEVELS | st.just(Fraction(0))


@given(st.lists(SCORES, max_size=60), st.integers(2, 7), SHARES, LEVELS)
def test_a_path_threshold_follows_in_two_ways(scores, length, gamma, alpha):
    """From stretch scores, and from the risk of losing too many views; the remainder is dropped."""
    ends = range(length, len(scores) + 1, length)
    stretches = [stretch_score(scores[end - length : end], gamma) for end in ends]
    try:
        expected = path_threshold(stretches, alpha)
    except PathError:
        expected = math.inf
    assert path_risk_control(scores, length, gamma, alpha) == expected


@given(
    st.integers(1, 5).flatmap(
        lambda k: st.lists(st.lists(SCORES, min_size=k, max_size=k), min_size=1, max_size=25)
    ),
    LEVELS,
    st.data(),
)
def test_a_family_threshold_follows_in_two_ways(scores, alpha, data):
    """From each view's worst score in floats, and from the risk of any miss in exact fractions."""
    size = len(scores[0])
    units = data.draw(st.lists(st.floats(1e-3, 1e3), min_size=size, max_size=size))
    found = family_risk_control(scores, units, alpha)
    assert found == threshold(family_scores(scores, units), alpha)


@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(st.lists(SCORES, min_size=k, max_size=k), min_size=4, max_size=40)
    ),
    st.integers(2, 4),
    SHARES,
    LEVELS,
    st.data(),
)
def test_a_threshold_of_a_family_about_paths_follows_in_two_ways(
    scores, length, gamma, alpha, data
):
    """From the worst stretch score in floats, and from any candidate's loss of too many views."""
    size = len(scores[0])
    units = data.draw(st.lists(st.floats(1e-3, 1e3), min_size=size, max_size=size))
    columns = list(zip(*scores, strict=True))
    ends = range(length, len(scores) + 1, length)
    runs = [[stretch_score(one[end - length : end], gamma) for one in columns] for end in ends]
    found = family_risk_control(scores, units, alpha, length, gamma)
    assert found == threshold(family_scores(runs, units), alpha)


@pytest.mark.parametrize(
    "call",
    [
        lambda: path_risk_control([1.0, math.nan], 2, 0, "1/2"),
        lambda: family_risk_control([[1.0, math.nan]], [1.0, 1.0], "1/2"),
    ],
)
def test_nan_is_refused_for_paths_and_families_too(call):
    with pytest.raises(ValueError, match="NaN"):
        call()
