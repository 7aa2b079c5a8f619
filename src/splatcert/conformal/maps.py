# SPDX-License-Identifier: Apache-2.0
"""Residual and scale maps of a view: their checks, their ratios, what a multiplier covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.levels import Level, parse_level
from splatcert.conformal.ranks import ceil_rank, order_statistics
from splatcert.errors import InputError

Mask = NDArray[np.bool_]
_MISSING: Any = object()


class MapError(InputError):
    """A residual, scale or mask that does not allow a score."""


@dataclass(frozen=True)
class Quantity:
    """What is compared at every pixel, such as depth, and the unit of residuals and scales."""

    name: str
    unit: str = ""

    def half_width(self, value: float) -> str:
        """A half-width in words: depth ±0.12 m."""
        return f"{self.name} ±{value:.3g} {self.unit}".rstrip()


def rgb_residual(image: ArrayLike, center: ArrayLike) -> NDArray[np.float64]:
    """Distance of the photo from the centre of the boxes: the largest over the channels.

    eq:linf-residual   r_vp = max over c of |Y_vpc - mu_vpc|

    Maps two arrays [H, W, C] to [H, W]. A pixel lies in its box if and only if this is at most
    the half-width. `center` must be the centre of the boxes: clamp a render first.
    """
    photo, centre = np.asarray(image, dtype=np.float64), np.asarray(center, dtype=np.float64)
    if photo.shape != centre.shape or photo.ndim != 3:
        raise MapError(
            f"photo and render must both be [H, W, channels], got {photo.shape} and {centre.shape}"
        )
    apart = np.abs(photo - centre)
    return reduce(np.maximum, np.moveaxis(apart, -1, 0))  # ten times as fast as max(axis=-1)


@dataclass(frozen=True, eq=False)
class ViewMaps:
    """One view's residual and scale on the pixels that count (P_v), checked.

    The scale may be one number for the whole view. Values outside the mask are ignored, so
    zeros and NaN are allowed there.
    """

    residual: NDArray[np.float64]
    scale: NDArray[np.float64]

    @property
    def pixels(self) -> int:
        """Number of pixels that count (n_v)."""
        return self.residual.size

    def ratios(self) -> NDArray[np.float64]:
        """Residual over scale at every pixel that counts, [n_v].

        Scores, thresholds and coverage are all computed from this one expression, so that
        rounding cannot make them disagree.
        """
        with np.errstate(over="ignore"):
            return self.residual / self.scale


def view_maps(
    residual: ArrayLike, scale: ArrayLike, mask: Mask | None = None, *, where: str = ""
) -> ViewMaps:
    """Check one view's maps: residual finite and not negative, scale positive and finite."""
    r, s = np.asarray(residual), np.asarray(scale)
    if r.ndim not in (1, 2):
        raise MapError(
            f"{where}residual must be one number per pixel, [H, W], got {r.shape}.\n"
            "  For RGB differences, use the largest channel (see rgb_residual)."
        )
    s = np.broadcast_to(s, r.shape) if s.ndim == 0 else s
    if s.shape != r.shape:
        raise MapError(f"{where}residual is {r.shape} and scale is {s.shape}: one view, one size")
    counted = _counted(mask, r.shape, where)
    _require((r >= 0) & (r < np.inf), r, counted, f"{where}residual must be finite and at least 0")
    _require((s > 0) & (s < np.inf), s, counted, f"{where}scale must be positive and finite")
    known = [a.ravel() if mask is None else a[counted] for a in (r, s)]  # a mask costs a gather
    return ViewMaps(known[0].astype(np.float64), known[1].astype(np.float64))


def each_view(
    residuals: Iterable[ArrayLike],
    scales: Iterable[ArrayLike],
    masks: Iterable[Mask | None] | None = None,
) -> Iterator[ViewMaps]:
    """Checked maps, one view after another; only one view need be in memory at a time."""
    if masks is None:
        rows = ((*row, None) for row in zip_longest(residuals, scales, fillvalue=_MISSING))
    else:
        rows = zip_longest(residuals, scales, masks, fillvalue=_MISSING)
    for index, (residual, scale, mask) in enumerate(rows):
        found = zip(("residuals", "scales", "masks"), (residual, scale, mask), strict=True)
        if short := [name for name, item in found if item is _MISSING]:
            raise MapError(f"{' and '.join(short)} end after {index} views, before the others")
        yield view_maps(residual, scale, mask, where=f"view {index}: ")


