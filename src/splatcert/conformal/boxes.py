# SPDX-License-Identifier: Apache-2.0
"""The boxes around a rendered view, as NumPy arrays or torch tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.levels import rounded_up_percent
from splatcert.conformal.maps import MapError, Mask, view_maps
from splatcert.shown import Plotted

# Division in the score, the product here and the residual's own subtraction round once each.
# Four units in the last place are more than they can lose together, so a pixel counted
# as covered does lie in its box. 8-bit photos put many pixels exactly on the edge.
_OUTWARD = 1 + 4 * np.finfo(np.float64).eps
# In float32 it is the multiplier and the product that round; `nextafter` covers the edges.
_OUTWARD_FLOAT32 = 1 + 2**-21
VACUOUS = 1.0
"""Half-width above which a box says nothing: it holds every colour from 0 to 1."""


def width_in_words(half_width: float) -> str:
    """A mean half-width for people; one that exceeds the range of colours is given in words."""
    if half_width > VACUOUS:
        return "unbounded" if half_width == inf else "vacuous: wider than the range of colours"
    return f"{255 * half_width:.1f} of 255"


@dataclass(frozen=True)
class Flag:
    """Whether a camera differs from the calibration views, and how.

    Only a difference can be found: a camera without a flag may differ in other ways.
    """

    inside: bool
    reasons: tuple[str, ...] = ()
    """The ways in which it differs, in words."""
    rate: Fraction | None = None
    """Largest probability that a view like the calibration views is flagged, where known."""

    def beyond(self, reason: str) -> Flag:
        """The same flag with one more reason."""
        return Flag(False, (*self.reasons, reason), self.rate)

    @property
    def word(self) -> str:
        """The flag in two or three words."""
        return "not flagged" if self.inside else "out of distribution"

    def words(self) -> str:
        """The flag as one sentence, with its rate of false alarms."""
        return self.word if self.inside else f"{self.word}: {'; '.join(self.reasons)}{self.alarms}"

    @property
    def alarms(self) -> str:
        """How often a view like the calibration views is flagged, in parentheses."""
        if self.rate is None:
            return ""
        most = rounded_up_percent(self.rate)
        return f" (false alarms: at most {most} of views like the calibration views)"


@dataclass(frozen=True, eq=False)
class Boxes(Plotted):
    """An RGB box at every pixel of one view (eq:rgb-box), not clipped to [0, 1].

    A certificate predicts float32 torch tensors, `ViewConformal` float64 NumPy arrays.
    """

    center: Any
    """Rendered colour, [H, W, 3]."""
    half_width: Any
    """Half-width shared by the channels of a pixel, [H, W]; infinite where nothing is claimed."""
    view_factor: float
    """a_v, the view's mean scale: the mean half-width is threshold * view_factor + margin."""
    threshold: float
    """The calibrated multiplier q; infinite when there were too few calibration views."""
    flag: Flag | None = None
    """Whether the camera differs from the calibration views; None if not checked."""
    descriptor: NDArray[np.float64] | None = None
    """z_v, [24], by which cameras are compared; None for maps of your own."""
    margin: float = 0.0
    """Part of every half-width that covers the difference from the certified renderer."""

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
        """Float64 boxes of half-width threshold * scale (eq:deployed-interval), rounded outwards.

        Outside `mask` the scale is not read and nothing is claimed: boxes there are
        unbounded. Default for `view_factor`: the mean scale.
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

    @classmethod
    def of_render(
        cls,
        center: Any,
        shape: Callable[[float], Any],
        factor: float,
        threshold: float,
        flag: Flag | None = None,
        descriptor: NDArray[np.float64] | None = None,
        *,
        margin: float = 0.0,
    ) -> Boxes:
        """Float32 boxes of half-width q a b~ + margin around a render, rounded outwards.

        `shape` returns b~ times a number.
        """
        half_width = shape(threshold * factor * _OUTWARD_FLOAT32)
        if margin:
            half_width = half_width + margin * _OUTWARD_FLOAT32
        return cls(center, half_width, factor, threshold, flag, descriptor, margin)

    @property
    def lower(self) -> Any:
        """Lower corners, [H, W, 3]; -inf where the box is unbounded."""
        return _outwards(self.center - self.half_width[..., None], -inf)

    @property
    def upper(self) -> Any:
        """Upper corners, [H, W, 3]; inf where the box is unbounded."""
        return _outwards(self.center + self.half_width[..., None], inf)

    @property
    def is_bounded(self) -> bool:
        """Whether the threshold is finite; otherwise no box claims anything."""
        return bool(np.isfinite(self.threshold))

    @property
    def is_vacuous(self) -> bool:
        """Whether the mean half-width exceeds the range of colours, so the view says nothing."""
        return self.threshold * self.view_factor + self.margin > VACUOUS

    def clipped(self) -> tuple[Any, Any]:
        """Lower and upper corners cut to [0, 1], for display.

        No colour is lost, but widths shrink: the widths we report are those of the
        boxes before clipping.
        """
        return self.lower.clip(0, 1), self.upper.clip(0, 1)

    def contains(self, image: Any) -> Any:
        """Whether each pixel of a photo [H, W, 3] lies inside its box, [H, W]."""
        photo = np.asarray(image) if isinstance(self.center, np.ndarray) else image
        if tuple(photo.shape) != tuple(self.center.shape):
            raise MapError(
                f"the photo is {tuple(photo.shape)} and the boxes are {tuple(self.center.shape)}"
            )
        return ((self.lower <= photo) & (photo <= self.upper)).all(-1)


def _outwards(corners: Any, towards: float) -> Any:
    """The next float32 in a direction; float64 corners are already wide enough."""
    if str(corners.dtype) not in ("float32", "torch.float32"):
        return corners
    if isinstance(corners, np.ndarray):
        values: NDArray[np.float32] = np.nextafter(corners, np.float32(towards))
        return values
    return corners.nextafter(corners.new_full((), towards))
