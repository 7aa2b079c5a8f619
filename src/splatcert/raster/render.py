# SPDX-License-Identifier: Apache-2.0
"""The choice of a back end: `open_view` prepares a view, `render` makes one picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from torch import Tensor

from splatcert.camera import Camera
from splatcert.config import Backend
from splatcert.errors import InputError
from splatcert.raster.normal_sums import Rgb
from splatcert.raster.view import View
from splatcert.shown import Shown
from splatcert.splats.gaussians import Splats

BACKENDS: tuple[Backend, ...] = get_args(Backend)


class BackendError(InputError):
    """The requested back end cannot run here."""


@dataclass(frozen=True, eq=False)
class Render(Shown):
    """One picture: colour on the background, accumulated opacity, expected depth."""

    rgb: Tensor
    """[H, W, 3], not clamped from above."""
    alpha: Tensor
    """[H, W]."""
    depth: Tensor
    """[H, W], alpha-normalised camera z; 0 where nothing was hit."""


def _openers() -> dict[str, Callable[[Splats, Camera], View]]:
    """Back ends by name; the module of a back end is imported on first use."""

    def reference(splats: Splats, camera: Camera) -> View:
        from splatcert.raster.reference import ReferenceView

        return ReferenceView(splats, camera)

    def cpu(splats: Splats, camera: Camera) -> View:
        from splatcert.raster.native import NativeView

        return NativeView(splats, camera)

    def cuda(splats: Splats, camera: Camera) -> View:
        from splatcert.raster.cuda import CudaView

        return CudaView(splats, camera)

    def gpu(splats: Splats, camera: Camera) -> View:
        from splatcert.raster.gpu.view import GpuView

        return GpuView(splats, camera)

    return {"reference": reference, "cpu": cpu, "gpu": gpu, "cuda": cuda}


def unavailable(backend: Backend) -> str | None:
    """Why a back end cannot run on this machine; None if it can."""
    try:
        if backend == "gpu":
            from splatcert.raster.gpu.device import open_device

            open_device()
        elif backend == "cuda":
            from splatcert.raster.cuda import require_device

            require_device()
    except BackendError as error:
        return str(error)
    return None


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
    background: Rgb = (0.0, 0.0, 0.0),
    backend: Backend = "cpu",
) -> Render:
    """Colour, opacity and depth of one view, in one pass.

    All three are differentiable with respect to those parameters of the splats that require
    gradients, on every back end but `gpu`, which refuses.
    """
    return Render(*open_view(splats, camera, backend).picture(background))


def renderer_of(backend: Backend) -> dict[str, object]:
    """Name, version and constants of the renderer behind a back end."""
    if backend == "cpu":
        from splatcert.raster.native import renderer_identity
    elif backend == "gpu":
        from splatcert.raster.gpu.view import renderer_identity
    elif backend == "cuda":
        from splatcert.raster.cuda import renderer_identity
    else:
        from splatcert.raster.reference import renderer_identity
    return renderer_identity()
