# SPDX-License-Identifier: Apache-2.0
"""One view of fixed splats as a linear operator: the protocol every back end satisfies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from splatcert.camera import Camera


@dataclass(frozen=True, eq=False)
class Contributors:
    """Which Gaussians make some pixels, front to back, and how much each weighs.

    Pixel k of the request owns entries `offsets[k]:offsets[k + 1]`.
    """

    offsets: Tensor
    """[P + 1] int64."""
    gaussians: Tensor
    """[M] int64, indices into the splats."""
    weights: Tensor
    """[M], w = alpha * T."""


@runtime_checkable
class View(Protocol):
    """Splats seen from one camera, prepared once for many passes."""

    camera: Camera

    def composite(self, values: Tensor) -> Tensor:
        """A: one row of D values per Gaussian, [N, D], to an image [H, W, D]."""
        ...

    def scatter(self, image: Tensor) -> Tensor:
        """A transposed: an image [H, W, D] to one row per Gaussian, [N, D]."""
        ...

    def normal(self, values: Tensor) -> Tensor:
        """A transposed times A, [N, D] to [N, D], sharing one evaluation of the weights."""
        ...

    def colours(self) -> Tensor:
        """Colour of each Gaussian towards this camera, [N, 3]; zero where it is not drawn."""
        ...

    def depths(self) -> Tensor:
        """Camera z of each Gaussian, [N]; zero where it is not drawn."""
        ...

    def contributors(self, pixels: Tensor) -> Contributors:
        """Weights behind chosen pixels, [P, 2] as (row, column)."""
        ...
