# SPDX-License-Identifier: Apache-2.0
"""The `gpu` back end: one view of fixed splats on a WebGPU device.

Sums have a fixed order, so results have the same bits from run to run on one device. Tensors come
and go on the CPU; splats, field and support stay on the device from view to view.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster import reference
from splatcert.raster.gpu import passes
from splatcert.raster.gpu.device import open_device
from splatcert.raster.gpu.model import models
from splatcert.raster.gpu.prepare import Band, prepare
from splatcert.raster.gpu.query import PLANES, look
from splatcert.raster.native_autograd import plain_floats, tracked
from splatcert.raster.normal_sums import Rgb
from splatcert.raster.query_maps import QueryMaps, Traits
from splatcert.raster.render import BackendError
from splatcert.raster.view import RENDERER_VERSION, Contributors, View
from splatcert.splats.gaussians import Splats


def renderer_identity() -> dict[str, object]:
    """What a certificate records about this renderer."""
    return reference.renderer_identity() | {"name": "splatcert-gpu", "version": RENDERER_VERSION}


class GpuView(View):
    """Splats seen from one camera on a WebGPU device, in float32.

    `composite` is differentiable to the values. Gradients to the splats are the CPU's.
    """

    def __init__(self, splats: Splats, camera: Camera) -> None:
        self.camera, self.splats = camera, splats
        self._device = open_device()
        self._model = models.of(self._device, splats)
        self._bands = prepare(self._device, self._model, camera, splats.antialiased)

    @property
    def nbytes(self) -> int:
        """Memory of this prepared view on the device."""
        return sum(band.nbytes for band in self._bands)

    def composite(self, values: Tensor) -> Tensor:
        """A: [N, D] to [H, W, D]."""
        self._refuse_gradients(self.splats.means, self.splats.quats)
        self._refuse_gradients(self.splats.log_scales, self.splats.logit_opacities)
        if values.ndim != 2 or len(values) != len(self.splats) or not values.shape[1]:
            count = len(self.splats)
            raise ValueError(f"values has shape {list(values.shape)}, expected [{count}, D]")
        if tracked(values):
            return _Composite.apply(self, values)  # type: ignore[return-value]
        return self._composite(plain_floats(values))

    def _composite(self, values: Tensor) -> Tensor:
        parts = [
            passes.composite(self._device, band, values.numpy()[drawn])
            for band, drawn in zip(self._bands, self._drawn, strict=True)
        ]
        image = torch.from_numpy(np.concatenate(parts))
        return image.reshape(self.camera.height, self.camera.width, values.shape[1])

    def scatter(self, image: Tensor) -> Tensor:
        """A transposed: [H, W, D] to [N, D]."""
        return self._scattered(image)

    def _scattered(self, image: Tensor, last: passes.Last = "weight", occluded=True) -> Tensor:
        size = self.camera.height, self.camera.width
        if image.ndim != 3 or tuple(image.shape[:2]) != size or not image.shape[2]:
            raise ValueError(f"image has shape {list(image.shape)}, expected {[*size, 'D']}")
        rows, channels = plain_floats(image).numpy(), image.shape[2]

        def part(band: Band, _: Any) -> passes.Floats:
            here = rows[band.rows].reshape(band.pixels, channels)
            return passes.scatter(self._device, band, here, last, occluded)

        return self._summed(part, channels)

    def normal(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """A^T M A: [N, D] to [N, D]; the image stays on the device."""
        rows = plain_floats(values).numpy()
        kept = None if mask is None else mask.cpu().numpy().astype(np.uint32)

        def part(band: Band, drawn: Any) -> passes.Floats:
            here = None if kept is None else kept[band.rows].ravel()
            return passes.normal(self._device, band, rows[drawn], here)

        return self._summed(part, values.shape[1])

    def colours(self) -> Tensor:
        """Colour of each drawn Gaussian towards this camera, [N, 3]."""
        self._refuse_gradients(self.splats.means, self.splats.sh)
        degree = {"degree": self.splats.sh_degree}

        def part(band: Band, _: Any) -> passes.Floats:
            shown = self._device.empty(4 * band.drawn)
            for page in self._model.pages if band.drawn else []:
                tables = page.first, page.geometry, band.ranks, page.sh, shown
                self._device.run_over("shade", page.count, band.camera, *tables, **degree)
            return self._device.download(shown).reshape(-1, 4)[:, :3]

        return self._summed(part, 3, add=False)

    def depths(self) -> Tensor:
        """Camera z of each drawn Gaussian, [N]."""
        self._refuse_gradients(self.splats.means)

        def part(band: Band, _: Any) -> passes.Floats:
            return self._device.download(band.depths).reshape(-1, 2)[:, 1:]

        return self._summed(part, 1, add=False)[:, 0]

    def count(self, mask: Tensor) -> Tensor:
        """Pixels of a bool mask [H, W] that each Gaussian contributes to, [N]."""
        planes = torch.zeros(*mask.shape, 4)
        planes[..., 3] = mask
        return self._scattered(planes, "count")[:, 3]

    def footprint(self) -> Tensor:
        """Sum of alpha over the pixels of each Gaussian, ignoring occlusion, [N]."""
        ones = torch.ones(self.camera.height, self.camera.width, 1)
        return self._scattered(ones, occluded=False)[:, 0]

    def contributors(self, pixels: Tensor) -> Contributors:
        """Weights behind chosen pixels, [P, 2] as (row, column)."""
        size = pixels.new_tensor([self.camera.height, self.camera.width])
        if pixels.is_floating_point() or pixels.ndim != 2:
            raise ValueError("pixels must be whole numbers [P, 2], as (row, column)")
        outside = ((pixels < 0) | (pixels >= size)).any(1).nonzero()
        if len(outside):
            raise ValueError(f"pixel {int(outside[0])} lies outside the image {size.tolist()}")
        asked = pixels.cpu().numpy().astype(np.uint32)
        counts, found = np.zeros(len(asked), np.int64), []
        for band, drawn in zip(self._bands, self._drawn, strict=True):
            (mine,) = np.nonzero((asked[:, 0] >= band.rows.start) & (asked[:, 0] < band.rows.stop))
            here = asked[mine] - np.array([band.rows.start, 0], np.uint32)
            counts[mine], gaussians, weights = passes.contributors(self._device, band, here)
            found.append((np.repeat(mine, counts[mine]), drawn[gaussians], weights))
        which, gaussians, weights = (np.concatenate(column) for column in zip(*found, strict=True))
        order = which.argsort(kind="stable")  # bands have mixed the pixels
        return Contributors(
            torch.from_numpy(np.concatenate([[0], counts.cumsum()])),
            torch.from_numpy(gaussians[order]).long(),
            torch.from_numpy(weights[order]),
        )

    def query(self, traits: Traits, background: Rgb, floor: float) -> QueryMaps:
        """Picture, residual field and maps; all but very large pictures stay on the device."""
        if 4 * PLANES * self.camera.width * self.camera.height > self._device.largest_binding:
            return super().query(traits, background, floor)
        inputs = self._bands, self.camera, traits, background, floor
        return look(self._device, self._model, *inputs)

    def _shares(self, planes: Tensor, counted: Tensor) -> Tensor:
        """Sums of w times three planes and of w^2 over the counted pixels, in one pass."""
        stacked = torch.cat([planes, counted[..., None].to(planes)], dim=2)
        return self._scattered(stacked, "square").double()

    @cached_property
    def _drawn(self) -> list[Any]:
        """Indices of the Gaussians that each band draws."""
        return [self._device.download(b.gaussians, dtype=np.uint32) for b in self._bands]

    def _summed(
        self, part: Callable[[Band, Any], passes.Floats], channels: int, add: bool = True
    ) -> Tensor:
        """What the bands say of their Gaussians, [N, channels]: added, or the last word."""
        rows = np.zeros((len(self.splats), channels), np.float32)
        for band, drawn in zip(self._bands, self._drawn, strict=True):
            found = part(band, drawn)
            rows[drawn] = rows[drawn] + found if add else found
        return torch.from_numpy(rows)

    def _refuse_gradients(self, *parameters: Tensor) -> None:
        if tracked(*parameters):
            raise BackendError(
                "the back end 'gpu' has no gradients to the splats.\n"
                "  Train with the back end 'cpu', or render without gradients."
            )


class _Composite(torch.autograd.Function):
    """A applied to values, differentiable in them: the gradient is the transpose."""

    @staticmethod
    def forward(ctx, view, values):  # type: ignore[override]
        """Composite; nothing needs to be kept."""
        ctx.view, ctx.like = view, values
        return view._composite(plain_floats(values))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_image):  # type: ignore[override]
        """Pull the gradient back to the Gaussians."""
        return None, ctx.view.scatter(grad_image).to(ctx.like)
