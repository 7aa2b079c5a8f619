# SPDX-License-Identifier: Apache-2.0
"""The two readings of a scale map that are not View-CP, for comparison (tab:validity).

Neither controls the view event. Pixel pooling controls the mean of within-view coverage:
hard views may fall short as long as easy ones make up for them. A native reading controls
nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Literal

from numpy.typing import ArrayLike

from splatcert.conformal.calibrate import CalibrationTooSmall
from splatcert.conformal.levels import Level, parse_level
from splatcert.conformal.maps import MapError, Mask, each_view
from splatcert.conformal.order import ceil_rank
from splatcert.conformal.pool import Pool


def pooled_threshold(
    residuals: Sequence[ArrayLike],
    scales: Sequence[ArrayLike],
    beta: Level,
    masks: Sequence[Mask | None] | None = None,
) -> float:
    """Pixel-pooled conformal prediction: one order statistic over all calibration pixels.

    The ceil((n + 1) (1 - beta))-th smallest ratio r / s among the n pixels of all views
    together; infinity, with a warning, if that rank exceeds n. Exact, with one view's
    pixels in memory at a time: the sequences, which may load lazily, are read four times.
    """
    level = parse_level(beta, "beta")
    if any(isinstance(given, Iterator) for given in (residuals, scales, masks)):
        raise MapError("pooling reads the views four times: give sequences, not iterators")
    pool = Pool(lambda: (view.ratios() for view in each_view(residuals, scales, masks)))
    rank = ceil_rank(pool.size + 1, 1 - level)
    if rank <= pool.size:
        return pool.order_statistic(rank)
    message = f"{pool.size} pixels are too few to pool at beta = {level}: every box is unbounded."
    warnings.warn(message, CalibrationTooSmall, stacklevel=2)
    return float("inf")


def native_multiplier(reading: Literal["gaussian", "residual"], beta: Level) -> float:
    """What to multiply a published map by if it is taken at its word.

    A map read as the standard deviation of a Gaussian gets the two-sided normal quantile
    for a fraction 1 - beta; one read as the residual itself gets 1.
    """
    level = parse_level(beta, "beta")
    if reading == "gaussian":
        return NormalDist().inv_cdf(float(1 - level / 2))
    if reading == "residual":
        return 1.0
    raise MapError(f"a map is read as 'gaussian' or as 'residual', not as {reading!r}")
