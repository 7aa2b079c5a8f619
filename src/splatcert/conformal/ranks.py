# SPDX-License-Identifier: Apache-2.0
"""Exact ranks and order statistics: the one place where a quantile becomes an integer.

Both quantiles of the method are order statistics, never interpolated: between two
neighbouring values an interpolated quantile claims a coverage that no box has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.errors import InputError

MANY = 1 << 14
"""Number of values from which bins save time."""


class RankError(InputError):
    """An order statistic that does not exist."""


def ceil_rank(count: int, level: Fraction) -> int:
    """ceil(count * level), in exact arithmetic.

    In floating point, ceil(150 * (1 - 0.18)) is 124 although 150 * 0.82 is 123.
    """
    if not isinstance(level, Fraction):
        raise TypeError(f"an exact rank requires a Fraction, got {level!r}: see parse_level")
    return math.ceil(count * level)


def outer_rank(views: int, alpha: Fraction) -> int:
    """Rank of the threshold among the scores of the calibration views.

    eq:outer-quantile   k = ceil((m + 1) (1 - alpha))

    A rank above m means that m views do not give the guarantee at any finite width.
    """
    return ceil_rank(views + 1, 1 - alpha)


def views_needed(alpha: Fraction) -> int:
    """Smallest number of calibration views with a finite threshold.

    ceil((m + 1) (1 - alpha)) <= m holds if and only if (m + 1) alpha >= 1.
    """
    return math.ceil(1 / alpha) - 1


def order_statistics(values: ArrayLike, ranks: Sequence[int]) -> NDArray[np.float64]:
    """The rank-th smallest values for several ranks, counted from 1."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    if np.isnan(flat).any():
        raise RankError(f"{np.isnan(flat).sum()} of {flat.size} values are NaN and have no rank")
    if outside := [rank for rank in ranks if not 1 <= rank <= flat.size]:
        raise RankError(f"there is no value of rank {outside[0]} among {flat.size}")
    places = np.asarray(ranks, dtype=np.intp) - 1
    if flat.size < MANY or flat.view(np.int64).min() < 0:  # a sign bit
        return np.partition(flat, places)[places]
    return _from_bins(flat, places)


def _from_bins(flat: NDArray[np.float64], places: NDArray[np.intp]) -> NDArray[np.float64]:
    """Values of these places in ascending order, without partitioning all of them.

    Bits of positive numbers are in the order of the numbers, so the leading 16 make bins of which
    only those with a place are partitioned.
    """
    bins = flat.view(np.int64) >> 48
    ends = np.cumsum(np.bincount(bins))
    bin_of = np.searchsorted(ends, places, side="right")
    result = np.empty(len(places))
    for bin_ in np.unique(bin_of):
        members, here = flat[bins == bin_], bin_of == bin_
        within = places[here] - (ends[bin_] - len(members))
        result[here] = np.partition(members, within)[within]
    return result


def order_statistic(values: ArrayLike, rank: int) -> float:
    """The rank-th smallest value, counted from 1, never interpolated."""
    return float(order_statistics(values, [rank])[0])


def rank_correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's correlation; zero if one of the two does not vary."""
    a, b = _average_ranks(x), _average_ranks(y)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def _average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, count = np.unique(np.asarray(values).ravel(), return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]
