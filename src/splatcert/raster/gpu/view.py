# SPDX-License-Identifier: Apache-2.0
"""The `gpu` back end: one view of fixed splats on a WebGPU device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster import reference
from splatcert.raster.gpu.device import open_device
from splatcert.raster.reference import ReferenceView
from splatcert.raster.view import RENDERER_VERSION, Contributors, View
from splatcert.splats.gaussians import Splats


def renderer_identity() -> dict[str, object]:
    """What a certificate records about this renderer."""
    return reference.renderer_identity() | {"name": "splatcert-gpu", "version": RENDERER_VERSION}


class GpuView(View):
    """Splats seen from one camera on a WebGPU device; results are float32 tensors on the CPU."""

    def __init__(self, splats: Splats, camera: Camera) -> None:
        self._device = open_device()
        self.camera, self.splats = camera, splats
        self._exact = ReferenceView(splats.to(device="cpu", dtype=torch.float64), camera)
        found = self._exact.footprints
        inverse = torch.linalg.inv(found.covariances)
        zero = torch.zeros_like(found.depths)
        records = [*found.centres.unbind(1), found.opacities, zero]
        records += [inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1], zero]
        self._footprints = self._device.upload(torch.stack(records, 1).float().detach().numpy())

    def composite(self, values: Tensor) -> Tensor:
        """A: [N, D] to [H, W, D]."""
        device, order = self._device, self._exact.order
        shape = (self.camera.height, self.camera.width, values.shape[1])
        image = device.empty(4 * shape[0] * shape[1] * shape[2])
        picture = np.array([shape[1], shape[0], len(order), shape[2]], np.uint32)
        rows = values[order].detach().float().numpy()
        device.run(
            "blend",
            "blend",
            -(-shape[0] * shape[1] // 256),
            device.upload(picture),
            self._footprints,
            device.upload(rows),
            image,
        )
        return torch.from_numpy(device.download(image, shape))

    def scatter(self, image: Tensor) -> Tensor:
        """A transposed: [H, W, D] to [N, D]."""
        return self._exact.scatter(image.double()).float()

    def colours(self) -> Tensor:
        """Colour of each drawn Gaussian towards this camera, [N, 3]."""
        return self._exact.colours().float()

    def depths(self) -> Tensor:
        """Camera z of each drawn Gaussian, [N]."""
        return self._exact.depths().float()

    def contributors(self, pixels: Tensor) -> Contributors:
        """Weights behind chosen pixels, [P, 2] as (row, column)."""
        found = self._exact.contributors(pixels)
        return Contributors(found.offsets, found.gaussians, found.weights.float())
