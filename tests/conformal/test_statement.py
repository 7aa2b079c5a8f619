# SPDX-License-Identifier: Apache-2.0
"""The words of the guarantee."""

from __future__ import annotations

from fractions import Fraction

import pytest

from splatcert.conformal import state_calibration, state_guarantee
from splatcert.conformal.calibrate import ordinal


def test_the_guarantee():
    assert state_guarantee(Fraction(1, 10), Fraction(1, 3), 9) == (
        "a new exchangeable view has >= 2/3 of its pixels inside their boxes "
        "with probability >= 90%"
    )


def test_the_calibration():
    assert (
        state_calibration(Fraction(1, 10), 30) == "30 views, threshold = 28th smallest of 30 scores"
    )
    assert state_calibration(Fraction(1, 2), 1) == "1 view, threshold = 1st smallest of 1 score"
    assert state_calibration(Fraction(1, 10), 5) == "5 views of the 9 needed, threshold infinite"


@pytest.mark.parametrize(
    "number, words",
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (112, "112th"), (121, "121st")],
)
def test_ordinals(number, words):
    assert ordinal(number) == words
