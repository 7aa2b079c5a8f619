# SPDX-License-Identifier: Apache-2.0
"""Levels are fractions, however they are written."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from splatcert.conformal.levels import LevelError, in_percent, parse_level
from splatcert.errors import InputError

TENTH = [0.1, "0.1", ".1", "1/10", "1 / 10", "10%", "10.0 %", "1e-1", Decimal("0.1")]
TENTH += [Fraction(1, 10), np.float64(0.1), np.float32(0.1), np.float16(0.1)]


@pytest.mark.parametrize("written", TENTH, ids=repr)
def test_a_tenth_is_a_tenth(written):
    assert parse_level(written, "alpha") == Fraction(1, 10)


def test_a_float_is_the_decimal_it_prints_as_not_the_binary_it_stores():
    assert parse_level(0.18, "alpha") == Fraction(18, 100)
    assert Fraction(0.18) != Fraction(18, 100)


def test_thirds_and_tiny_levels_are_exact():
    assert parse_level("1/3", "beta") == Fraction(1, 3)
    assert parse_level(1e-300, "beta") == Fraction(1, 10**300)


@pytest.mark.parametrize("value", [0, 1, "0", "1.0", "100%", -0.1, "3/2", 10, "-1/10"], ids=repr)
def test_a_level_outside_the_open_interval_is_refused(value):
    with pytest.raises(LevelError, match=r"alpha must lie strictly between 0 and 1, got "):
        parse_level(value, "alpha")


def test_ten_is_taken_for_a_forgotten_per_cent_sign_but_not_in_silence():
    with pytest.raises(LevelError, match=r"Write 10% for 10 per cent"):
        parse_level(10, "alpha")


@pytest.mark.parametrize(
    "value",
    ["", "ten", "0,1", "1/0", "nan", "inf", float("nan"), True, None, "1/2/3", [0.1]],
    ids=repr,
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InputError, match=r"beta is not a number: .*\n  Write it as 0.1, 1/10"):
        parse_level(value, "beta")


@pytest.mark.parametrize("value", ["1e-999999999", "1" * 5000, "1/" + "9" * 5000], ids=len)
def test_a_text_cannot_ask_for_a_gigantic_integer(value):
    with pytest.raises(LevelError):
        parse_level(value, "alpha")


@pytest.mark.parametrize(
    "level, words",
    [("9/10", "90%"), ("199/200", "99.5%"), ("0.9999", "99.99%"), ("2/3", "2/3"), ("1/8", "12.5%")],
)
def test_percent_is_never_rounded(level, words):
    assert in_percent(Fraction(level)) == words
