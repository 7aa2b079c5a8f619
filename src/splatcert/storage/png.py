# SPDX-License-Identifier: Apache-2.0
"""Pictures as PNG files, and the background and text colours they are drawn with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from splatcert.storage.whole import replacing

Pixels = NDArray[np.uint8]
PAPER, INK = (24, 24, 27), (228, 228, 231)


def to_pixels(rgb: NDArray[np.floating]) -> Pixels:
    """Colours in [0, 1] (clamped) to 8 bits, rounded."""
    return np.round(np.clip(rgb, 0.0, 1.0) * 255.0).astype(np.uint8)


def save_png(path: Path, pixels: Pixels) -> None:
    """Write a picture that appears whole or not at all."""
    with replacing(path) as aside:
        # Twice as fast as the default level, and hardly larger for renders.
        Image.fromarray(pixels).save(aside, format="PNG", compress_level=3)
