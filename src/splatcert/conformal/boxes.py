# SPDX-License-Identifier: Apache-2.0
"""The boxes around a rendered view."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.maps import MapError, Mask, view_maps

# Division in the score, the product here and the residual's own subtraction round once each.
# Four units in the last place are more than they can lose together, so that a pixel counted
# as covered does lie in its box. It matters: 8-bit photos put many pixels exactly on the edge.
_OUTWARD = 1 + 4 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Boxes:
    """An RGB box at every pixel of one view (eq:rgb-box), not clipped to [0, 1]."""

    center: NDArray[np.float64]
    """Rendered colour, [H, W, 3]."""
    half_width: NDArray[np.float64]
    """Shared by the channels of a pixel, [H, W]; infinite where nothing is claimed."""
    view_factor: float
    """a_v, the view's mean scale: the mean half-width is threshold * view_factor."""
    threshold: float
    """The calibrated multiplier q; infinite when there were too few calibration views."""

    @classmethod
    def around(
        cls,
        center: ArrayLike,
        scale: ArrayLike,
        threshold: float,
        *,
        view_factor: float | None = None,
        mask: Mask | None = None,
    ) -> Boxes:
        """Boxes of half-width threshold * scale (eq:deployed-interval), rounded outwards.

        Outside `mask` the scale is not read and nothing is claimed: boxes there are
        unbounded. `view_factor` is the mean scale unless given.
        """
        middle = np.asarray(center, dtype=np.float64)
        if middle.ndim != 3 or not np.isfinite(middle).all():
            raise MapError(f"center must be finite and [H, W, channels], got {middle.shape}")
        if not threshold >= 0:
            raise MapError(f"threshold must be at least 0, got {threshold}")
        size = middle.shape[:2]
        counted = np.ones(size, dtype=bool) if mask is None else mask
        known = view_maps(np.zeros(size), scale, counted).scale
        half_width = np.full(size, np.inf)
        half_width[counted] = threshold * _OUTWARD * known
        factor = float(known.mean()) if view_factor is None else float(view_factor)
        return cls(middle, half_width, factor, float(threshold))

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower corners, [H, W, 3]; -inf where the box is unbounded."""
        return self.center - self.half_width[..., None]

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper corners, [H, W, 3]; inf where the box is unbounded."""
        return self.center + self.half_width[..., None]

    @property
    def is_bounded(self) -> bool:
        """Whether the boxes say anything at all."""
        return bool(np.isfinite(self.threshold))

    def clipped(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper corners cut to [0, 1], for display.

        No colour is lost, but widths shrink: the widths we report are those of the
        boxes before clipping.
        """
        return np.clip(self.lower, 0, 1), np.clip(self.upper, 0, 1)

    def contains(self, image: ArrayLike) -> Mask:
        """Whether each pixel of a photo [H, W, 3] lies inside its box, [H, W]."""
        photo = np.asarray(image)
        if photo.shape != self.center.shape:
            raise MapError(f"the photo is {photo.shape} and the boxes are {self.center.shape}")
        return np.all((self.lower <= photo) & (photo <= self.upper), axis=-1)
