# SPDX-License-Identifier: Apache-2.0
"""Frames as an H.264 film that browsers play: render and half-width side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from splatcert.conformal.boxes import Flag, width_in_words
from splatcert.console import progress
from splatcert.frames.ledger import Row
from splatcert.frames.writer import HALF_WIDTH, RGB
from splatcert.report.colours import UNIT, WidthScale
from splatcert.storage.png import INK, PAPER, Pixels
from splatcert.storage.whole import replacing

STRIP, GAP, MARGIN = 64, 4, 12
WARNING, QUIET = (251, 191, 36), (161, 161, 170)
LEAST_PANEL = 320
"""Narrower pictures are enlarged, so that the text below them fits."""
NOT_INSTALLED = "not written: PyAV is not installed (pip install 'splatcert[media]')"


def can_film() -> bool:
    """Whether the encoder is installed."""
    try:
        import av
    except ImportError:
        return False
    return "libx264" in av.codecs_available


@dataclass(frozen=True, eq=False)
class Film:
    """The layout of a film: panels, captions and colour bar."""

    folder: Path
    """Folder of the frames' files."""
    rows: Sequence[Row]
    scale: WidthScale | None
    """Colours of the half-width; None for a plain model."""

    @property
    def panels(self) -> tuple[str, ...]:
        """Kinds of pictures shown side by side."""
        return (RGB,) if self.scale is None else (RGB, HALF_WIDTH)

    @property
    def panel_size(self) -> tuple[int, int]:
        """Width and height of one panel: those of the largest frame."""
        width, height = (max(row[side] for row in self.rows) for side in ("width", "height"))
        times = -(-LEAST_PANEL // width) if self.scale is not None else 1
        return width * times, height * times

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the film; even, as its pixel format requires."""
        width, height = self.panel_size
        count = len(self.panels)
        strip = 0 if self.scale is None else STRIP
        return _even(count * width + (count - 1) * GAP), _even(height + strip)

    @cached_property
    def _empty(self) -> Image.Image:
        """What all frames share: background and colour bar."""
        sheet = Image.new("RGB", self.size, PAPER)
        if self.scale is not None:
            width, height = self.panel_size
            draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=13)
            left = width + GAP + MARGIN
            draw.text((left, height + 5), UNIT, fill=QUIET, font=font)
            self.scale.draw(draw, left, height + 26, min(width - 2 * MARGIN, 420))
        return sheet

    def frame(self, row: Row) -> Pixels:
        """One picture of the film."""
        sheet = self._empty.copy()
        width, height = self.panel_size
        for index, kind in enumerate(self.panels):
            picture = Image.open(self.folder / row["files"][kind]).convert("RGB")
            times = min(width / picture.width, height / picture.height)
            if times > 1:
                resample = Image.Resampling.NEAREST
                picture = picture.resize(
                    (round(picture.width * times), round(picture.height * times)), resample
                )
            left = index * (width + GAP) + (width - picture.width) // 2
            sheet.paste(picture, (left, (height - picture.height) // 2))
        if self.scale is not None:
            self._caption(ImageDraw.Draw(sheet), row)
        return np.asarray(sheet)

    def _caption(self, draw: ImageDraw.ImageDraw, row: Row) -> None:
        width, height = self.panel_size
        font, small = (ImageFont.load_default(size=size) for size in (16, 13))
        words = f"mean half-width {width_in_words(float(row['mean_half_width']))}"
        says = WARNING if row["vacuous"] else INK
        draw.text((MARGIN, height + 9), words, fill=says, font=font)
        flag = Flag(row["support"] == "within")
        colour = QUIET if flag.inside else WARNING
        draw.text((MARGIN, height + 33), flag.word, fill=colour, font=font)
        if width > 460:
            name = (width - MARGIN, height + 11)
            draw.text(name, str(row["name"])[-32:], fill=QUIET, font=small, anchor="ra")

    def write(self, path: Path, fps: int) -> Path:
        """Encode all frames; the file appears once it is complete."""
        with replacing(path) as aside:
            pictures = (self.frame(row) for row in progress(self.rows, "encoding the film"))
            encode(aside, pictures, self.size, fps)
        return path


def encode(path: Path, pictures: Iterator[Pixels], size: tuple[int, int], fps: int) -> None:
    """Write H.264 in MP4 with 4:2:0 colours, the index first so that playback starts at once."""
    import av
    from av.video.reformatter import ColorRange, Colorspace

    with av.open(str(path), "w", format="mp4", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=Fraction(fps))
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "18", "preset": "medium"}
        context = stream.codec_context
        context.colorspace, context.color_range = Colorspace.ITU709, ColorRange.MPEG
        context.color_primaries = context.color_trc = 1  # BT.709, as browsers assume
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame = frame.reformat(
                format="yuv420p",
                dst_colorspace=Colorspace.ITU709,
                dst_color_range=ColorRange.MPEG,
            )
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def _even(length: int) -> int:
    return length + length % 2
