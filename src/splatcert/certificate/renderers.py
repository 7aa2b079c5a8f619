# SPDX-License-Identifier: Apache-2.0
"""A certificate that predicts with another renderer than the certified one (decision 0024).

Let A be the certified renderer and B the other one. The frozen rule makes a scale of B's maps as
it does of A's, so the scores under B are exchangeable too, and the guarantee holds with their
order statistic. With the photographs they are computed. Without, each is bounded from the stored
score under A and from both renders at the calibration cameras, and B's boxes there contain A's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
OUTWARD = 1 + 2**-21
"""Eight units in the last place of a float32. Half-widths lose fewer when they are rounded, so that
boxes contain others to the bit."""
MOST_WIDENING = Fraction(1, 10)
"""Boxes may become this much wider on average without photographs. A greater loss is a sign of a
wrong renderer; the guarantee itself would survive it."""


@dataclass(frozen=True, eq=False)
class OtherRenderer:
    """Scores of the calibration views under another renderer, or upper bounds of them."""

    backend: str
    scores: Mapping[Fraction, Array]
    """By beta, in the order of the calibration views, [m]."""
    margin: float = 0.0
    """Added to every half-width. Fixed by training cameras, before any score is looked at."""
    bounded: bool = True
    """Whether the scores are upper bounds; False if the photographs were scored again."""
    widening: float = 0.0
    """Relative change of the mean half-width over the calibration views."""

    def words(self, certified: str) -> str:
        """How the certificate was carried over, in one line."""
        how = (
            "scores bounded by both renders at the calibration cameras"
            if self.bounded
            else "calibration photos scored again"
        )
        return (
            f"{self.backend}, certified with {certified}: {how}; boxes "
            f"{100 * abs(self.widening):.2g}% {'wider' if self.widening >= 0 else 'narrower'} on "
            "average, same guarantee"
        )


@dataclass(frozen=True, eq=False)
class Difference:
    """One camera seen by both renderers."""

    certified: Array
    """s of A, [H, W]."""
    other: Array
    """s of B, [H, W]."""
    apart: Array
    """Largest difference of a colour channel of the box centres, [H, W]."""

    def margin(self, multiplier: float) -> float:
        """Largest difference of centre and half-width together, at this multiplier."""
        return float((self.apart + multiplier * np.abs(self.certified - self.other)).max())

    def containing(self, multipliers: Array, margin: float) -> Array:
        """Least multipliers U of s_B at which B's boxes contain A's, of multipliers R of s_A, [n].

        What is within R s_A of A's centre is within R s_A + apart of B's. So boxes U s_B + margin
        contain A's if U is the max over pixels of (R s_A + apart - margin) / s_B.
        """
        reaches = [
            (r * self.certified + self.apart) * OUTWARD - margin for r in multipliers.tolist()
        ]
        return np.array([max(0.0, float((reach / self.other).max())) for reach in reaches])
