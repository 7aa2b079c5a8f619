# SPDX-License-Identifier: Apache-2.0
"""What is kept of a training view: six bytes per pixel.

Three bytes of colour; one of depth, on a logarithmic scale from the nearest to the farthest of the
view, usually 1 to 2% apart (a surface hides a point 8% behind it); and two of the render's signed
residual, in 5, 6 and 5 bits. Small residuals are kept to half a colour step, large ones to 11%.
"""

from __future__ import annotations

from functools import cache
from math import log2
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BYTES, PADDING = 6, 10
"""Per pixel, and at the end of each row, where native code reads ahead."""
LARGEST = (15, 31, 15)
"""Largest code of a residual in each channel."""
FINE = 4096
"""Steps of a residual before it is coded."""
CLOSEST = 1e-4
"""Smallest depth."""
DEPTHS = 254
"""Steps from the nearest depth to the farthest."""


class Packed(NamedTuple):
    """A photograph with residuals and depths."""

    pixels: Tensor
    """uint8 [H, 6 W + 10]."""
    log2_near: float
    """Nearest depth; its code is 1, and 0 means that nothing was seen."""
    log2_step: float
    """Between neighbouring depths."""


def pack(photo: Tensor, render: Tensor, depth: Tensor) -> Packed:
    """A photograph and its render, [H, W, 3] in [0, 1], and its depth, [H, W]."""
    height, width = depth.shape
    rows = np.zeros((height, BYTES * width + PADDING), np.uint8)
    pixels = rows[:, : BYTES * width].reshape(height, width, BYTES)
    pixels[..., :3] = (photo * 255).round().clamp(0, 255)
    pixels[..., 3], near, step = _depth_codes(depth.numpy())
    fine = ((photo - render) * FINE).round_().clamp_(-FINE // 2, FINE // 2).to(torch.int16)
    red, green, blue = (
        _codes(largest)[difference]
        for largest, difference in zip(LARGEST, (fine + FINE // 2).unbind(-1), strict=True)
    )
    pixels[..., 4:] = (red | green << 5 | blue << 11)[..., None].view(np.uint8)
    return Packed(torch.from_numpy(rows), near, step)


def unpack(packed: Packed) -> tuple[Tensor, Tensor, Tensor]:
    """Colour and residual, float64 [H, W, 3] each, and depth, [H, W]; 0 where nothing was seen."""
    rows = packed.pixels.numpy()[:, :-PADDING]
    pixels = rows.reshape(len(rows), -1, BYTES)
    words = pixels[..., 4].astype(int) | pixels[..., 5].astype(int) << 8
    codes = words & 31, words >> 5 & 63, words >> 11
    residual = [_levels(largest)[code - 1] for largest, code in zip(LARGEST, codes, strict=True)]
    code = pixels[..., 3]
    depth = np.exp2(packed.log2_near + (code - 1.0) * packed.log2_step) * (code > 0)
    known = pixels[..., :3] / 255.0, np.stack(residual, axis=-1), depth
    colour, difference, away = map(torch.from_numpy, known)
    return colour, difference, away


def in_words(packed: Packed) -> NDArray[np.uint8]:
    """The same with two bytes more per pixel, so that a device reads it in words, [H, W, 8]."""
    rows = packed.pixels.numpy()[:, :-PADDING]
    pixels = rows.reshape(len(rows), -1, BYTES)
    return np.pad(pixels, ((0, 0), (0, 0), (0, 8 - BYTES)))


def _levels(largest: int) -> NDArray[np.float64]:
    """The residuals that codes 1 to 2 largest + 1 stand for: k (slope + bend k^2), up to 1/2."""
    slope = 16 / (largest + 1) / 254
    k = np.arange(-largest, largest + 1)
    return k * (slope + (0.5 / largest - slope) / largest**2 * k**2)


@cache
def _codes(largest: int) -> NDArray[np.uint16]:
    """Codes of the residuals from -1/2 to 1/2 in steps of 1 / FINE: of the closest level."""
    levels = _levels(largest)
    residuals = np.arange(FINE + 1) / FINE - 0.5
    return (np.searchsorted((levels[1:] + levels[:-1]) / 2, residuals) + 1).astype("<u2")


def _depth_codes(depth: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, float]:
    """Codes, the logarithm of the nearest depth, and the step between two."""
    seen = depth > CLOSEST
    if not seen.any():
        return np.zeros_like(depth), 0.0, 0.0
    near, far = log2(float(depth[seen].min())), log2(float(depth.max()))
    step = (far - near) / DEPTHS
    codes = np.log2(np.where(seen, depth, 2.0**near)) - near
    return np.where(seen, 1 + (codes / step if step else codes).round(), 0), near, step
