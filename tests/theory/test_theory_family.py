# SPDX-License-Identifier: Apache-2.0
"""The family guarantee: exact by enumeration, and by simulation of a choice made afterwards.

Given the scores of m + 1 exchangeable views under all candidates, each view is equally
likely to be the new one. So the probability of an event is the share of the views for which
it holds when they are the one left out.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from paper_in_fractions import levels
from scipy.stats import binom

from splatcert.conformal import (
    FamilyConformal,
    PathFamilyConformal,
    family_scores,
    measure_coverage,
    outer_rank,
    stretch_score,
    threshold,
)
from splatcert.conformal.family_conformal import member_threshold

ALPHA = Fraction(1, 10)
numbers = st.floats(1e-6, 1e6)


@st.composite
def families(draw, score, **options):
    """Scores of m + 1 views under K candidates, [m + 1, K], and the candidates' units."""
    candidates = draw(st.integers(1, 4))
    count = draw(st.integers(2, 12)) * candidates
    values = draw(st.lists(score, min_size=count, max_size=count, **options))
    units = draw(st.lists(numbers, min_size=candidates, max_size=candidates))
    return np.array(values).reshape(-1, candidates), np.array(units)


with_ties = families(st.integers(0, 9).map(float))
without_ties = families(st.integers(1, 10**6).map(float), unique=True)


def carries(scores, alpha) -> bool:
    return outer_rank(len(scores) - 1, alpha) < len(scores)


def multipliers(calibration, units, alpha):
    q = threshold(family_scores(calibration, units), alpha)
    return np.array([member_threshold(q, unit) for unit in units])


def coverage(scores, units, alpha) -> Fraction:
    """Probability that all candidates cover the new view, each at its own multiplier."""
    covered = 0
    for index, new in enumerate(scores):
        rest = np.delete(scores, index, axis=0)
        covered += bool((new <= multipliers(rest, units, alpha)).all())
    return Fraction(covered, len(scores))


@given(numbers, numbers, st.integers(-3, 3))
def test_a_member_covers_what_the_family_covers_to_the_last_bit(q, unit, steps):
    """R <= multiplier if and only if R / unit <= q, also for the floats next to q * unit."""
    score = q * unit
    for _ in range(abs(steps)):
        score = np.nextafter(score, np.inf if steps > 0 else 0)
    assert (score <= member_threshold(q, unit)) == (score / unit <= q)


@given(with_ties, levels)
def test_family_validity_for_every_choice_of_test_view(family, alpha):
    assume(carries(family[0], alpha))
    assert coverage(*family, alpha) >= 1 - alpha


@given(without_ties, levels)
def test_family_validity_is_exact_without_ties(family, alpha):
    """The probability that all K cover is k / (m + 1), below 1 - alpha + 1 / (m + 1)."""
    scores, units = family
    assume(carries(scores, alpha))
    assume(len(set(family_scores(scores, units))) == len(scores))
    found = coverage(scores, units, alpha)
    assert found == Fraction(outer_rank(len(scores) - 1, alpha), len(scores))
    assert 1 - alpha <= found < 1 - alpha + Fraction(1, len(scores))


@given(with_ties, levels, st.integers(0, 3))
def test_family_validity_survives_the_worst_choice(family, alpha, taste):
    """An adversary who sees the new view's scores chooses the candidate that misses it."""
    scores, units = family
    assume(carries(scores, alpha))
    covered = 0
    for index, new in enumerate(scores):
        allowed = multipliers(np.delete(scores, index, axis=0), units, alpha)
        missing = np.flatnonzero(new > allowed)
        chosen = missing[0] if missing.size else taste % len(units)
        covered += bool(new[chosen] <= allowed[chosen])
    assert Fraction(covered, len(scores)) >= 1 - alpha


def test_family_validity_is_what_plain_certificates_lose_by_choosing():
    """By enumeration: each candidate alone covers 2/3, the narrower of the two only 1/3."""
    alpha, scores = Fraction(1, 3), np.array([[1.0, 3.0], [3.0, 1.0], [2.0, 2.0]])
    covered = [0, 0, 0]
    for index, new in enumerate(scores):
        rest = np.delete(scores, index, axis=0)
        plain = [threshold(column, alpha) for column in rest.T]
        for candidate in (0, 1):
            covered[candidate] += new[candidate] <= plain[candidate]
        covered[2] += new[np.argmin(plain)] <= min(plain)
    assert covered == [2, 2, 1]
    assert coverage(scores, np.ones(2), alpha) == 1  # two views tie: more than 2/3


