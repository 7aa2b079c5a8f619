# SPDX-License-Identifier: Apache-2.0
"""An uncertainty map taken at its word, for comparison with View-CP (tab:validity)."""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal

from splatcert.conformal.levels import Level, parse_level
from splatcert.conformal.maps import MapError


def native_multiplier(reading: Literal["gaussian", "residual"], beta: Level) -> float:
    """What to multiply a published map by if it is taken at its word.

    A map read as the standard deviation of a Gaussian gets the two-sided normal quantile
    for a fraction 1 - beta; one read as the residual itself gets 1. No photo has been asked,
    and no coverage follows.
    """
    level = parse_level(beta, "beta")
    if reading == "gaussian":
        return NormalDist().inv_cdf(float(1 - level / 2))
    if reading == "residual":
        return 1.0
    raise MapError(f"a map is read as 'gaussian' or as 'residual', not as {reading!r}")
