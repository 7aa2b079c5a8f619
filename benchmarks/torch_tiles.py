# SPDX-License-Identifier: Apache-2.0
"""The renderer written in plain torch: tile by tile, dense within a tile.

The benchmark's second baseline. It shares the projection with the reference back end
and gives the same picture.
"""

from __future__ import annotations

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster.reference import STOP_TRANSMITTANCE, ReferenceView, transmit
from splatcert.splats.gaussians import Splats

TILE = 16


class TorchTiles:
    """Splats seen from one camera; tile lists from bounding boxes, as in GPU code."""

    def __init__(self, splats: Splats, camera: Camera) -> None:
        view = ReferenceView(splats, camera)
        self.camera, self.order, self.footprints = camera, view.order, view.footprints
        level = 2 * (255 * self.footprints.opacities).log()
        variances = self.footprints.covariances.diagonal(dim1=1, dim2=2)
        reach = (level[:, None] * variances).sqrt()
        size = torch.tensor([camera.width, camera.height]) - 1
        first = (self.footprints.centres - reach - 0.5).ceil().clamp(min=0)
        last = torch.minimum((self.footprints.centres + reach - 0.5).floor(), size)
        self.first, self.last = (first // TILE).int(), (last // TILE).int()

    def composite(self, values: Tensor) -> Tensor:
        """[N, D] to [H, W, D]."""
        height, width = self.camera.height, self.camera.width
        image = torch.zeros(height, width, values.shape[1])
        ordered = values[self.order]
        for y in range((height + TILE - 1) // TILE):
            in_row = (self.first[:, 1] <= y) & (y <= self.last[:, 1])
            for x in range((width + TILE - 1) // TILE):
                here = (in_row & (self.first[:, 0] <= x) & (x <= self.last[:, 0])).nonzero()[:, 0]
                if not len(here):
                    continue
                rows = torch.arange(y * TILE, min((y + 1) * TILE, height)) + 0.5
                columns = torch.arange(x * TILE, min((x + 1) * TILE, width)) + 0.5
                pixels = torch.cartesian_prod(rows, columns).flip(1)
                part = type(self.footprints)(
                    self.footprints.centres[here],
                    self.footprints.covariances[here],
                    self.footprints.opacities[here],
                    self.footprints.depths[here],
                )
                alpha, before, after = transmit(part.alphas(pixels))
                weights = alpha * before * (after > STOP_TRANSMITTANCE)
                block = (weights @ ordered[here]).reshape(len(rows), len(columns), -1)
                image[y * TILE : y * TILE + len(rows), x * TILE : x * TILE + len(columns)] = block
        return image
