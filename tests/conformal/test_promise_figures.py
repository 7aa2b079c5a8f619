# SPDX-License-Identifier: Apache-2.0
"""The measured tables about paths and families are those of the results, and follow from them."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from splatcert.conformal import path_threshold, stretch_score, threshold
from splatcert.conformal.calibrate import threshold_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/three-guarantees.md").read_text(encoding="utf-8")
PATHS = json.loads((ROOT / "benchmarks/results/paths.json").read_text(encoding="utf-8"))
FAMILY = json.loads((ROOT / "benchmarks/results/families.json").read_text(encoding="utf-8"))


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def test_the_table_of_captures():
    for row in PATHS["scenes"]:
        shares = [row["gammas"][g][name] for g in ("1/5", "0") for name in ("path", "view")]
        cells = [str(row["stretches"]), f"{row['neighbour_correlation']:.2f}"]
        line = f"| {row['scene']} | {' | '.join([*cells, *map(percent, shares)])} |"
        assert line in PAGE
    count = len(re.findall(r"^\| \w+ \| \d+ \| -?\d\.\d\d \|(?: [\d.]+% \|){4}$", PAGE, re.M))
    assert count == len(PATHS["scenes"])


@pytest.mark.parametrize("gamma", ["1/5", "0"])
def test_stored_scores_give_the_stored_shares_again(gamma):
    """One split by hand for every capture, and the path promise within chance of 90%."""
    for row in PATHS["scenes"]:
        table = np.array(row["scores"])
        needed = np.array([stretch_score(run, gamma) for run in table])
        first = PATHS["calibrating"]
        q = path_threshold(needed[:first], PATHS["alpha"])
        found = row["gammas"][gamma]
        assert found["later_covered"] == (needed[first:] <= q).sum()
        assert abs(found["path"] - 0.9) < 4 * np.sqrt(0.09 / PATHS["splits"])
        assert threshold(table[:first].ravel(), PATHS["alpha"]) > 0


def test_the_table_of_members():
    for one in FAMILY["family"]["members"]:
        line = (
            f"| {one['name']} | {one['scale']} | {one['gaussians']:,} | {255 * one['width']:.1f} "
            f"| {percent(one['price'])} |"
        )
        assert line in PAGE
        assert one["price"] == pytest.approx(one["threshold"] / one["alone"] - 1)


def test_the_worst_path_promise_is_the_largest_stretch():
    """Nine stretches at alpha = 1/10 leave no choice of rank."""
    scores = np.arange(1.0, 10.0)
    assert threshold_of(scores, Fraction(PATHS["alpha"])) == 9
