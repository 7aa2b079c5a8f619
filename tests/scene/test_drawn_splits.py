# SPDX-License-Identifier: Apache-2.0
"""Runs of consecutive photos held out at random places."""

from __future__ import annotations

import numpy as np
import pytest

from splatcert.scene.split import DrawnRule, HoldoutRuleError, drawn_rule


def places(count: int, rule: str) -> list[int]:
    names = [f"photo_{k:04d}.png" for k in range(count)]
    drawn = drawn_rule(rule)
    assert drawn is not None
    return [names.index(name) for name in sorted(drawn.draw(names))]


@pytest.mark.parametrize(("count", "length", "every"), [(120, 5, 12), (251, 3, 20), (17, 2, 4)])
def test_a_run_is_held_out_whole_in_every_part(count, length, every):
    found = places(count, f"block{length}of{every}")
    runs = np.array(found).reshape(-1, length)
    assert (np.diff(runs, axis=1) == 1).all()
    assert (runs // every == (runs // every)[:, :1]).all()
    assert (runs[:, 0] // every)[: count // every].tolist() == list(range(count // every))
    assert found == places(count, f"block{length}of{every}")


def test_runs_start_anywhere_in_their_part():
    starts = np.array(places(9_000, "block3of9"))[::3] % 9
    counts = np.bincount(starts, minlength=9)
    assert counts[7:].sum() == 0 and counts.sum() == 1_000
    assert abs(counts[:7] - 1_000 / 7).max() < 4 * np.sqrt(1_000 / 7)
    # Kept for good: a certificate names the rule, and anybody may draw again.
    assert places(40, "block3of10") == [2, 3, 4, 11, 12, 13, 26, 27, 28, 31, 32, 33]


def test_the_rule_is_named_in_words_with_its_seed():
    assert drawn_rule("block5of20") == DrawnRule(5, 20)
    assert DrawnRule(5, 20).words == (
        "5 consecutive photos at a random place of every 20 in name order held out (seed 0)"
    )
    assert drawn_rule("block5") is None and drawn_rule(8) is None


@pytest.mark.parametrize("rule", ["block5of5", "block0of4", "block5of41", "block9of3"])
def test_runs_that_leave_nothing_are_refused(rule):
    with pytest.raises(
        HoldoutRuleError, match=f"{rule} cannot split 40 photos(.|\n)*block5of20 holds"
    ):
        places(40, rule)
