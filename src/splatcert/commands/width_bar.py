# SPDX-License-Identifier: Apache-2.0
"""Half-widths as colours of the report's palette, and a bar that says what they mean.

One absolute scale for all pictures that commands write of one certificate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from splatcert.commands.pictures import INK, PAPER, Pixels
from splatcert.report.colours import STEPS, palette

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate

USUAL_SHARE = 3.0
"""The top of a scale is at least this many usual half-widths of the certificate."""
BAR_HEIGHT, BAR_WIDTH = 12, 256
FONT_SIZE = 13


@dataclass(frozen=True)
class WidthBar:
    """From 0 (dark) to `top` (light), where colours go from 0 to 1."""

    top: float

    @classmethod
    def of(cls, certificate: Certificate) -> WidthBar:
        """By the certificate alone, so that all pictures of it can be compared."""
        usual = usual_half_width(certificate)
        return cls(round_up(USUAL_SHARE * usual) if math.isfinite(usual) else 1.0)

    def colours(self, values: NDArray[np.floating]) -> Pixels:
        """RGB of any array of half-widths; what exceeds the scale has its last colour."""
        share = np.nan_to_num(values / self.top, posinf=1.0)
        return palette()[np.clip(np.clip(share, 0, 1) * STEPS, 0, STEPS - 1).astype(np.intp)]

    def ticks(self) -> list[tuple[float, str]]:
        """Places along the bar, 0 to 1, and what stands there."""
        half, full = f"{self.top / 2:g}", f"{self.top:g} or more"
        return [(0.0, "0"), (0.5, half), (1.0, full)]

    def draw(self, draw: ImageDraw.ImageDraw, left: int, top: int, width: int) -> None:
        """The bar with its numbers below, about 30 pixels high."""
        font = ImageFont.load_default(size=FONT_SIZE)
        row = self.colours(np.linspace(0, self.top, width))
        for x, colour in enumerate(row):
            draw.line([(left + x, top), (left + x, top + BAR_HEIGHT)], fill=tuple(map(int, colour)))
        draw.rectangle([left - 1, top - 1, left + width, top + BAR_HEIGHT], outline=(113, 113, 122))
        for share, text in self.ticks():
            anchor = {0.0: "la", 0.5: "ma", 1.0: "ra"}[share]
            place = (left + share * width, top + BAR_HEIGHT + 3)
            draw.text(place, text, fill=INK, font=font, anchor=anchor)

    def legend(self, title: str) -> Pixels:
        """The bar as a picture of its own."""
        sheet = Image.new("RGB", (BAR_WIDTH + 64, 78), PAPER)
        draw = ImageDraw.Draw(sheet)
        draw.text((32, 10), title, fill=INK, font=ImageFont.load_default(size=FONT_SIZE))
        self.draw(draw, 32, 34, BAR_WIDTH)
        return np.asarray(sheet)


def usual_half_width(certificate: Certificate) -> float:
    """Median over the calibration views of their mean half-width; infinite without a promise."""
    factors = [view.factor for view in certificate.record.calibration]
    return certificate.threshold * float(np.median(factors))


def round_up(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 4, 5, 6, 8, 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    return next(round(s * power, 12) for s in steps if s * power >= value * (1 - 1e-9))
