# SPDX-License-Identifier: Apache-2.0
"""The colour scale for half-widths, in absolute units and perceptually even, and its legend.

It runs from dark blue through red to light yellow on a path in OKLab. Lightness rises steadily,
so the scale reads the same in grey, in print and for colour-blind readers; the steps along the
path are of equal length, so equal differences in width look equally different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

from splatcert.conformal.boxes import VACUOUS
from splatcert.storage.png import INK, PAPER

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate

Pixels = NDArray[np.uint8]
STEPS = 64
"""Colours of the scale: finer than the eye, and few enough to compress well."""
TOPS = (8, 16, 32, 48, 64, 96, 128, 192, 255)
"""Ends of scales, in 8-bit units; few, so that reports of similar scenes share one."""
GREY = (120, 120, 132)
"""A grey that the palette does not contain, for vacuous and unbounded boxes."""
WIDEST = 3.0
"""Multiple of the median half-width up to which pixels get colours of their own."""
BAR_HEIGHT, BAR_WIDTH, FONT_SIZE = 12, 256, 13
UNIT = "half-width, of 255"
"""Caption of a colour bar."""
# Lightness, chroma and hue in degrees, on the way from narrow to wide.
_PATH = (
    (0.17, 0.06, 285),
    (0.38, 0.14, 310),
    (0.56, 0.18, 5),
    (0.72, 0.155, 48),
    (0.95, 0.115, 102),
)
# From OKLab to cone responses, and from their cubes to linear sRGB (B. Ottosson, 2020).
_TO_CONES = np.array([[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728],
                      [1, -0.0894841775, -1.2914855480]])  # fmt: skip
_TO_RGB = np.array([[4.0767416621, -3.3077115913, 0.2309699292],
                    [-1.2684380046, 2.6097574011, -0.3413193965],
                    [-0.0041960863, -0.7034186147, 1.7076147010]])  # fmt: skip


@cache
def palette() -> Pixels:
    """The scale's colours from narrow to wide, sRGB, [STEPS, 3]."""
    return np.round(255 * _to_srgb(_even_path(STEPS))).astype(np.uint8)


@cache
def shown_colours() -> Pixels:
    """The palette, and grey for half-widths that say nothing, [STEPS + 1, 3]."""
    return np.vstack([palette(), np.array([GREY], dtype=np.uint8)])


@dataclass(frozen=True)
class WidthScale:
    """Colours for half-widths from 0 (dark) to `top` of 255 (light)."""

    top: int

    @classmethod
    def of(cls, certificate: Certificate) -> WidthScale:
        """The scale for all pictures of a certificate, so that they can be compared."""
        return cls.for_pixels(certificate.usual_half_widths)

    @classmethod
    def holding(cls, half_width: float) -> WidthScale:
        """The shortest scale that holds a half-width on the colour range 0 to 1."""
        return cls(next((top for top in TOPS if 255 * half_width <= top), TOPS[-1]))

    @classmethod
    def for_pixels(cls, usual: Sequence[float]) -> WidthScale:
        """For the pixels of views with these mean half-widths, the same for every picture."""
        return cls.holding(WIDEST * float(np.median(usual)))

    @property
    def end(self) -> float:
        """The end of the scale on the colour range 0 to 1."""
        return self.top / 255

    def colours(self, half_width: ArrayLike) -> Pixels:
        """Half-widths of any shape as colours, [..., 3]."""
        return shown_colours()[self.indices(half_width)]

    def indices(self, half_width: ArrayLike) -> Pixels:
        """Index of each half-width in `shown_colours`: wide ones get the last of the palette.

        A half-width above the range of colours says nothing and gets grey.
        """
        values = np.asarray(half_width, dtype=np.float64)
        places = np.clip(values * 255 / self.top * STEPS, 0, STEPS - 1).astype(np.uint8)
        return np.where(values > VACUOUS, np.uint8(STEPS), places)

    def css(self, half_width: float) -> str:
        """The colour of one half-width, for a page."""
        return "#" + bytes(shown_colours()[int(self.indices(half_width))]).hex()

    def ticks(self) -> list[tuple[float, str]]:
        """Positions along the bar, 0 to 1, and their labels."""
        return [(0.0, "0"), (0.5, f"{self.top / 2:g}"), (1.0, f"{self.top} or more")]

    def draw(self, draw: ImageDraw.ImageDraw, left: int, top: int, width: int) -> None:
        """The bar with its numbers below, about 30 pixels high."""
        font = ImageFont.load_default(size=FONT_SIZE)
        row = self.colours(np.linspace(0, self.end, width))
        for x, colour in enumerate(row):
            draw.line([(left + x, top), (left + x, top + BAR_HEIGHT)], fill=tuple(map(int, colour)))
        draw.rectangle([left - 1, top - 1, left + width, top + BAR_HEIGHT], outline=(113, 113, 122))
        for share, text in self.ticks():
            anchor = {0.0: "la", 0.5: "ma", 1.0: "ra"}[share]
            place = (left + share * width, top + BAR_HEIGHT + 3)
            draw.text(place, text, fill=INK, font=font, anchor=anchor)

    def legend(self, title: str) -> Pixels:
        """The bar as a separate picture."""
        sheet = Image.new("RGB", (BAR_WIDTH + 64, 78), PAPER)
        draw = ImageDraw.Draw(sheet)
        draw.text((32, 10), title, fill=INK, font=ImageFont.load_default(size=FONT_SIZE))
        self.draw(draw, 32, 34, BAR_WIDTH)
        return np.asarray(sheet)


def _even_path(count: int) -> NDArray[np.float64]:
    """Points in OKLab along the path, equally far apart, [count, 3]."""
    lightness, chroma, hue = np.array(_PATH).T
    angle = np.unwrap(np.radians(hue))
    corners = np.stack([lightness, chroma * np.cos(angle), chroma * np.sin(angle)], axis=1)
    fine = _smooth(corners, 64 * count)
    walked = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(fine, axis=0), axis=1))])
    wanted = np.linspace(0, walked[-1], count)
    return np.stack([np.interp(wanted, walked, channel) for channel in fine.T], axis=1)


def _smooth(corners: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    from scipy.interpolate import PchipInterpolator

    return PchipInterpolator(np.linspace(0, 1, len(corners)), corners)(np.linspace(0, 1, count))


def _to_srgb(lab: NDArray[np.float64]) -> NDArray[np.float64]:
    linear = np.clip((lab @ _TO_CONES.T) ** 3 @ _TO_RGB.T, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
