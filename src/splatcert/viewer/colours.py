# SPDX-License-Identifier: Apache-2.0
"""One colour scale for half-widths, the same in every view, mode and scene.

Half-widths are in units of RGB, where colours go from 0 to 1. The scale is absolute: a colour
means the same number everywhere. It is spaced by the square root, because half-widths of good
renders crowd near zero.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

TOP = 0.5
"""Half-widths from here on have the last colour: the box spans all of RGB at mid-grey."""
TICKS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
UNBOUNDED = (120, 120, 132)
"""A grey that the scale does not have: nothing is claimed."""


def _table() -> Pixels:
    """256 colours from dark to bright, evenly rising in brightness, [256, 3]."""
    ramp = np.arange(256, dtype=np.uint8)[:, None]
    return cv2.applyColorMap(ramp, cv2.COLORMAP_INFERNO)[:, 0, ::-1].copy()


TABLE = _table()


def place(half_width: NDArray[np.floating] | float) -> NDArray[np.floating]:
    """Where half-widths lie on the scale, 0 to 1."""
    return np.sqrt(np.clip(np.asarray(half_width) / TOP, 0.0, 1.0))


def coloured(half_width: NDArray[np.floating]) -> Pixels:
    """Half-widths [H, W] as colours [H, W, 3]; infinite ones in a grey of their own."""
    steps = (255 * place(half_width) + 0.5).astype(np.uint8)
    colours = cv2.applyColorMap(steps, TABLE[:, None, ::-1].copy())
    colours = cv2.cvtColor(colours, cv2.COLOR_BGR2RGB)
    if not np.isfinite(half_width).all():
        colours[~np.isfinite(half_width)] = UNBOUNDED
    return colours  # type: ignore[return-value]


def colour_of(half_width: float) -> tuple[int, int, int]:
    """The colour of one half-width."""
    red, green, blue = coloured(np.array([[half_width]]))[0, 0].tolist()
    return red, green, blue