@given(st.integers(0, 2**32 - 1))
def test_family_validity_of_the_whole_chain_from_pixels_to_every_member(seed):
    """Scores, threshold and counts of covered pixels, all by the package, in float64."""
    alpha, beta, names = Fraction(1, 3), Fraction(1, 4), ["full", "pruned", "small"]
    rng = np.random.default_rng(seed)
    residuals = np.round(rng.exponential(20, (6, 3, 2, 4))) / 255
    scales = rng.uniform(0.1, 0.9, residuals.shape)
    units, covered = rng.uniform(0.1, 3, 3), 0
    for index in range(6):
        rest = [np.delete(maps, index, axis=0) for maps in (residuals, scales)]
        family = FamilyConformal(alpha, beta, units, names).conformalize(*rest)
        covered += all(
            measure_coverage(
                [residuals[index, k]], [scales[index, k]], family.member(k).threshold, beta
            ).covered_views
            for k in range(3)
        )
    assert Fraction(covered, 6) >= 1 - alpha


@st.composite
def families_of_stretches(draw, score, **options):
    """View scores of m + 1 stretches under K candidates, [m + 1, L, K], and the units."""
    candidates, length = draw(st.integers(1, 3)), draw(st.integers(2, 5))
    count = draw(st.integers(2, 8)) * candidates * length
    values = draw(st.lists(score, min_size=count, max_size=count, **options))
    units = draw(st.lists(numbers, min_size=candidates, max_size=candidates))
    return np.array(values).reshape(-1, length, candidates), np.array(units)


def of_stretches(runs, gamma):
    """Stretch scores under each candidate, [m + 1, K]."""
    return np.array([[stretch_score(column, gamma) for column in run.T] for run in runs])


def path_coverage(runs, units, alpha, gamma) -> Fraction:
    """Probability that every candidate covers a share 1 - gamma of the new stretch's views."""
    scores, covered = of_stretches(runs, gamma), 0
    for index, new in enumerate(runs):
        allowed = multipliers(np.delete(scores, index, axis=0), units, alpha)
        views = (new <= allowed).sum(axis=0)  # from the definition, without a stretch score
        covered += all(Fraction(int(count), len(new)) >= 1 - gamma for count in views)
    return Fraction(covered, len(runs))


shares = levels | st.just(Fraction(0))


@given(families_of_stretches(st.integers(0, 9).map(float)), levels, shares)
def test_path_family_validity_for_every_choice_of_test_stretch(family, alpha, gamma):
    assume(carries(family[0], alpha))
    assert path_coverage(*family, alpha, gamma) >= 1 - alpha


@given(families_of_stretches(st.integers(1, 10**6).map(float), unique=True), levels, shares)
def test_path_family_validity_is_exact_without_ties(family, alpha, gamma):
    runs, units = family
    assume(carries(runs, alpha))
    assume(len(set(family_scores(of_stretches(runs, gamma), units))) == len(runs))
    found = path_coverage(runs, units, alpha, gamma)
    assert found == Fraction(outer_rank(len(runs) - 1, alpha), len(runs))


def test_path_family_validity_is_about_one_member_per_stretch():
    """By enumeration: all members keep one of two views, a choice per view keeps neither."""
    alpha, gamma = Fraction(1, 2), Fraction(1, 2)
    runs = np.array([[[1.0, 9.0], [9.0, 1.0]], [[2.0, 9.0], [9.0, 2.0]]])
    assert path_coverage(runs, np.ones(2), alpha, gamma) >= 1 - alpha
    q = threshold(family_scores(of_stretches(runs[1:], gamma), np.ones(2)), alpha)
    covered = runs[0] <= q  # [views, members]
    assert covered.sum(axis=0).tolist() == [1, 1] and not covered.all(axis=1).any()


