# SPDX-License-Identifier: Apache-2.0
"""The permutation test: valid when nothing is wrong, awake when something is."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, rankdata

from splatcert.conformal import permutation_test
from splatcert.conformal.permutation import PermutationError, centred_ranks


def orbit(views):
    """A made capture: order, camera centres and viewing directions around a circle."""
    angle = np.linspace(0, 2 * np.pi, views, endpoint=False)
    centres = np.stack([np.cos(angle), np.sin(angle), 0.1 * np.cos(3 * angle)], axis=1)
    return {"capture order": np.arange(views), "position": centres, "direction": -centres}


@given(st.lists(st.integers(0, 5).map(float) | st.just(np.inf), min_size=1, max_size=30))
def test_centred_ranks_are_mid_ranks(scores):
    values = np.array(scores)
    assert (centred_ranks(values) == 2 * rankdata(values) - (len(values) + 1)).all()


def test_p_values_are_those_of_full_enumeration():
    """On five views, all 120 assignments counted by hand."""
    scores = np.array([1.0, 2.0, 2.0, 5.0, 3.0])
    ranks = centred_ranks(scores)

    def statistics(z):
        z = np.array(z)
        return np.abs(np.cumsum(z)).max(), (z[1:] * z[:-1]).sum()

    everything = np.array([statistics(z) for z in permutations(ranks)])
    expected = (everything >= np.array(statistics(ranks))).mean(axis=0)
    found = permutation_test(scores, {"time": np.arange(5)}, permutations=20_000)
    p_values = [finding.p_value for finding in found.findings]
    assert p_values == pytest.approx(expected, abs=0.015)


def test_the_p_value_is_valid_when_scores_are_exchangeable():
    """Over many made captures it is as small as p in no more than a share p of them."""
    rng, trials = np.random.default_rng(6), 300
    found = [
        permutation_test(
            np.round(rng.lognormal(0, 1, 15), 1), orbit(15), permutations=99, seed=trial
        ).p_value
        for trial in range(trials)
    ]
    for level in (0.05, 0.1, 0.3):
        small = int((np.array(found) <= level).sum())
        assert binom.sf(small - 1, trials, level) > 1e-3
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)


def test_drift_along_the_capture_is_noticed():
    rng = np.random.default_rng(7)
    scores = np.linspace(1, 2, 24) * rng.lognormal(0, 0.1, 24)
    found = permutation_test(scores, {"capture order": np.arange(24)})
    assert found.p_value < 0.001
    assert found.strongest.coordinate == "capture order"


def test_a_jump_in_the_middle_is_drift():
    scores = np.where(np.arange(30) < 20, 1.0, 3.0) * np.random.default_rng(8).lognormal(0, 0.2, 30)
    found = permutation_test(scores, {"capture order": np.arange(30)})
    drift = next(finding for finding in found.findings if finding.statistic == "drift")
    assert drift.p_value < 0.001 and drift.value > 1.36


def test_a_hard_corner_is_noticed_whatever_the_order():
    """Cameras near one place are hard; photographs were taken in random order."""
    rng = np.random.default_rng(9)
    places = rng.uniform(-1, 1, (30, 3))
    scores = np.exp(-2 * np.linalg.norm(places - 0.8, axis=1)) * rng.lognormal(0, 0.1, 30)
    found = permutation_test(scores, {"capture order": np.arange(30), "position": places})
    assert found.p_value < 0.01
    assert found.strongest.coordinate == "position"
    assert found.strongest.statistic == "Moran's I"


def test_order_is_read_from_the_coordinate_not_from_the_list():
    scores, order = np.arange(20.0), np.random.default_rng(10).permutation(20)
    straight = permutation_test(scores, {"time": np.arange(20)})
    shuffled = permutation_test(scores[order], {"time": order})
    values = [[finding.value for finding in test.findings] for test in (straight, shuffled)]
    assert values[0] == values[1]
    assert shuffled.p_value == 1 / 10_000


def test_having_tried_several_statistics_is_paid_for():
    rng = np.random.default_rng(11)
    found = permutation_test(rng.random(20), orbit(20), permutations=999)
    smallest = found.strongest.p_value
    assert smallest <= found.p_value <= min(1, 4 * smallest + 1e-12)
    assert len(found.findings) == 4


def test_one_statistic_alone_needs_no_correction():
    found = permutation_test(np.random.default_rng(12).random(20), {"place": np.eye(20)[:, :3]})
    assert len(found.findings) == 1 and found.p_value == found.findings[0].p_value


def test_equal_seeds_give_equal_answers():
    scores = np.random.default_rng(13).random(15)
    first, again, other = (permutation_test(scores, orbit(15), seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.findings[0].value == other.findings[0].value
    assert first.p_value == pytest.approx(other.p_value, abs=0.03)


@pytest.mark.parametrize("scores", [[1.0], [1.0, 2.0], [3.0] * 12, [np.inf] * 12], ids=str)
def test_what_cannot_be_doubted_is_not(scores):
    """One view, two views, or all scores equal: no evidence, p = 1, no warning."""
    assert permutation_test(scores, orbit(len(scores)), permutations=99).p_value == 1


def test_it_speaks_in_one_line():
    found = permutation_test(np.arange(20.0), {"capture order": np.arange(20)})
    assert found.in_words() == (
        "p = 0.0001 over 20 views, strongest: lag-1 correlation in capture order (+0.85)"
    )


@pytest.mark.parametrize(
    "scores, coordinates, message",
    [
        ([], {"time": []}, "one number per view"),
        ([1.0, np.nan], {"time": [0, 1]}, "none of them NaN"),
        ([1.0, 2.0], {"time": [0, 1, 2]}, "'time' must have a row for each of 2 views"),
        ([1.0, 2.0], {"time": [0, np.inf]}, "'time' must be finite"),
        ([1.0, 2.0], {}, "at least one permutation and one coordinate"),
    ],
)
def test_what_cannot_be_tested_is_refused(scores, coordinates, message):
    with pytest.raises(PermutationError, match=message):
        permutation_test(scores, coordinates)
