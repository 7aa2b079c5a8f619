# SPDX-License-Identifier: Apache-2.0
"""Renders as PNG files: one picture, or colour, opacity and depth side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from splatcert.console import written_aside
from splatcert.raster.interface import Render

Pixels = NDArray[np.uint8]

CAPTION_HEIGHT = 24
PAPER, INK = (24, 24, 27), (228, 228, 231)
# Four colours from near to far, evenly rising in brightness towards the camera.
DEPTH_COLOURS = np.array([[253, 231, 160], [231, 111, 81], [122, 55, 116], [20, 22, 50]])


def to_pixels(rgb: NDArray[np.floating]) -> Pixels:
    """Colours in [0, 1] (clamped) to 8 bits, rounded."""
    return np.round(np.clip(rgb, 0.0, 1.0) * 255.0).astype(np.uint8)


def save_png(path: Path, pixels: Pixels) -> None:
    """Write aside and rename, so that a picture is there whole or not at all."""
    with written_aside(path) as aside:
        # Twice as fast as the default level, and hardly larger for renders.
        Image.fromarray(pixels).save(aside, format="PNG", compress_level=3)


def triptych(picture: Render) -> Pixels:
    """Colour, opacity and depth side by side under captions, [H + caption, 3 W, 3]."""
    alpha, depth = picture.alpha.cpu().numpy(), picture.depth.cpu().numpy()
    coloured, near, far = _depth_colours(depth, alpha)
    panels = {
        "render": to_pixels(picture.rgb.cpu().numpy()),
        "opacity": np.repeat(to_pixels(alpha)[..., None], 3, axis=2),
        f"depth, {near:.2f} (light) to {far:.2f} (dark)": coloured,
    }
    height, width = alpha.shape
    sheet = Image.new("RGB", (3 * width, height + CAPTION_HEIGHT), PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=14)
    for column, (caption, pixels) in enumerate(panels.items()):
        draw.text((column * width + 8, 4), caption, fill=INK, font=font)
        sheet.paste(Image.fromarray(pixels), (column * width, CAPTION_HEIGHT))
    return np.asarray(sheet)


def _depth_colours(
    depth: NDArray[np.floating], alpha: NDArray[np.floating]
) -> tuple[Pixels, float, float]:
    """Depth in colours over the range of the opaque pixels, and that range."""
    opaque = depth[alpha > 0.5]
    near, far = (float(q) for q in np.quantile(opaque, (0.01, 0.99))) if opaque.size else (0.0, 1.0)
    share = np.clip((depth - near) / max(far - near, 1e-12), 0.0, 1.0)
    stops = np.linspace(0.0, 1.0, len(DEPTH_COLOURS))
    channels = [np.interp(share, stops, DEPTH_COLOURS[:, c]) for c in range(3)]
    # Depth is that of what was hit: only where little was hit does its colour fade.
    seen = np.clip(2.0 * alpha, 0.0, 1.0)[..., None]
    coloured = np.stack(channels, axis=-1) * seen / 255.0
    return to_pixels(coloured), near, far
