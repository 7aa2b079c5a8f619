# SPDX-License-Identifier: Apache-2.0
"""How closely a recomputed certificate must agree, by what a forger could gain (decision 0020).

Scores, q and factors agree, all of them. Half-widths at the calibration cameras and the numbers
behind them agree up to a share of outliers, each of them limited, because a Gaussian at the alpha
floor may count on one processor and not on another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.difficulty.views_file import SceneViews
from splatcert.verification.checks import check

EXACT = "pixels"
"""Column of views.npz that counts, and so does not depend on rounding."""
VIEW_SHARE = 1e-2
"""Share of outliers in views.npz: scores and factors, which follow from it, may have none."""
FLIPPED = 1e-3
"""Share of a view's pixels that rounding may move across a limit, an edge or a tenth."""
FLIPPING = ("shares", "tenths")
FLOOR = 0.02
"""Exposure that a few pixels at the alpha floor (1/255 each) add to a Gaussian or take from it."""


@dataclass(frozen=True)
class Tolerance:
    """Relative differences allowed, measured on other processors and decoders."""

    near: float
    """For everything that the promise depends on, and for all other numbers but outliers."""
    far: float
    """For outliers."""
    share: float
    """Share of numbers that may be outliers; one number always may."""

    def check(self, what: str, stored: NDArray[Any], again: NDArray[Any], size: Any) -> float:
        """Fail unless two arrays agree, relative to `size`; returns the largest difference."""
        check(
            stored.shape == again.shape,
            f"{what}: shape {stored.shape}, recomputed {again.shape}",
        )
        same = (stored == again) | (np.isnan(stored) & np.isnan(again))
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.where(same, 0.0, np.abs(stored - again) / size)
        outliers = int((~(apart <= self.near)).sum())
        allowed = max(1, int(self.share * apart.size))
        worst = float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))
        check(
            outliers <= allowed and worst <= self.far,
            f"{what}: {outliers:,} of {apart.size:,} numbers differ by more than {self.near:g} "
            f"({allowed:,} allowed), the worst by {worst:.1e} ({self.far:g} allowed)",
        )
        return worst


def within(worst: float) -> str:
    """How closely numbers agree, in words, by their largest difference."""
    return f"within {worst:.1e}" if worst else "identical"


SAME_PIXELS = Tolerance(near=1e-4, far=1e-2, share=1e-3)
"""For photographs with the certified pixels: rounding on a different processor."""
OTHER_DECODER = Tolerance(near=1e-2, far=1e-1, share=1e-2)
"""For the certified files, decoded by a different image library to slightly different pixels."""


def check_arrays(stored: SceneViews, again: SceneViews, tolerance: Tolerance) -> None:
    """Fail unless the arrays of views.npz agree.

    A column is compared relative to its own size, because a feature that is zero up to rounding
    has no relative error.
    """
    tolerance = replace(tolerance, share=VIEW_SHARE)
    for entry in ("schema", "betas", "hashes"):
        check(
            getattr(stored, entry) == getattr(again, entry), f"{entry} of views.npz does not match"
        )
    for role in ("training", "held-out"):
        one, other = stored.views(role), again.views(role)
        check(one.names == other.names, f"{role} names do not match")
        for name in one.stored:  # certificates of older schemas have fewer
            left, right = getattr(one, name), getattr(other, name)
            check(right is not None, f"{role} {name} cannot be recomputed")
            if name == EXACT:
                check(bool(np.array_equal(left, right)), f"{role} {name} do not match")
                continue
            size = np.nan_to_num(np.abs(right), posinf=0.0).max(axis=0, initial=0.0)
            if name in FLIPPING:
                whole = 1 if name == "shares" else one.pixels[:, None, None] + 1 / FLIPPED
                size = np.broadcast_to(whole * FLIPPED / tolerance.near, right.shape)
            tolerance.check(f"{role} {name}", left, right, size)
