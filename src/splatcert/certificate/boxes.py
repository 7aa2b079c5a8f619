# SPDX-License-Identifier: Apache-2.0
"""What a certificate answers for one camera: a box at every pixel, as torch tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from splatcert.certificate.diagnostics import SupportFlag

OUTWARDS = 1 + 2**-21
"""More than two roundings to float32 can take away: of the multiplier, and of the product."""


@dataclass(frozen=True, eq=False)
class CertifiedBoxes:
    """An RGB box at every pixel of one view (eq:deployed-interval), not clipped to [0, 1]."""

    center: Tensor
    """Rendered colour in [0, 1], [H, W, 3]."""
    half_width: Tensor
    """Shared by the channels of a pixel, [H, W]; infinite where nothing can be claimed."""
    view_factor: float
    """a_v; the mean half-width is threshold * view_factor."""
    threshold: float
    """q."""
    support: SupportFlag
    """Whether the camera stays within what the calibration views have shown."""

    @classmethod
    def around(
        cls, center: Tensor, shape: Tensor, factor: float, threshold: float, support: SupportFlag
    ) -> CertifiedBoxes:
        """Boxes of half-width q a b~, rounded outwards.

        Eight-bit photographs put many pixels exactly on an edge; rounding outwards keeps
        every pixel that the score counts as covered inside its box.
        """
        half_width = shape * (threshold * factor * OUTWARDS)
        return cls(center, half_width, factor, threshold, support)

    @property
    def lower(self) -> Tensor:
        """Lower corners, [H, W, 3]."""
        return _outwards(self.center - self.half_width[..., None], -inf)

    @property
    def upper(self) -> Tensor:
        """Upper corners, [H, W, 3]."""
        return _outwards(self.center + self.half_width[..., None], inf)

    def contains(self, image: Tensor) -> Tensor:
        """Whether each pixel of a photo [H, W, 3] lies inside its box, [H, W]."""
        return ((self.lower <= image) & (image <= self.upper)).all(dim=-1)


def _outwards(values: Tensor, towards: float) -> Tensor:
    return torch.nextafter(values, torch.full_like(values, towards))
