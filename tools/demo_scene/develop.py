# SPDX-License-Identifier: Apache-2.0
"""From radiance to photographs: a camera's curve, and the trouble some views have with it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from plans import Plan

EXPOSURE = 1.9
WAVE = 17
"""Photographs from one crest of the exposure to the next."""
Image = NDArray[np.floating]


@dataclass(frozen=True)
class Trouble:
    """What went wrong in one view."""

    stops: float = 0.0
    """Exposure relative to the others."""
    grain: float = 0.006
    """Deviation of the sensor's noise at full brightness."""
    motion: tuple[float, float] = (0.0, 0.0)
    """Way of the image during the exposure, in pixels: length, direction in radians."""
    defocus: float = 0.0
    """Radius of the blur disc, in pixels."""


def troubles(count: int, plan: Plan) -> list[Trouble]:
    """A drift of exposure for everybody, and one real trouble for every fourth or so."""
    random = np.random.default_rng(plan.seed + 1)
    kinds = random.permutation(count) % 16
    found = []
    for view, kind in enumerate(kinds):
        stops = random.normal(0, plan.drift) + plan.wave * np.sin(2 * np.pi * view / WAVE)
        if kind == 0:
            found.append(Trouble(stops=stops + random.choice([-1, 1]) * random.uniform(0.2, 0.35)))
        elif kind == 1:
            found.append(Trouble(stops=stops, grain=random.uniform(0.03, 0.05)))
        elif kind == 2:
            way = (random.uniform(3.0, 5.0), random.uniform(0, np.pi))
            found.append(Trouble(stops=stops, motion=way))
        elif kind == 3:
            found.append(Trouble(stops=stops, defocus=random.uniform(1.2, 1.9)))
        else:
            found.append(Trouble(stops=stops))
    return found


def develop(radiance: Image, trouble: Trouble, seed: int) -> NDArray[np.uint8]:
    """An 8-bit sRGB photograph, [H, W, 3]."""
    light = without_sparks(radiance.astype(np.float32))
    light = denoised(light * EXPOSURE) * 2.0**trouble.stops
    light = blurred(light, trouble)
    random = np.random.default_rng(seed)
    noise = random.standard_normal(light.shape) * trouble.grain
    light = light + noise * np.sqrt(np.maximum(light, 0.02))
    return (255 * curve(light) + 0.5).astype(np.uint8)


def curve(light: Image) -> Image:
    """Linear in the shadows, a soft shoulder in the highlights, then the sRGB curve."""
    shown = 1 - np.exp(-np.maximum(light, 0))
    return np.where(shown < 0.0031308, 12.92 * shown, 1.055 * shown ** (1 / 2.4) - 0.055)


def without_sparks(light: Image) -> Image:
    """Pixels far brighter than all around them are strays of path tracing."""
    around = cv2.medianBlur(light.astype(np.float32), 3)
    return np.where(light > 3.0 * around + 0.05, around, light)


def denoised(light: Image) -> Image:
    """A light non-local mean, weighed as the eye would see it."""
    seen = (255 * curve(light)).astype(np.uint8)
    smooth = cv2.fastNlMeansDenoisingColored(seen, None, 2.2, 3.0, 5, 15).astype(np.float64) / 255
    linear = np.where(smooth < 0.04045, smooth / 12.92, ((smooth + 0.055) / 1.055) ** 2.4)
    return -np.log1p(-np.minimum(linear, 0.9999))


def blurred(light: Image, trouble: Trouble) -> Image:
    """Moved during the exposure, or out of focus."""
    length, direction = trouble.motion
    if length > 0:
        light = cv2.filter2D(light, -1, streak(length, direction), borderType=cv2.BORDER_REFLECT)
    if trouble.defocus > 0:
        light = cv2.filter2D(light, -1, disc(trouble.defocus), borderType=cv2.BORDER_REFLECT)
    return light


def streak(length: float, direction: float) -> Image:
    """A line of some length, summing to one."""
    kernel = np.zeros((9, 9))
    for t in np.linspace(-0.5, 0.5, 41):
        row, column = 4 + t * length * np.sin(direction), 4 + t * length * np.cos(direction)
        top, left = int(row), int(column)
        for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
            share = (1 - abs(row - top - dy)) * (1 - abs(column - left - dx))
            kernel[top + dy, left + dx] += share
    return kernel / kernel.sum()


def disc(radius: float) -> Image:
    """A disc with soft edges, summing to one."""
    y, x = np.mgrid[-4:5, -4:5]
    kernel = np.clip(radius + 0.5 - np.hypot(x, y), 0, 1)
    return kernel / kernel.sum()
