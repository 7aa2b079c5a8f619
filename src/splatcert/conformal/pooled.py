# SPDX-License-Identifier: Apache-2.0
"""Pixel-pooled conformal prediction, for comparison with View-CP (tab:validity).

It controls the mean of within-view coverage, not the view event: hard views may fall short
as long as easy ones make up for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.calibrate import CalibrationTooSmall
from splatcert.conformal.levels import Level, parse_level
from splatcert.conformal.maps import MapError, Mask, each_view
from splatcert.conformal.ranks import RankError, ceil_rank

_BITS = 16
_DIGITS = 64 // _BITS


def pooled_threshold(
    residuals: Sequence[ArrayLike],
    scales: Sequence[ArrayLike],
    beta: Level,
    masks: Sequence[Mask | None] | None = None,
) -> float:
    """Pixel-pooled conformal prediction: one order statistic over all calibration pixels.

    The ceil((n + 1) (1 - beta))-th smallest ratio r / s among the n pixels of all views
    together; infinity, with a warning, if that rank exceeds n. The result is exact, with one
    view's pixels in memory at a time: the sequences, which may load lazily, are read four times.
    """
    level = parse_level(beta, "beta")
    if any(isinstance(given, Iterator) for given in (residuals, scales, masks)):
        raise MapError("pooling reads the views four times: pass sequences, not iterators")
    pool = Pool(lambda: (view.ratios() for view in each_view(residuals, scales, masks)))
    rank = ceil_rank(pool.size + 1, 1 - level)
    if rank <= pool.size:
        return pool.order_statistic(rank)
    message = f"{pool.size} pixels are too few to pool at beta = {level}: every box is unbounded."
    warnings.warn(message, CalibrationTooSmall, stacklevel=2)
    return float("inf")


class Pool:
    """Non-negative numbers that are read again for each digit instead of being stored.

    Non-negative float64 numbers sort as their bit patterns do. Read as four digits in base
    65,536, the k-th smallest number is found digit by digit from the left: count how often
    each digit occurs among the numbers that begin like the answer, and step to the one in
    which rank k falls. This takes four passes and half a megabyte, and never rounds.
    """

    def __init__(self, read: Callable[[], Iterable[NDArray[np.float64]]]) -> None:
        self._read = read
        self._leading = self._count(known=0, digit=0)
        self.size = int(self._leading.sum())
        """Number of values."""

    def order_statistic(self, rank: int) -> float:
        """The rank-th smallest number, counted from 1."""
        if not 1 <= rank <= self.size:
            raise RankError(f"there is no value of rank {rank} among {self.size}")
        known = 0
        for digit in range(_DIGITS):
            counts = self._count(known, digit) if digit else self._leading
            up_to = counts.cumsum()
            found = int(np.searchsorted(up_to, rank))
            rank -= int(up_to[found] - counts[found])
            known = known << _BITS | found
        return float(np.uint64(known).view(np.float64))

    def _count(self, known: int, digit: int) -> NDArray[np.int64]:
        """How often each value of a digit follows the digits known so far."""
        shift = 64 - _BITS * (digit + 1)
        counts = np.zeros(1 << _BITS, dtype=np.int64)
        for values in self._read():
            # Adding zero turns -0.0, the one zero with a negative pattern, into +0.0.
            patterns = (values + 0.0).view(np.uint64)
            if digit:
                patterns = patterns[patterns >> np.uint64(shift + _BITS) == np.uint64(known)]
            digits = patterns >> np.uint64(shift) & np.uint64((1 << _BITS) - 1)
            counts += np.bincount(digits.astype(np.int64), minlength=1 << _BITS)
        return counts


def native_multiplier(reading: Literal["gaussian", "residual"], beta: Level) -> float:
    """The multiplier of a published map that is used as published, without calibration.

    A map read as the standard deviation of a Gaussian gets the two-sided normal quantile
    for a fraction 1 - beta; one read as the residual itself gets 1. No photo is used, so no
    coverage is guaranteed.
    """
    level = parse_level(beta, "beta")
    if reading == "gaussian":
        return NormalDist().inv_cdf(float(1 - level / 2))
    if reading == "residual":
        return 1.0
    raise MapError(f"a map is read as 'gaussian' or as 'residual', not as {reading!r}")
