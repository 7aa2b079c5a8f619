# SPDX-License-Identifier: Apache-2.0
"""The guarantee in words, the same wherever it is printed."""

from __future__ import annotations

from fractions import Fraction

from splatcert.conformal.levels import in_percent
from splatcert.conformal.order import outer_rank, views_needed


def state_guarantee(
    alpha: Fraction, beta: Fraction, views: int, *, masked: bool = False, batch_only: bool = False
) -> str:
    """What is promised for a new view after calibration on so many views.

    With masks, scores are over the pixels that count, and so is the promise. With a scale
    that only views of one batch share (prop:equivariance), it is about views of that batch.
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
