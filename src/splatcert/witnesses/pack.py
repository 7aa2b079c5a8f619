# SPDX-License-Identifier: Apache-2.0
"""What is kept of a training view: eight bytes per pixel.

Three bytes of colour, three of the render's signed residual, and the upper half of the depth as
a float32 (bfloat16), which is off by at most 0.4%; a surface hides a point 8% behind it.
"""

from __future__ import annotations

import torch
from torch import Tensor

BYTES = 8
RESIDUAL_STEPS, RESIDUAL_ZERO = 254.0, 128.0
"""A residual of one colour step is one step here; larger ones than half the range are clipped."""


def pack(photo: Tensor, render: Tensor, depth: Tensor) -> Tensor:
    """A photograph and its render, [H, W, 3] in [0, 1], and its depth, [H, W], as [H, W, 8]."""
    colour = (photo * 255).round().clamp(0, 255)
    residual = ((photo - render) * RESIDUAL_STEPS + RESIDUAL_ZERO).round().clamp(0, 255)
    upper = depth.to(torch.bfloat16)[..., None].contiguous().view(torch.uint8)
    return torch.cat([colour.to(torch.uint8), residual.to(torch.uint8), upper], dim=-1)


def unpack(pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Colour and residual, float64 [H, W, 3] each, and depth, [H, W]."""
    colour = pixels[..., :3].double() / 255
    residual = (pixels[..., 3:6].double() - RESIDUAL_ZERO) / RESIDUAL_STEPS
    depth = pixels[..., 6:].contiguous().view(torch.bfloat16)
    return colour, residual, depth[..., 0].double()
