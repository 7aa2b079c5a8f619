# SPDX-License-Identifier: Apache-2.0
"""Half-widths as colours of the one scale that reports have, too.

Both scales of a page are absolute: they depend on the certificate, not on what is looked at,
so that a colour means the same number in every view and mode. Pixels and whole views have one
each, because no view is as wide on average as its widest pixels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from splatcert.report.colours import WidthScale, palette
from splatcert.viewer.views import KnownView

Pixels = NDArray[np.uint8]

UNBOUNDED = (120, 120, 132)
"""A grey that the palette does not have: nothing is claimed."""
WIDEST = 3.0
"""Pixels of so many times the usual half-width are still told apart."""


def pixel_scale(views: Sequence[KnownView], threshold: float) -> WidthScale:
    """For the pixels of a picture."""
    return WidthScale.holding(WIDEST * float(np.median(_usual(views, threshold))))


def view_scale(views: Sequence[KnownView], threshold: float) -> WidthScale:
    """For the mean half-widths of views."""
    return WidthScale.holding(max(_usual(views, threshold)))


def _usual(views: Sequence[KnownView], threshold: float) -> list[float]:
    """Mean half-widths that calibration views get, or need where boxes are unbounded."""
    known = [view for view in views if view.role == "calibration"]
    if np.isfinite(threshold):
        return [threshold * view.factor for view in known]
    return [view.needed for view in known]


def coloured(half_width: NDArray[np.floating], scale: WidthScale) -> Pixels:
    """Half-widths [H, W] as colours [H, W, 3]; infinite ones in a grey of their own."""
    colours = palette()[scale.indices(half_width)]
    colours[~np.isfinite(half_width)] = UNBOUNDED
    return colours


def colour_of(half_width: float, scale: WidthScale) -> tuple[int, int, int]:
    """The colour of one half-width; of one that is not known, too."""
    known = np.inf if np.isnan(half_width) else half_width
    red, green, blue = coloured(np.array([[known]]), scale)[0, 0].tolist()
    return red, green, blue
