# SPDX-License-Identifier: Apache-2.0
"""View-level conformal calibration: a score for each view, one threshold for the scene.

There are two nested order statistics. The inner one turns a view's pixels into its score; the outer
one turns the calibration views' scores into the threshold. Views are the statistical
units: pixels may depend on each other in any way.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.levels import Level, in_percent, parse_level, rounded_up_percent
from splatcert.conformal.maps import MapError, Mask, ViewMaps, view_maps
from splatcert.conformal.ranks import (
    ceil_rank,
    order_statistic,
    order_statistics,
    outer_rank,
    views_needed,
)


class CalibrationTooSmall(UserWarning):
    """Too few calibration views for a finite threshold: every box is unbounded."""


def view_score(
    residual: ArrayLike, scale: ArrayLike, beta: Level, mask: Mask | None = None
) -> float:
    """Smallest multiplier at which this view reaches its pixel coverage.

    eq:view-score   R_v(s) = Q_{1-beta, p}(r_vp / s_vp)

    Q is the ceil(n (1 - beta))-th smallest ratio, never an interpolated quantile:
    lem:event (covered if and only if q >= R_v) is false otherwise. With `scale` set to the
    shape b~, the result is the oracle factor a*_v.
    """
    return float(view_scores(residual, scale, [beta], mask)[0])


def view_scores(
    residual: ArrayLike, scale: ArrayLike, betas: Sequence[Level], mask: Mask | None = None
) -> NDArray[np.float64]:
    """A view's score for each of several betas, [betas], from one partition of its ratios."""
    levels = [parse_level(beta, "beta") for beta in betas]
    return scores_of(view_maps(residual, scale, mask), levels)


def scores_of(view: ViewMaps, betas: Sequence[Fraction]) -> NDArray[np.float64]:
    """The scores of a view whose maps have been checked."""
    ranks = [ceil_rank(view.pixels, 1 - beta) for beta in betas]
    return order_statistics(view.ratios(), ranks)


def threshold(scores: ArrayLike, alpha: Level) -> float:
    """The multiplier that covers a new view with probability at least 1 - alpha.

    eq:outer-quantile   q = R_(k), k = ceil((m + 1) (1 - alpha)), or infinity if k > m

    Infinity is the correct result for too few views. It comes with a CalibrationTooSmall
    warning that says how many are missing.
    """
    level, known = parse_level(alpha, "alpha"), np.asarray(scores, dtype=np.float64)
    if known.ndim != 1:
        raise MapError(f"scores must be one number per view, got shape {known.shape}")
    if message := shortfall(known.size, level):
        warnings.warn(message, CalibrationTooSmall, stacklevel=2)
    return threshold_of(known, level)


def threshold_of(scores: NDArray[np.float64], alpha: Fraction) -> float:
    """The threshold without the warning, for callers that warn themselves."""
    rank = outer_rank(scores.size, alpha)
    return order_statistic(scores, rank) if rank <= scores.size else float("inf")


def shortfall(views: int, alpha: Fraction) -> str | None:
    """What is missing for a finite threshold, in words; None if nothing is missing."""
    needed = views_needed(alpha)
    if views >= needed:
        return None
    missing = needed - views
    reachable = f", or use alpha >= 1/{views + 1}" if views else ""
    return (
        f"{_views(views, 'calibration ')} cannot certify alpha = {alpha}: "
        "every box is unbounded.\n"
        f"  A finite threshold requires ceil((m + 1) * {1 - alpha}) <= m, that is m >= {needed}.\n"
        f"  Hold out at least {_views(missing, 'more ')}{reachable}."
    )


def _views(count: int, kind: str) -> str:
    return f"{count} {kind}view{'' if count == 1 else 's'}"


def state_guarantee(
    alpha: Fraction, beta: Fraction, views: int, *, masked: bool = False, batch_only: bool = False
) -> str:
    """The guarantee for a new view after calibration on this number of views.

    With masks, both the scores and the guarantee are about the pixels that count. With a
    scale that only views of one batch share (prop:equivariance), it is about that batch.
    """
    if outer_rank(views, alpha) > views:
        return "none: every box is unbounded, which is true of any view and says nothing"
    view = "view of the certified batch" if batch_only else "view"
    pixels = "its pixels that count (masks)" if masked else "its pixels"
    other = "; a camera outside the batch is not covered" if batch_only else ""
    return (
        f"a new exchangeable {view} has >= {in_percent(1 - beta)} of {pixels} inside "
        f"their boxes with probability >= {in_percent(1 - alpha)}{other}"
    )


def state_flag(alpha: Fraction, rate: Fraction | None) -> str:
    """What a flag does to the guarantee: the one place that says so."""
    here = "" if rate is None else f", here at most {rounded_up_percent(alpha / (1 - rate))}"
    return (
        "A flag changes no box. The guarantee averages over all views like the calibration views, "
        "flagged ones included. If you leave flagged views out, the others fall short with "
        f"probability at most alpha / (1 - share flagged){here}."
    )


def state_calibration(alpha: Fraction, views: int) -> str:
    """Which score became the threshold."""
    rank = outer_rank(views, alpha)
    plural = "" if views == 1 else "s"
    if rank > views:
        return f"{views} view{plural} of the {views_needed(alpha)} needed, threshold infinite"
    return f"{views} view{plural}, threshold = {ordinal(rank)} smallest of {views} score{plural}"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, ... 11th, ... 21st."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
