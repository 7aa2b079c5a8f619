# SPDX-License-Identifier: Apache-2.0
"""What a certificate answers for one camera: a box at every pixel, as torch tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.certificate.honesty import SupportFlag


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
        cls,
        center: Tensor,
        scale: NDArray[np.float64],
        factor: float,
        threshold: float,
        support: SupportFlag,
    ) -> CertifiedBoxes:
        """Boxes of half-width q s, each rounded to the next larger float32.

        Eight-bit photographs put many pixels exactly on an edge; rounding outwards keeps
        every pixel that the score counts as covered inside its box.
        """
        half_width = torch.from_numpy(threshold * scale).to(center)
        return cls(center, _outwards(half_width, inf), factor, threshold, support)

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
