# SPDX-License-Identifier: Apache-2.0
"""How well a map ranks the pixels of one view by their error (tab:ranking).

Only the order of the map's values matters: a factor shared by all pixels of a view changes
none of these numbers (lem:nullspace).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

STEPS = 100
MOST_REMOVED = 0.999
"""Share of the pixels that the last step removes."""
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of one view's pixels, sorted once for all maps that rank them."""

    values: Array
    """[n], in the order of the pixels."""

    @cached_property
    def total(self) -> float:
        """Mean of all."""
        return float(self.values.mean())

    @cached_property
    def kept(self) -> NDArray[np.int64]:
        """Pixels that each step of a sparsification curve keeps."""
        removed = np.linspace(0, MOST_REMOVED, STEPS)
        return np.maximum(1, np.ceil((1 - removed) * self.values.size).astype(np.int64))

    @cached_property
    def best(self) -> Array:
        """Mean error that each step leaves if the largest errors are removed first."""
        return _means_of_first(np.sort(self.values), self.kept)

    @cached_property
    def ranks(self) -> Array:
        """Average ranks, centred."""
        ranks = _ranks(self.values, ascending(self.values))
        return ranks - ranks.mean()

    @cached_property
    def spread(self) -> float:
        """Sum of the squared centred ranks."""
        return float(self.ranks @ self.ranks)


def rank_by(errors: Errors, uncertainty: NDArray[np.floating]) -> tuple[float, float]:
    """AUSE and Spearman's correlation of a map with the errors, from one sort of the map."""
    order = ascending(uncertainty)
    ranks = _ranks(uncertainty, order)
    ranks -= ranks.mean()
    size = float(np.sqrt(errors.spread * (ranks @ ranks)))
    correlation = float(errors.ranks @ ranks) / size if size > 0 else 0.0
    return _ause(errors, order), correlation


def ause(residual: ArrayLike, uncertainty: ArrayLike) -> float:
    """Area between two sparsification curves of one view, 0 for a perfect ranking.

    At each of 100 steps the pixels with the largest uncertainty, or with the largest error, are
    removed, and the mean error of the rest is divided by that of all pixels. Zero if the view
    has no error at all.
    """
    errors = Errors(np.asarray(residual, dtype=np.float64).ravel())
    return _ause(errors, ascending(np.asarray(uncertainty).ravel()))


def _ause(errors: Errors, order: NDArray[np.intp]) -> float:
    if errors.total == 0:
        return 0.0
    removed = np.linspace(0, MOST_REMOVED, STEPS)
    gap = _means_of_first(errors.values[order], errors.kept) - errors.best
    gap /= errors.total
    return float(((gap[1:] + gap[:-1]) / 2 * np.diff(removed)).sum())


def ascending(values: NDArray[Any]) -> NDArray[np.intp]:
    """The order of the values; equal ones stay in the order they came in.

    Positive single-precision numbers are sorted as integers made of bits and place, five times as
    fast as a stable sort.
    """
    if values.dtype != np.float32 or values.size >= 1 << 32 or not (values > 0).all():
        return np.argsort(values, kind="stable")
    keys = values.view(np.uint32).astype(np.int64) << 32 | np.arange(values.size)
    keys.sort()
    return keys & 0xFFFFFFFF


def _ranks(values: NDArray[Any], order: NDArray[np.intp]) -> Array:
    """Ranks from 1 of values in this order; equal values share the mean of theirs."""
    sorted_values = values[order]
    group = np.cumsum(np.append(False, sorted_values[1:] != sorted_values[:-1]))
    count = np.bincount(group)
    ranks = np.empty(values.size)
    ranks[order] = (np.cumsum(count) - (count - 1) / 2)[group]
    return ranks


def _means_of_first(values: Array, counts: NDArray[np.int64]) -> Array:
    return np.cumsum(values)[counts - 1] / counts
