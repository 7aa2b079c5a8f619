# SPDX-License-Identifier: Apache-2.0
"""thm:validity and cor:transfer, by enumeration: no Monte Carlo, no tolerance.

Exchangeable scores are, given their values, equally likely to stand in any order. So the
probability that the new view is covered is the share of the m + 1 views which are covered
when they are the one left out.
"""

from __future__ import annotations

import warnings
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_in_fractions import floats, grey_steps, levels, positive
from paper_in_fractions import score as paper_score
from paper_in_fractions import threshold as paper_threshold

from splatcert.conformal import (
    CalibrationTooSmall,
    measure_coverage,
    outer_rank,
    threshold,
    view_score,
    views_needed,
)

pytestmark = pytest.mark.filterwarnings("ignore::splatcert.conformal.CalibrationTooSmall")


def left_out(items, index):
    return [*items[:index], *items[index + 1 :]]


def coverage(scores, alpha, threshold=threshold) -> Fraction:
    """Probability that the new view's score is at most the threshold of the others."""
    covered = sum(
        score <= threshold(left_out(scores, index), alpha) for index, score in enumerate(scores)
    )
    return Fraction(covered, len(scores))


scores_with_ties = st.lists(st.integers(1, 12).map(float), min_size=1, max_size=45)
scores_without_ties = st.lists(st.floats(0.01, 100), min_size=1, max_size=45, unique=True)


@given(scores_with_ties, levels)
def test_validity_for_every_choice_of_test_view(scores, alpha):
    assert coverage(scores, alpha) >= 1 - alpha


@given(scores_without_ties, levels)
def test_validity_is_exact_without_ties(scores, alpha):
    """The probability is k / (m + 1), hence below 1 - alpha + 1 / (m + 1)."""
    m = len(scores) - 1
    rank = outer_rank(m, alpha)
    if rank <= m:
        found = coverage(scores, alpha)
        assert found == Fraction(rank, m + 1)
        assert 1 - alpha <= found < 1 - alpha + Fraction(1, m + 1)
    else:
        assert coverage(scores, alpha) == 1


@given(scores_with_ties, levels)
def test_validity_would_not_survive_a_smaller_rank(scores, alpha):
    """The threshold is the smallest order statistic with the guarantee: no rank to spare."""
    m = len(scores) - 1
    rank = outer_rank(m, alpha)
    assert Fraction(rank, m + 1) >= 1 - alpha > Fraction(rank - 1, m + 1)


@given(scores_with_ties, levels)
def test_validity_is_computed_as_the_paper_defines_it(scores, alpha):
    assert threshold(scores, alpha) == paper_threshold(scores, alpha)


@st.composite
def photographed_views(draw):
    """Residuals of m + 1 views of different sizes, as 8-bit photos have them."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=12))
    return [draw(st.lists(grey_steps, min_size=n, max_size=n)) for n in sizes]


@given(photographed_views(), levels, levels)
def test_validity_of_the_whole_chain_from_pixels_to_the_view_event(residuals, alpha, beta):
    """Score, threshold and count of covered pixels, all by the package, in float64."""
    maps = [floats(residual) for residual in residuals]
    scales = [[0.1 + 0.7 * pixel for pixel in range(len(residual))] for residual in maps]
    scores = [view_score(r, s, beta) for r, s in zip(maps, scales, strict=True)]
    covered = 0
    for index in range(len(maps)):
        q = threshold(left_out(scores, index), alpha)
        covered += measure_coverage([maps[index]], [scales[index]], q, beta).covered_views
    assert Fraction(covered, len(maps)) >= 1 - alpha


@given(photographed_views(), levels, levels, st.data())
def test_transfer_changes_width_but_not_validity(residuals, alpha, beta, data):
    """cor:transfer: whatever was fixed beforehand, here any positive maps whatsoever."""
    beforehand = [
        [data.draw(st.lists(positive, min_size=len(r), max_size=len(r))) for r in residuals]
        for _ in range(2)
    ]
    for scales in beforehand:
        scores = [paper_score(r, s, beta) for r, s in zip(residuals, scales, strict=True)]
        assert coverage(scores, alpha, paper_threshold) >= 1 - alpha


def test_transfer_from_a_misleading_source_costs_width_only():
    """A scale that is small where errors are large is valid, and several times as wide."""
    alpha, beta = Fraction(1, 10), Fraction(1, 4)
    residuals = [[Fraction(view + pixel, 255) for pixel in range(1, 21)] for view in range(20)]
    faithful = [[1 + r for r in residual] for residual in residuals]
    misleading = [[1 / (r * r) for r in residual] for residual in residuals]
    widths = []
    for scales in (faithful, misleading):
        scores = [paper_score(r, s, beta) for r, s in zip(residuals, scales, strict=True)]
        assert coverage(scores, alpha, paper_threshold) >= 1 - alpha
        q = paper_threshold(scores, alpha)
        widths.append(q * sum(map(sum, scales)))
    assert widths[1] > 3 * widths[0]


@given(levels)
def test_validity_at_a_finite_width_needs_exactly_so_many_views(alpha):
    """Appendix, calibration feasibility: one view fewer and the valid set is unbounded."""
    needed = views_needed(alpha)
    assert outer_rank(needed, alpha) <= needed
    assert outer_rank(needed - 1, alpha) > needed - 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationTooSmall)
        assert threshold([1.0] * needed, alpha) == 1
        with pytest.raises(CalibrationTooSmall):
            threshold([1.0] * (needed - 1), alpha)
