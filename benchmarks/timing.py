# SPDX-License-Identifier: Apache-2.0
"""Timing on a noisy machine: candidates take turns over many rounds, and the spread is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import quantiles


def interleave(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int = 15, budget: float = 60.0
) -> dict[str, dict[str, float]]:
    """Milliseconds of each candidate: minimum, median, quartiles over the rounds.

    Candidates alternate, so that a disturbance hits all of them and ratios stay fair.
    Rounds end early when the budget in seconds is spent; each runs at least three times.
    """
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for run in candidates.values():
        run()
    start = time.perf_counter()
    for turn in range(rounds):
        if turn >= 3 and time.perf_counter() - start > budget:
            break
        for name, run in candidates.items():
            before = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - before))
    return {name: summary(values) for name, values in times.items()}


def summary(values: list[float]) -> dict[str, float]:
    """Minimum, quartiles and count."""
    low, middle, high = quantiles(values, n=4)
    return {
        "min_ms": round(min(values), 3),
        "median_ms": round(middle, 3),
        "quartiles_ms": [round(low, 3), round(high, 3)],  # type: ignore[dict-item]
        "rounds": len(values),
    }


def ratio(timings: Mapping[str, dict[str, float]], top: str, bottom: str) -> float:
    """Of two minima measured in one run."""
    return round(timings[top]["min_ms"] / timings[bottom]["min_ms"], 3)
