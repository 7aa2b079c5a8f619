# SPDX-License-Identifier: Apache-2.0
"""A real lens, and the pinhole camera that its undistorted pictures belong to.

The renderer knows pinholes only, so a distorted photo is resampled once, when
it is first looked at. The pinhole is chosen as follows:

- focal lengths are kept, so the centre of the picture keeps its sampling density;
- the canvas grows or shrinks about the principal point, first uniformly, then
  its width, then its height, to the largest rectangle all of whose pixels come
  from inside the photo, and to at most twice the photo;
- the principal point keeps its relative position on the canvas.

So no pixel of an undistorted picture is invented, and no mask is needed for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from splatcert.camera import PixelGrid
from splatcert.errors import InputError

INTRINSICS = ("fx", "fy", "cx", "cy")
SMALLEST, LARGEST = 0.2, 2.0
"""Range of the canvas size relative to the photo."""

Floats = NDArray[np.float64]
Pixels = NDArray[np.uint8 | np.float32]


class LensError(InputError):
    """A lens that fits neither its photo nor a pinhole."""


@dataclass(frozen=True, kw_only=True)
class Lens(PixelGrid):
    """Intrinsics in pixels (centres at +0.5) and OpenCV's distortion, which acts on angles."""

    kind: Literal["pinhole", "brown", "fisheye"] = "pinhole"
    distortion: tuple[float, ...] = ()
    """Brown: k1 k2 p1 p2 [k3 [k4 k5 k6]]. Fisheye: k1 k2 k3 k4."""

    def __post_init__(self) -> None:
        values = (self.fx, self.fy, self.cx, self.cy, *self.distortion)
        if not np.isfinite(values).all() or self.fx <= 0 or self.fy <= 0:
            raise LensError(f"lens parameters must be finite, focal lengths positive, got {values}")
        if self.width < 1 or self.height < 1:
            raise LensError(f"a lens must have pixels, got {self.width} x {self.height}")
        off_x, off_y = abs(self.cx / self.width - 0.5), abs(self.cy / self.height - 0.5)
        if max(off_x, off_y) > 1:
            raise LensError(
                f"principal point ({self.cx:g}, {self.cy:g}) lies far outside the "
                f"{self.width} x {self.height} picture.\n"
                "  Intrinsics and picture size must belong to the same resolution."
            )
        if self.kind == "brown" and not any(self.distortion):
            object.__setattr__(self, "kind", "pinhole")
            object.__setattr__(self, "distortion", ())

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height


def same_shape(old: tuple[int, int], new: tuple[int, int]) -> bool:
    """Whether one size is a uniform rescale of the other, up to rounding by one pixel."""
    ranges = []
    for before, after in zip(old, new, strict=True):
        slack = max(1.0, after / before)
        ranges.append(((after - slack) / before, (after + slack) / before))
    (low_x, high_x), (low_y, high_y) = ranges
    return max(low_x, low_y) <= min(high_x, high_y)


@lru_cache(maxsize=1024)
def pinhole_of(lens: Lens) -> Lens:
    """The pinhole of the undistorted picture; see the top of this file for the choice."""
    if lens.kind == "pinhole":
        return lens
    both = _grow(lens, lambda g: (g, g), SMALLEST)
    wide = _grow(lens, lambda g: (g, np.full_like(g, both)), both)
    high = _grow(lens, lambda g: (np.full_like(g, wide), g), both)
    # A tiny allowance, so that a growth of one is not floored to one pixel less.
    width, height = int(lens.width * wide + 1e-6), int(lens.height * high + 1e-6)
    return replace(
        lens,
        cx=lens.cx * width / lens.width,
        cy=lens.cy * height / lens.height,
        width=width,
        height=height,
        kind="pinhole",
        distortion=(),
    )


