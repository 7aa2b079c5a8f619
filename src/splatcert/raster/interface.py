# SPDX-License-Identifier: Apache-2.0
"""The linear renderer as a protocol, and the choice of a back end.

A view of fixed splats is one linear operator A with entries w = alpha * T
(eq:gs-render): `composite` applies it, `scatter` its transpose, `normal` both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from splatcert.errors import InputError
from splatcert.scene.cameras import Camera
from splatcert.splats.gaussians import Splats

Backend = Literal["cpu", "reference", "cuda"]
BACKENDS: tuple[Backend, ...] = ("cpu", "reference", "cuda")


class BackendError(InputError):
    """The back end asked for cannot run here."""


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


@dataclass(frozen=True, eq=False)
class Render:
    """One picture: colour on the background, accumulated opacity, expected depth."""

    rgb: Tensor
    """[H, W, 3], not clamped from above."""
    alpha: Tensor
    """[H, W]."""
    depth: Tensor
    """[H, W], alpha-normalised camera z; 0 where nothing was hit."""


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


def _openers() -> dict[str, Callable[[Splats, Camera], View]]:
    """Back ends by name; a module is imported only when its back end is asked for."""

    def reference(splats: Splats, camera: Camera) -> View:
        from splatcert.raster.reference import ReferenceView

        return ReferenceView(splats, camera)

    def cpu(splats: Splats, camera: Camera) -> View:
        from splatcert.raster.native import NativeView

        return NativeView(splats, camera)

    def cuda(splats: Splats, camera: Camera) -> View:
        from splatcert.raster.cuda import CudaView

        return CudaView(splats, camera)

    return {"reference": reference, "cpu": cpu, "cuda": cuda}


def open_view(splats: Splats, camera: Camera, backend: Backend = "cpu") -> View:
    """Project, cull and sort the splats for one camera."""
    openers = _openers()
    if backend not in openers:
        raise BackendError(f"unknown back end {backend!r}; choose one of {', '.join(openers)}")
    return openers[backend](splats, camera)


def render(
    splats: Splats,
    camera: Camera,
    *,
    background: tuple[float, float, float] = (0.0, 0.0, 0.0),
    backend: Backend = "cpu",
) -> Render:
    """Colour, opacity and depth of one view, in one pass."""
    view = open_view(splats, camera, backend)
    depths = view.depths()
    ones = torch.ones_like(depths)
    values = torch.cat([view.colours(), depths[:, None], ones[:, None]], dim=1)
    image = view.composite(values)
    alpha = image[..., 4]
    backdrop = torch.tensor(background, dtype=image.dtype, device=image.device)
    rgb = image[..., :3] + (1 - alpha)[..., None] * backdrop
    hit = alpha > 1e-6
    depth = torch.where(hit, image[..., 3] / alpha.clamp(min=1e-6), torch.zeros_like(alpha))
    return Render(rgb=rgb, alpha=alpha, depth=depth)
