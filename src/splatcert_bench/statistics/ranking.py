# SPDX-License-Identifier: Apache-2.0
"""How well a map ranks the pixels of one view by their error (tab:ranking).

Only the order of the map's values matters: a factor shared by all pixels of a view changes
none of these numbers (lem:nullspace).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

STEPS = 100
MOST_REMOVED = 0.999
"""Share of the pixels that the last step removes."""
Array = NDArray[np.float64]


def ause(residual: ArrayLike, uncertainty: ArrayLike) -> float:
    """Area between two sparsification curves of one view, 0 for a perfect ranking.

    At each of 100 steps the pixels with the largest uncertainty, or with the largest error, are
    removed, and the mean error of the rest is divided by that of all pixels. Zero if the view
    has no error at all.
    """
    error = np.asarray(residual, dtype=np.float64).ravel()
    total = float(error.mean())
    if total == 0:
        return 0.0
    order = np.argsort(np.asarray(uncertainty).ravel(), kind="stable")
    removed = np.linspace(0, MOST_REMOVED, STEPS)
    kept = np.maximum(1, np.ceil((1 - removed) * error.size).astype(np.int64))
    gap = _means_of_first(error[order], kept) - _means_of_first(np.sort(error), kept)
    gap /= total
    return float(((gap[1:] + gap[:-1]) / 2 * np.diff(removed)).sum())


def _means_of_first(values: Array, counts: NDArray[np.int64]) -> Array:
    return np.cumsum(values)[counts - 1] / counts