def undistort(image: Pixels, lens: Lens) -> Pixels:
    """Resample a photo of this lens onto its pinhole's canvas, bilinearly."""
    if lens.kind == "pinhole":
        return image
    columns, rows = _maps(lens)
    flat = cv2.remap(image, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return flat.astype(image.dtype, copy=False)


@lru_cache(maxsize=2)
def _maps(lens: Lens) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Where each canvas pixel is found in the photo, as OpenCV's column and row."""
    target = pinhole_of(lens)
    build = cv2.initUndistortRectifyMap
    if lens.kind == "fisheye":
        build = cv2.fisheye.initUndistortRectifyMap
    columns, rows = build(
        _opencv_matrix(lens),
        np.array(lens.distortion, np.float64),
        np.eye(3),
        _opencv_matrix(target),
        target.size,
        cv2.CV_32FC1,
    )
    return np.asarray(columns, dtype=np.float32), np.asarray(rows, dtype=np.float32)


def distort(lens: Lens, xy: Floats) -> Floats:
    """Where directions (x/z, y/z), [N, 2], fall in the photo, in pixels, [N, 2]."""
    matrix = np.array([[lens.fx, 0, lens.cx], [0, lens.fy, lens.cy], [0, 0, 1]], np.float64)
    bend = np.array(lens.distortion, np.float64)
    if lens.kind == "pinhole":
        return xy * (lens.fx, lens.fy) + (lens.cx, lens.cy)
    if lens.kind == "fisheye":
        pixels = cv2.fisheye.distortPoints(xy[:, None, :], matrix, bend)
    else:
        rays = np.column_stack([xy, np.ones(len(xy))])
        pixels = cv2.projectPoints(rays, np.zeros(3), np.zeros(3), matrix, bend)[0]
    return np.asarray(pixels, dtype=np.float64).reshape(-1, 2)


def _opencv_matrix(lens: Lens) -> Floats:
    """K with pixel centres at whole numbers, as OpenCV counts."""
    rows = [[lens.fx, 0, lens.cx - 0.5], [0, lens.fy, lens.cy - 0.5], [0, 0, 1]]
    return np.array(rows, np.float64)


def _grow(lens: Lens, shape: Callable[[Floats], tuple[Floats, Floats]], start: float) -> float:
    """The largest canvas, along one family of shapes, that stays inside the photo.

    Searched outwards and ended at the first failure: a strongly bent polynomial
    folds back into the photo farther out, and those pixels would be ghosts.
    """
    low, high = start, LARGEST
    for steps in (91, 41):
        candidates = np.linspace(low, high, steps)
        good = _stays_inside(lens, *shape(candidates))
        failures = np.flatnonzero(~good)
        if len(failures) == 0:
            return high
        first = int(failures[0])
        if first == 0:
            if low == SMALLEST:
                raise LensError(
                    f"the distortion {lens.distortion} of this {lens.kind} lens leaves no "
                    "usable picture.\n  Check the calibration, or undistort the photos with "
                    "`colmap image_undistorter` and load its output."
                )
            return low
        low, high = float(candidates[first - 1]), float(candidates[first])
    return low


def _stays_inside(lens: Lens, wide: Floats, high: Floats) -> NDArray[np.bool_]:
    """For each canvas size: do all border pixels fall inside the photo, unfolded?"""
    along = np.linspace(0.0, 1.0, 33)
    edge = np.concatenate(
        [np.column_stack([along, np.full(33, end)]) for end in (0.0, 1.0)]
        + [np.column_stack([np.full(33, end), along]) for end in (0.0, 1.0)]
    )
    x = 0.5 + edge[None, :, 0] * (wide[:, None] * lens.width - 1) - wide[:, None] * lens.cx
    y = 0.5 + edge[None, :, 1] * (high[:, None] * lens.height - 1) - high[:, None] * lens.cy
    rays = np.stack([x / lens.fx, y / lens.fy], axis=-1)
    pixels = distort(lens, rays.reshape(-1, 2)).reshape(rays.shape)
    margin = 0.5 - 1e-3
    fits = (pixels >= margin) & (pixels <= np.array(lens.size) - margin)
    nearer = distort(lens, 0.98 * rays.reshape(-1, 2)).reshape(rays.shape)
    unfolded = _radius(lens, pixels) > _radius(lens, nearer)
    return np.asarray((fits.all(axis=-1) & unfolded).all(axis=-1), dtype=np.bool_)


def _radius(lens: Lens, pixels: Floats) -> Floats:
    return np.hypot(pixels[..., 0] - lens.cx, pixels[..., 1] - lens.cy)
