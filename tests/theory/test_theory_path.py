# SPDX-License-Identifier: Apache-2.0
"""The path guarantee: exact by enumeration, and by simulation on autocorrelated scores.

Given their values, exchangeable stretches are equally likely to stand in any order. So the
probability that the new stretch is covered is the share of the m + 1 stretches that are
covered when they are the one left out. Views inside a stretch keep their order.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from paper_in_fractions import levels, smallest
from scipy.stats import binom

from splatcert.conformal import (
    PathConformal,
    measure_coverage,
    outer_rank,
    path_threshold,
    stretch_score,
    threshold,
)
from splatcert.conformal.ranks import ceil_rank

shares = levels | st.just(Fraction(0))
ALPHA = Fraction(1, 10)


@st.composite
def stretches(draw, score, **options):
    """View scores of m + 1 stretches of one length."""
    length = draw(st.integers(2, 6))
    count = draw(st.integers(2, 12)) * length
    values = draw(st.lists(score, min_size=count, max_size=count, **options))
    return [values[at : at + length] for at in range(0, count, length)]


with_ties = stretches(st.integers(1, 9).map(float))
without_ties = stretches(st.floats(0.01, 100), unique=True)


def left_out(items, index):
    return [*items[:index], *items[index + 1 :]]


def is_covered(run, q, gamma) -> bool:
    """The event, from its definition: at least a share 1 - gamma of the views are covered."""
    return Fraction(sum(score <= q for score in run), len(run)) >= 1 - gamma


def coverage(runs, alpha, gamma) -> Fraction:
    """Probability of the event, over every choice of the new stretch."""
    scores = [stretch_score(run, gamma) for run in runs]
    covered = [
        is_covered(run, path_threshold(left_out(scores, index), alpha), gamma)
        for index, run in enumerate(runs)
    ]
    return Fraction(sum(covered), len(runs))


def carries(runs, alpha) -> bool:
    return outer_rank(len(runs) - 1, alpha) < len(runs)


@given(st.lists(st.integers(1, 9).map(float), min_size=1, max_size=9), shares, st.integers(0, 10))
def test_a_stretch_is_covered_if_and_only_if_its_score_is_at_most_q(run, gamma, q):
    """lem:event, one level up; at most floor(L gamma) views fall short."""
    score = stretch_score(run, gamma)
    assert score == smallest(run, math.ceil(len(run) * (1 - gamma)))
    assert (score <= q) == is_covered(run, q, gamma)
    assert (score <= q) == (sum(one > q for one in run) <= math.floor(len(run) * gamma))


@given(with_ties, levels, shares)
def test_path_validity_for_every_choice_of_test_stretch(runs, alpha, gamma):
    assume(carries(runs, alpha))
    assert coverage(runs, alpha, gamma) >= 1 - alpha


@given(without_ties, levels, shares)
def test_path_validity_is_exact_without_ties(runs, alpha, gamma):
    """The probability is k / (m + 1), hence below 1 - alpha + 1 / (m + 1)."""
    assume(carries(runs, alpha))
    found = coverage(runs, alpha, gamma)
    assert found == Fraction(outer_rank(len(runs) - 1, alpha), len(runs))
    assert 1 - alpha <= found < 1 - alpha + Fraction(1, len(runs))


@given(st.integers(0, 2**32 - 1), st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1, 2)]))
def test_path_validity_of_the_whole_chain_from_pixels_to_the_stretch_event(seed, gamma):
    """Scores, threshold and counts of covered pixels, all by the package, in float64."""
    alpha, beta, length, count = Fraction(1, 3), Fraction(1, 4), 3, 5
    rng = np.random.default_rng(seed)
    residuals = np.round(rng.exponential(20, (count, length, 2, 4))) / 255
    scales = rng.uniform(0.1, 0.9, residuals.shape)
    covered = 0
    for index in range(count):
        rest = [np.concatenate(left_out(maps, index)) for maps in (residuals, scales)]
        q = PathConformal(alpha, beta, gamma, length).conformalize(*rest).threshold
        views = measure_coverage(residuals[index], scales[index], q, beta).covered_views
        covered += Fraction(views, length) >= 1 - gamma
    assert Fraction(covered, count) >= 1 - alpha


TRIALS = 20_000
FALSE_ALARM = 1e-4
STRETCHES = 9
RHOS = (0, 0.5, 0.9)
SETTINGS = [(5, Fraction(1, 5)), (10, Fraction(1, 10)), (5, Fraction(0))]


def autocorrelated(rho, length):
    """View scores along TRIALS paths, AR(1) in their logarithm, [trials, m + 1, length]."""
    noise = np.random.default_rng([31, int(10 * rho), length]).normal(
        size=((STRETCHES + 1) * length, TRIALS)
    )
    log = noise.copy()
    for view in range(1, len(noise)):
        log[view] = rho * log[view - 1] + math.sqrt(1 - rho**2) * noise[view]
    return np.exp(0.4 * log).T.reshape(TRIALS, STRETCHES + 1, length)


def at_rank(scores, rank):
    return np.partition(scores, rank - 1, axis=-1)[..., rank - 1]


@cache
def shares_covered(rho, length, gamma, *, last=False):
    """Share of new stretches covered by the path threshold, and by the view threshold.

    One of the m + 1 stretches of each path is new, drawn at random, which makes it
    exchangeable with the others however strongly neighbours depend on each other; or it is
    the last, beyond the end of all others, which does not.
    """
    paths = autocorrelated(rho, length)
    drawn = np.random.default_rng(32).integers(0, STRETCHES + 1, TRIALS)
    new = np.full(TRIALS, STRETCHES) if last else drawn
    chosen = np.arange(STRETCHES + 1) == new[:, None]
    rest = paths[~chosen].reshape(TRIALS, STRETCHES, length)
    inner = ceil_rank(length, 1 - gamma)
    path = at_rank(at_rank(rest, inner), outer_rank(STRETCHES, ALPHA))
    view = at_rank(rest.reshape(TRIALS, -1), outer_rank(STRETCHES * length, ALPHA))
    for trial in range(20):
        scores = [stretch_score(run, gamma) for run in rest[trial]]
        assert path[trial] == path_threshold(scores, ALPHA)
        assert view[trial] == threshold(rest[trial].ravel(), ALPHA)
    found = at_rank(paths[chosen].reshape(TRIALS, length), inner)
    return int((found <= path).sum()), int((found <= view).sum())


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("length, gamma", SETTINGS, ids=str)
def test_path_coverage_does_not_depend_on_autocorrelation(rho, length, gamma):
    """Within its bounds, and equal to k / (m + 1) = 9/10 up to the error of the test."""
    path, _ = shares_covered(rho, length, gamma)
    exact = outer_rank(STRETCHES, ALPHA) / (STRETCHES + 1)
    assert 1 - ALPHA <= exact < 1 - ALPHA + Fraction(1, STRETCHES + 1)
    assert binom.cdf(path, TRIALS, exact) > FALSE_ALARM, path / TRIALS
    assert binom.sf(path - 1, TRIALS, exact) > FALSE_ALARM, path / TRIALS


def test_path_coverage_is_not_what_a_view_threshold_gives():
    """The view threshold, misread as a path promise, falls short of 90% of stretches.

    Nine calibration stretches, alpha = 1/10, share of new stretches that keep the promise:

        L   gamma   rho   path threshold   view threshold
        5   1/5     0     89.7%            92.5%
        5   1/5     0.5   90.2%            88.7%
        5   1/5     0.9   90.2%            86.0%
        10  1/10    0     89.9%            73.8%
        10  1/10    0.5   90.0%            72.5%
        10  1/10    0.9   89.5%            76.0%
        5   0       0     89.7%            64.7%
        5   0       0.5   90.2%            69.7%
        5   0       0.9   90.0%            77.2%

    One miss in five independent views happens to be generous enough; nothing else is.
    """
    short = {
        (rho, length, gamma)
        for rho in RHOS
        for length, gamma in SETTINGS
        if binom.cdf(shares_covered(rho, length, gamma)[1], TRIALS, 0.9) < FALSE_ALARM
    }
    everything = {(rho, length, gamma) for rho in RHOS for length, gamma in SETTINGS}
    assert everything - short == {(0, 5, Fraction(1, 5))}


def test_path_coverage_needs_a_stretch_that_is_exchangeable():
    """Beyond the end of a strongly autocorrelated capture, coverage is below the promise."""
    for length, gamma in SETTINGS:
        path, _ = shares_covered(0.9, length, gamma, last=True)
        assert 0.84 < path / TRIALS < 0.89
        path, _ = shares_covered(0, length, gamma, last=True)
        assert binom.cdf(path, TRIALS, 0.9) > FALSE_ALARM


def test_the_page_has_the_numbers_of_the_simulation():
    page = (Path(__file__).resolve().parents[2] / "docs/three-guarantees.md").read_text("utf-8")
    row = r"^\| (\d+) \| ([\d/]+) \| ([\d.]+) \| ([\d.]+)% \| ([\d.]+)% \| ([\d.]+)% \|$"
    rows = re.findall(row, page, re.M)
    assert len(rows) == len(SETTINGS) * len(RHOS)
    for length, gamma, rho, *written in rows:
        setting = float(rho), int(length), Fraction(gamma)
        found = (*shares_covered(*setting), shares_covered(*setting, last=True)[0])
        assert [float(share) for share in written] == pytest.approx(
            [100 * count / TRIALS for count in found], abs=0.5
        )