def _counted(mask: Mask | None, shape: tuple[int, ...], where: str) -> Mask:
    counted = np.ones(shape, dtype=bool) if mask is None else np.asarray(mask)
    if counted.dtype != np.bool_ or counted.shape != shape:
        raise MapError(
            f"{where}mask must be bool {shape}, True where a pixel counts, "
            f"got {counted.dtype} {counted.shape}"
        )
    if not counted.any():
        raise MapError(
            f"{where}no pixel counts: none of {counted.size} pixels is inside the mask.\n"
            "  A view without pixels has no score. Leave it out, or check its mask."
        )
    return counted


def _require(good: Mask, values: NDArray[np.generic], counted: Mask, claim: str) -> None:
    if good.all():
        return
    bad = counted & ~good
    if count := int(bad.sum()):
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise MapError(
            f"{claim}.\n"
            f"  {count} of {int(counted.sum())} pixels are not; "
            f"the first is {values[first]} at index {first}."
        )


@dataclass(frozen=True)
class Coverage:
    """Counts over labelled views. The guarantee is about views, not about pooled pixels."""

    views: int
    covered_views: int
    """Views with at least a fraction 1 - beta of their pixels inside (eq:view-event)."""
    pixels: int
    covered_pixels: int
    mean_half_width: float
    """Mean over views of a view's mean half-width, not clipped."""

    @property
    def view_coverage(self) -> float:
        """Share of views that reach their pixel coverage."""
        return self.covered_views / self.views

    @property
    def pixel_coverage(self) -> float:
        """Share of all pixels inside their boxes."""
        return self.covered_pixels / self.pixels


def measure_coverage(
    residuals: Iterable[ArrayLike],
    scales: Iterable[ArrayLike],
    multiplier: float,
    beta: Level,
    masks: Iterable[Mask | None] | None = None,
) -> Coverage:
    """Count the pixels that boxes of half-width multiplier * scale cover, view by view.

    Any multiplier works: View-CP's threshold, the pooled one, or a native multiplier.
    """
    level = parse_level(beta, "beta")
    inside, pixels, covered, widths = 0, 0, 0, []
    for view in each_view(residuals, scales, masks):
        count = covered_pixels(view, multiplier)
        inside, pixels = inside + count, pixels + view.pixels
        covered += is_covered(count, view.pixels, level)
        widths.append(multiplier * float(view.scale.mean()))
    if not widths:
        raise MapError("no view was given, so there is no coverage to measure")
    return Coverage(len(widths), covered, pixels, inside, sum(widths) / len(widths))


def covered_pixels(view: ViewMaps, multiplier: float) -> int:
    """Pixels of a view that lie inside their boxes."""
    return int(np.count_nonzero(view.ratios() <= multiplier))


TENTHS = 10
"""Groups of a view's pixels, from its narrowest boxes to its widest."""


def covered_by_tenth(view: ViewMaps, multiplier: float) -> NDArray[np.int64]:
    """Pixels, and pixels inside their boxes, of each tenth of a view by half-width, [10, 2].

    Pixels of equal width share a tenth, so tenths may differ in size: a constant scale has one.
    """
    tenth = tenths_of(view.scale)
    inside = tenth[view.ratios() <= multiplier]
    return np.stack([np.bincount(part, minlength=TENTHS) for part in (tenth, inside)], axis=1)


def tenths_of(scale: NDArray[np.float64]) -> NDArray[np.intp]:
    """The tenth of each pixel of a view, 0 to 9, by its scale."""
    ranks = [ceil_rank(scale.size, Fraction(k, TENTHS)) for k in range(1, TENTHS)]
    return np.searchsorted(order_statistics(scale, ranks), scale, side="left")


def is_covered(inside: int, pixels: int, beta: Fraction) -> bool:
    """Whether a view with this number of pixels inside is covered (eq:view-event)."""
    return inside >= ceil_rank(pixels, 1 - beta)
