# SPDX-License-Identifier: Apache-2.0
"""Levels alpha and beta as exact fractions: 0.1 is one tenth, however it is written."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

from splatcert.errors import InputError

Level = str | int | float | Fraction | Decimal

# Every part is bounded, so that no text from a file can produce a huge integer.
_NUMBER = re.compile(
    r"([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[+-]?\d{1,3})?(?:/\d{1,40})?)(%?)"
)
_FINEST_PERCENT = 3


class LevelError(InputError):
    """A level that cannot be read, or does not lie strictly between 0 and 1."""


def parse_level(value: Level, name: str) -> Fraction:
    """The fraction a level stands for: "0.1", "1/10", "10%" and 0.1 are all 1/10.

    A float is read as the shortest decimal that prints like it. The binary number it
    stores differs (0.1 is stored as 0.1000000000000000055...), and a rank computed from
    that can be off by one.
    """
    level = value if isinstance(value, Fraction) else _read(value, name)
    if not 0 < level < 1:
        hint = (
            f"\n  Write {value}% for {value} per cent."
            if 1 <= level < 100 and "%" not in str(value)
            else ""
        )
        raise LevelError(f"{name} must lie strictly between 0 and 1, got {value}.{hint}")
    return level


def _read(value: Level, name: str) -> Fraction:
    written = str(value).replace(" ", "").lower()
    if match := _NUMBER.fullmatch(written):
        number, percent = match.groups()
        try:
            return Fraction(number) / (100 if percent else 1)
        except (ValueError, ZeroDivisionError):
            pass
    raise LevelError(f"{name} is not a number: {value!r}.\n  Write it as 0.1, 1/10 or 10%.")


def rounded_up_percent(level: Fraction) -> str:
    """An upper bound in words, to a tenth of a percent: 1/21 is 4.8%."""
    return f"{math.ceil(level * 1000) / 10:g}%"


def in_percent(level: Fraction) -> str:
    """A level in words: "90%", "99.5%", or the fraction itself if a percentage would round it."""
    for digits in range(_FINEST_PERCENT + 1):
        if (level * 100 * 10**digits).denominator == 1:
            return f"{float(level * 100):.{digits}f}%"
    return str(level)
