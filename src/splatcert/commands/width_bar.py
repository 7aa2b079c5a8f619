# SPDX-License-Identifier: Apache-2.0
"""The report's scale of half-widths as a bar that says what its colours mean.

One absolute scale for all pictures that commands write of one certificate, the viewer's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from splatcert.commands.pictures import INK, PAPER, Pixels
from splatcert.report.colours import WidthScale

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate

BAR_HEIGHT, BAR_WIDTH = 12, 256
FONT_SIZE = 13
UNIT = "half-width, of 255"
"""What stands beside a bar."""


@dataclass(frozen=True)
class WidthBar(WidthScale):
    """From 0 (dark) to `top` of 255 (light)."""

    @classmethod
    def of(cls, certificate: Certificate) -> WidthBar:
        """By the certificate alone, so that all pictures of it can be compared."""
        return cls(WidthScale.for_pixels(certificate.usual_half_widths).top)

    def ticks(self) -> list[tuple[float, str]]:
        """Places along the bar, 0 to 1, and what stands there."""
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
        """The bar as a picture of its own."""
        sheet = Image.new("RGB", (BAR_WIDTH + 64, 78), PAPER)
        draw = ImageDraw.Draw(sheet)
        draw.text((32, 10), title, fill=INK, font=ImageFont.load_default(size=FONT_SIZE))
        self.draw(draw, 32, 34, BAR_WIDTH)
        return np.asarray(sheet)
