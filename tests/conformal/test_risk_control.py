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

from splatcert.conformal import risk_control, risk_control_threshold, threshold, view_score

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
