# SPDX-License-Identifier: Apache-2.0
"""The threshold by another road: conformal risk control of the loss "this view fell short".

A verifier that repeats a computation repeats its mistakes. So this module shares no code
with the calibration, works on Python numbers only, and starts from another theorem
(Angelopoulos et al., Conformal Risk Control, 2024), which for this loss gives the same
threshold.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction


def risk_control_threshold(scores: Iterable[float], alpha: str | float | Fraction) -> float:
    """Smallest q at which the corrected empirical risk is at most alpha.

        n/(n+1) * Rhat(q) + 1/(n+1) <= alpha,    Rhat(q) = mean of 1{score > q}

    The risk is a step function that falls at scores only, so only they are tried; infinity
    if none will do.
    """
    level, ordered = Fraction(str(alpha)), sorted(float(score) for score in scores)
    if any(map(math.isnan, ordered)):
        raise ValueError("a score is NaN: it neither exceeds a threshold nor stays below it")
    n = len(ordered)
    for q in ordered:
        risk = Fraction(n - bisect_right(ordered, q), n)
        if Fraction(n, n + 1) * risk + Fraction(1, n + 1) <= level:
            return q
    return math.inf
