# SPDX-License-Identifier: Apache-2.0
"""Statistics over scenes, the only units that say something about a new scene.

Splits of one scene reuse its views, so intervals resample scenes and tests count them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from splatcert.errors import InputError

RESAMPLES = 10_000
LEVEL = 0.95
FEWEST = 4
"""Scenes below which there is no interval and no test."""


class SceneError(InputError):
    """Per-scene numbers that cannot be compared."""


@dataclass(frozen=True)
class Mean:
    """A mean over scenes with its bootstrap interval."""

    value: float
    low: float | None
    """None, as the upper end, with too few scenes to resample."""
    high: float | None
    scenes: int


@dataclass(frozen=True)
class Comparison:
    """Two scales on the same scenes."""

    gap: Mean
    wins: int
    scenes: int
    """Scenes with any difference, as the sign test counts them."""
    p: float | None
    """Exact two-sided sign test; 1 if no scene differs, None with too few scenes."""

    @property
    def is_shown(self) -> bool:
        """Whether the left side is better beyond chance: by the interval and by the sign test."""
        return is_shown(self.gap.low, self.p)


def mean_over_scenes(values: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> Mean:
    """Mean of one number per scene, with the 95% percentile interval of resampled scenes.

    Fewer than four scenes have no interval.
    """
    known = _numbers(values)
    if known.size < FEWEST:
        return Mean(float(known.mean()), None, None, known.size)
    low, high = np.quantile(_resampled_means(known, resamples, seed), _tails())
    return Mean(float(known.mean()), float(low), float(high), known.size)


def compare(ours: ArrayLike, theirs: ArrayLike, resamples: int = RESAMPLES) -> Comparison:
    """Paired comparison, scene by scene; larger is better."""
    left, right = _numbers(ours), _numbers(theirs)
    if left.shape != right.shape:
        raise SceneError(f"{left.size} scenes cannot be paired with {right.size}")
    gaps = left - right
    wins, differ = int((gaps > 0).sum()), int((gaps != 0).sum())
    p = sign_test(wins, differ) if gaps.size >= FEWEST else None
    return Comparison(mean_over_scenes(gaps, resamples), wins, differ, p)


def is_shown(low: float | None, p: float | None) -> bool:
    """Whether an advantage is demonstrated: the whole interval is above zero, and p is small."""
    return low is not None and low > 0 and p is not None and p <= 1 - LEVEL


def sign_test(wins: int, scenes: int) -> float:
    """Probability of a result at least as uneven if both sides were equally likely to win."""
    return float(binomtest(wins, scenes, 0.5).pvalue) if scenes else 1.0


def _resampled_means(values: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    generator = np.random.Generator(np.random.PCG64(seed))
    return values[generator.integers(0, values.size, (resamples, values.size))].mean(axis=1)


def _tails() -> tuple[float, float]:
    return (1 - LEVEL) / 2, (1 + LEVEL) / 2


def _numbers(values: ArrayLike) -> NDArray[np.float64]:
    known = np.asarray(values, dtype=np.float64)
    if known.ndim != 1 or not known.size or not np.isfinite(known).all():
        raise SceneError(f"expected one finite number per scene, got {known.tolist()!r:.80}")
    return known
