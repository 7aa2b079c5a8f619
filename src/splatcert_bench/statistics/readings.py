# SPDX-License-Identifier: Apache-2.0
"""Three readings of one map: uncalibrated, pooled over pixels, and by views (tab:validity).

All use counts of rounded ratios (see `studies.counts`), so the three are compared on exactly the
same numbers, at any level.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.ranks import ceil_rank
from splatcert.conformal.splits import split_thresholds
from splatcert_bench.studies.counts import BINS, EDGES, STEPS, Counts

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coverage:
    """Coverage of a reading on the test views of every split."""

    inside: NDArray[np.int64]
    """Pixels inside their boxes, [splits, V]."""
    pixels: NDArray[np.int64]
    """[V]."""
    test: NDArray[np.bool_]
    """[splits, V]."""
    beta: Fraction

    @property
    def pixel_coverage(self) -> float:
        """Share of test pixels inside, averaged over splits."""
        return float(np.mean((self.inside * self.test).sum(1) / (self.pixels * self.test).sum(1)))

    @property
    def view_coverage(self) -> float:
        """Share of test views with enough pixels inside, averaged over splits."""
        return float(np.mean((self._enough & self.test).sum(1) / self.test.sum(1)))

    @property
    def successes(self) -> NDArray[np.bool_]:
        """Whether each (split, test view) pair has enough pixels inside, flat."""
        return self._enough[self.test]

    @property
    def _enough(self) -> NDArray[np.bool_]:
        needed = np.array([ceil_rank(int(n), 1 - self.beta) for n in self.pixels])
        return self.inside >= needed

    @property
    def fractions(self) -> Array:
        """Covered share of every (split, test view) pair, flat."""
        return (self.inside / self.pixels)[self.test]


def cumulative(counts: Counts, factors: Array | None = None) -> NDArray[np.int64]:
    """Number of pixels with a ratio up to each edge, [V, BINS], ratios divided by a_v first.

    The division shifts a view's counts by whole steps, rounded so that no ratio gets smaller.
    """
    summed = np.cumsum(counts, axis=1, dtype=np.int64)
    if factors is None:
        return summed
    steps = np.floor(np.log2(factors) * STEPS).astype(np.int64)
    places = np.arange(BINS - 1)[None, :] + steps[:, None]
    moved = np.take_along_axis(summed, places.clip(0, BINS - 2), axis=1)
    moved[places < 0] = 0
    return np.concatenate([moved, summed[:, -1:]], axis=1)


def pooled_coverage(
    covered: NDArray[np.int64], beta: Fraction, splits: NDArray[np.bool_]
) -> Coverage:
    """One multiplier from all calibration pixels of a split together."""
    pixels = covered[:, -1]
    pooled = splits.astype(np.int64) @ covered
    ranks = np.array([ceil_rank(int(n) + 1, 1 - beta) for n in pooled[:, -1]])
    places = (pooled >= ranks[:, None]).argmax(axis=1)
    places[ranks > pooled[:, -1]] = BINS - 1
    return Coverage(covered[:, places].T, pixels, ~splits, beta)


def view_coverage(
    covered: NDArray[np.int64], alpha: Fraction, beta: Fraction, splits: NDArray[np.bool_]
) -> Coverage:
    """View-CP: one multiplier from the calibration views' scores."""
    pixels = covered[:, -1]
    needed = np.array([ceil_rank(int(n), 1 - beta) for n in pixels])
    scores = EDGES[(covered >= needed[:, None]).argmax(axis=1)]
    places = np.searchsorted(EDGES, split_thresholds(scores, alpha, splits))
    return Coverage(covered[:, places].T, pixels, ~splits, beta)


def native_coverage(
    inside: NDArray[np.int64],
    pixels: NDArray[np.int64],
    beta: Fraction,
    splits: NDArray[np.bool_],
) -> Coverage:
    """The raw map without any calibration."""
    return Coverage(np.broadcast_to(inside, splits.shape), pixels, ~splits, beta)