@given(st.integers(0, 2**32 - 1))
def test_path_family_validity_of_the_whole_chain_from_pixels_to_every_member(seed):
    alpha, beta, gamma, length = Fraction(1, 3), Fraction(1, 4), Fraction(1, 2), 2
    rng = np.random.default_rng(seed)
    residuals = np.round(rng.exponential(20, (6, length, 2, 2, 4))) / 255
    scales = rng.uniform(0.1, 0.9, residuals.shape)
    units, covered = rng.uniform(0.1, 3, 2), 0
    for index in range(6):
        rest = [np.concatenate(np.delete(maps, index, axis=0)) for maps in (residuals, scales)]
        family = PathFamilyConformal(alpha, beta, gamma, length, units, ["full", "pruned"])
        family.conformalize(*rest)
        covered += all(
            measure_coverage(
                residuals[index, :, k], scales[index, :, k], family.member(k).threshold, beta
            ).covered_views
            >= length * (1 - gamma)
            for k in range(2)
        )
    assert Fraction(covered, 6) >= 1 - alpha


TRIALS, VIEWS = 20_000, 11
FALSE_ALARM = 1e-4
COUNTS = (2, 5, 20)


@cache
def choose_afterwards(candidates):
    """Trials covered by the narrowest of K plain certificates and by a whole family; its price.

    Log-normal scores of 11 calibration views and one new view; the candidates are equally
    good and their logarithms correlate at 0.5. The price is the family's mean width over
    that of one candidate alone.
    """
    rng = np.random.default_rng([33, candidates])
    shared = rng.normal(size=(TRIALS, VIEWS + 1, 1))
    own = rng.normal(size=(TRIALS, VIEWS + 1, candidates))
    scores = np.exp(0.4 * np.sqrt(0.5) * (shared + own))
    rank, new = outer_rank(VIEWS, ALPHA), scores[:, -1]
    plain = np.sort(scores[:, :-1], axis=1)[:, rank - 1]
    narrowest = plain.argmin(axis=1)[:, None]
    family = np.sort(scores[:, :-1].max(axis=2), axis=1)[:, rank - 1]
    for trial in range(20):
        known = family_scores(scores[trial, :-1], np.ones(candidates))
        assert family[trial] == threshold(known, ALPHA)
    chosen = [np.take_along_axis(values, narrowest, axis=1) for values in (new, plain)]
    covered = int((chosen[0] <= chosen[1]).sum()), int((new.max(axis=1) <= family).sum())
    return *covered, float(family.mean() / plain[:, 0].mean() - 1)


@pytest.mark.parametrize("candidates", COUNTS)
def test_family_coverage_of_all_candidates_at_once(candidates):
    """Within its bounds, and equal to k / (m + 1) = 11/12 up to the error of the test."""
    _, family, _ = choose_afterwards(candidates)
    exact = outer_rank(VIEWS, ALPHA) / (VIEWS + 1)
    assert 1 - ALPHA <= exact < 1 - ALPHA + Fraction(1, VIEWS + 1)
    assert binom.cdf(family, TRIALS, exact) > FALSE_ALARM, family / TRIALS
    assert binom.sf(family - 1, TRIALS, exact) > FALSE_ALARM, family / TRIALS


@pytest.mark.parametrize("candidates", COUNTS)
def test_family_coverage_is_not_what_the_narrowest_plain_certificate_gives(candidates):
    """The narrowest of K plain certificates falls short of 90%, further with every candidate.

    Eleven calibration views, alpha = 1/10, a plain certificate without choice covers 91.7%:

        K    plain, narrowest   family, any   price in width
        2    87.9%              91.6%         11.3%
        5    83.7%              91.7%         26.2%
        20   76.3%              91.6%         48.5%
    """
    plain, _, _ = choose_afterwards(candidates)
    assert binom.cdf(plain, TRIALS, 0.9) < FALSE_ALARM, plain / TRIALS
    expected = {2: 0.883, 5: 0.834, 20: 0.765}[candidates]  # of 100,000 trials
    assert plain / TRIALS == pytest.approx(expected, abs=0.01)


def test_family_width_is_the_price_of_choosing():
    prices = [choose_afterwards(candidates)[2] for candidates in COUNTS]
    assert prices == pytest.approx([0.11, 0.26, 0.48], abs=0.02)


def test_the_page_has_the_numbers_of_the_simulation():
    page = (Path(__file__).resolve().parents[2] / "docs/three-guarantees.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| ([\d.]+)% \| ([\d.]+)% \| ([\d.]+)% \|$", page, re.M)
    assert tuple(int(row[0]) for row in rows) == COUNTS
    for candidates, *written in rows:
        plain, family, price = choose_afterwards(int(candidates))
        found = [100 * plain / TRIALS, 100 * family / TRIALS, 100 * price]
        assert [float(share) for share in written] == pytest.approx(found, abs=0.5)
