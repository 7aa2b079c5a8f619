# SPDX-License-Identifier: Apache-2.0
"""The paper's definitions, word for word, in exact arithmetic and without NumPy.

The claims are checked on these, with no tolerance at all, and the package is checked
against these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

Map = Sequence[Fraction]


def smallest(values: Sequence[Fraction], rank: int) -> Fraction:
    """The rank-th smallest value, counted from 1."""
    return sorted(values)[rank - 1]


def score(residual: Map, scale: Map, beta: Fraction) -> Fraction:
    """eq:view-score."""
    ratios = [r / s for r, s in zip(residual, scale, strict=True)]
    return smallest(ratios, math.ceil(len(ratios) * (1 - beta)))


def threshold(scores: Sequence[Fraction], alpha: Fraction) -> Fraction | float:
    """eq:outer-quantile."""
    rank = math.ceil((len(scores) + 1) * (1 - alpha))
    return smallest(scores, rank) if rank <= len(scores) else math.inf


def succeeds(residual: Map, scale: Map, q: Fraction | float, beta: Fraction) -> bool:
    """eq:view-event: the fraction of pixels inside their boxes is at least 1 - beta."""
    inside = sum(r <= q * s for r, s in zip(residual, scale, strict=True))
    return Fraction(inside, len(residual)) >= 1 - beta


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def floats(values: Sequence[Fraction]) -> list[float]:
    return [float(value) for value in values]


levels = st.integers(2, 40).flatmap(
    lambda bottom: st.integers(1, bottom - 1).map(lambda top: Fraction(top, bottom))
)
"""Any probability strictly between 0 and 1."""

grey_steps = st.integers(0, 255).map(lambda step: Fraction(step, 255))
"""Residuals of 8-bit photos: ties abound."""

positive = st.integers(1, 3000).map(lambda sixtieths: Fraction(sixtieths, 60))
"""Scales and view factors."""


@st.composite
def views(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction]]:
    """A view's residual and scale, pixel by pixel."""
    n = draw(st.integers(1, 15))
    residual = draw(st.lists(grey_steps, min_size=n, max_size=n))
    return residual, draw(st.lists(positive, min_size=n, max_size=n))


@st.composite
def shapes(draw: st.DrawFn) -> list[Fraction]:
    """A positive map with mean one, which is what b~ is."""
    field = draw(st.lists(positive, min_size=1, max_size=15))
    return [value / mean(field) for value in field]
