# SPDX-License-Identifier: Apache-2.0
"""The numbers on the page about the guarantee are those of the code."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from scipy.stats import beta

from splatcert.conformal import outer_rank, views_needed

PAGE = (Path(__file__).resolve().parents[2] / "docs/guarantee.md").read_text(encoding="utf-8")


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
