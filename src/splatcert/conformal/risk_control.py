# SPDX-License-Identifier: Apache-2.0
"""The threshold, independently: conformal risk control of the loss "this view fell short".

A verifier that repeats a computation repeats its mistakes. So this module shares no code
with the calibration, works on Python numbers only, and starts from a different theorem
(Angelopoulos et al., Conformal Risk Control, 2024), which for this loss gives the same
threshold.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from fractions import Fraction

Number = str | float | Fraction


def risk_control_threshold(scores: Iterable[float], alpha: Number) -> float:
    """Smallest q at which the corrected empirical risk is at most alpha.

        n/(n+1) * Rhat(q) + 1/(n+1) <= alpha,    Rhat(q) = mean of 1{score > q}

    The risk is a step function that falls at scores only, so only they are tried. The result
    is infinity if none of them is large enough.
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


def path_risk_control(
    view_scores: Iterable[float], length: int, gamma: Number, alpha: Number
) -> float:
    """The path threshold from view scores in capture order, without any stretch score.

    The loss of a stretch is 1 if more than a share gamma of its views exceed q.
    """
    scores, share = _numbers(view_scores), Fraction(str(gamma))
    starts = range(0, len(scores) - length + 1, length)
    runs = [scores[start : start + length] for start in starts]

    def losses(q: float | Fraction) -> int:
        return sum(Fraction(sum(one > q for one in run), length) > share for run in runs)

    tried = (one for run in runs for one in run)
    return _first_controlled(tried, losses, len(runs), alpha)


def family_risk_control(
    scores: Iterable[Iterable[float]],
    units: Iterable[float],
    alpha: Number,
    length: int = 1,
    gamma: Number = 0,
) -> float:
    """The family threshold from every candidate's view scores, [views, K], without any maximum.

    The loss of a stretch is 1 if, for some candidate, more than a share gamma of its views
    exceed q times the candidate's unit, in exact arithmetic; the result is rounded once. For a
    family about single views, each of them is a stretch.
    """
    bounds, share = [Fraction(float(unit)) for unit in units], Fraction(str(gamma))
    rows = [[Fraction(one) for one in _numbers(row)] for row in scores]
    starts = range(0, len(rows) - length + 1, length)
    runs = [
        [
            [score / unit for score in column]
            for column, unit in zip(zip(*rows[at : at + length], strict=True), bounds, strict=True)
        ]
        for at in starts
    ]

    def losses(q: float | Fraction) -> int:
        return sum(
            any(Fraction(sum(r > q for r in one), length) > share for one in run) for run in runs
        )

    tried = (r for run in runs for one in run for r in one)
    return _first_controlled(tried, losses, len(runs), alpha)


def _numbers(values: Iterable[float]) -> list[float]:
    known = [float(value) for value in values]
    if any(map(math.isnan, known)):
        raise ValueError("a score is NaN: it is neither above nor below a threshold")
    return known


def _first_controlled(
    tried: Iterable[float | Fraction],
    losses: Callable[[float | Fraction], int],
    units: int,
    alpha: Number,
) -> float:
    """Smallest number tried at which (losses + 1) / (units + 1) is at most alpha, or infinity.

    Losses never grow with q, so bisection finds it.
    """
    level, ordered = Fraction(str(alpha)), sorted(tried)
    at = bisect_left(ordered, True, key=lambda q: Fraction(losses(q) + 1, units + 1) <= level)
    return float(ordered[at]) if at < len(ordered) else math.inf
