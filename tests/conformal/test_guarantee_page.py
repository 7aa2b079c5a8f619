# SPDX-License-Identifier: Apache-2.0
"""The numbers on the pages about the guarantee and its levels are those of the code."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from scipy.stats import beta

from splatcert.conformal import outer_rank, views_needed

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "guarantee.md").read_text(encoding="utf-8")
CHOOSING = (DOCS / "choosing.md").read_text(encoding="utf-8")
MEASURED = DOCS.parent / "benchmarks/results/certificates.json"
WORST = {"finite, and the worst": 1, "the same": 1, "the second": 2, "the third": 3, "the fifth": 5}


def test_the_table_of_smallest_m():
    alphas = re.search(r"^\| α \|(.*)\|$", PAGE, re.M)
    sizes = re.search(r"^\| smallest m \|(.*)\|$", PAGE, re.M)
    assert alphas and sizes
    written = zip(alphas[1].split("|"), sizes[1].split("|"), strict=True)
    for alpha, size in written:
        assert views_needed(Fraction(alpha.strip())) == int(size)


def test_the_table_of_calibration_draws():
    alpha = Fraction(1, 10)
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ([\d/]+) \| ([\d.]+)% \|$", PAGE, re.M)
    assert len(rows) == 6
    for m, k, share, level in ((int(m), int(k), s, float(x)) for m, k, s, x in rows):
        assert k == outer_rank(m, alpha)
        assert Fraction(share) == Fraction(k, m + 1)
        assert level == pytest.approx(100 * beta.ppf(0.1, k, m + 1 - k), abs=0.05)


def test_the_table_of_photographs_to_hold_out():
    rows = re.findall(r"^\| (\d+) \| every (\d)\w\w \| (\d+) \| ([\w, ]+) \|$", CHOOSING, re.M)
    assert len(rows) == 6
    for photos, every, m, words in rows:
        assert int(m) == len(range(0, int(photos), int(every)))
        place = int(m) - outer_rank(int(m), Fraction(1, 10)) + 1
        assert next(k for start, k in WORST.items() if words.startswith(start)) == place


def test_the_table_of_what_levels_cost():
    content = json.loads(MEASURED.read_text(encoding="utf-8"))
    known = {row["scene"]: row for row in content["certificates"] + content["sources"]}
    head = re.search(r"^\| capture \| m \|(.*)\|$", CHOOSING, re.M)
    assert head
    levels = re.findall(r"([αβ]) = ([\d/]+)", head[1])
    rows = re.findall(r"^\| (\w+) \| (\d+) \|((?: \d\.\d\d \|){6})$", CHOOSING, re.M)
    assert sorted(name for name, _, _ in rows) == sorted(known)
    for name, m, cells in rows:
        widths, promise = known[name]["widths"], known[name]["guarantee"]
        assert (promise["alpha"], promise["beta"]) == ("1/10", "1/10")
        assert int(m) == promise["views"]
        for (level, value), cell in zip(levels, cells.split("|")[:-1], strict=True):
            share = widths["alpha" if level == "α" else "beta"][value] / widths["beta"]["1/10"]
            assert float(cell) == pytest.approx(share, abs=0.005)
