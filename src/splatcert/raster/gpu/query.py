# SPDX-License-Identifier: Apache-2.0
"""A query on the device: packed, composited, finished and summarised there.

The camera goes up. The picture, the field and a few numbers come back; other maps follow if
somebody looks at them.
"""

from __future__ import annotations

from functools import cached_property
from math import isqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.camera import Camera
from splatcert.conformal.ranks import ceil_rank
from splatcert.raster.gpu.device import LANES, Buffer, Device
from splatcert.raster.gpu.model import Model, trait_tables
from splatcert.raster.gpu.passes import blend
from splatcert.raster.gpu.prepare import VECTORS, Band
from splatcert.raster.normal_sums import Rgb
from splatcert.raster.query_maps import MAPS, PERCENTILES, QueryMaps, Traits

PLANES = 12
"""Pictures that a query writes, the first of three channels; `planes.wgsl` has their order."""
AVERAGED = 8
BLOCK = 4096
"""Pixels per workgroup of a sum or count."""


class DeviceMaps(QueryMaps):
    """What one pass renders of a camera; maps and depth stay on the device until asked for."""

    device: Device
    picture: Buffer
    planes: Buffer
    """Everything that was rendered, [12, H, W] in the order of `planes.wgsl`."""
    camera: Camera

    def __init__(
        self, device: Device, picture: Buffer, planes: Buffer, camera: Camera, results: list[float]
    ) -> None:
        self.__dict__.update(device=device, picture=picture, planes=planes, camera=camera)
        self.__dict__.update(center=self._read(0, 3), field=self._read(3))
        means, (variance, *selected) = results[:AVERAGED], results[AVERAGED:]
        pairs = zip(means, selected[::2], selected[1::2], strict=False)
        self.__dict__["statistics"] = [number for each in pairs for number in each]
        depth, field, residual = means[len(MAPS) :]
        self.__dict__["moments"] = [depth, variance**0.5, field, residual]

    @cached_property
    def maps(self) -> Tensor:  # type: ignore[override]
        """Opacity, luminance, log exposure, support angle, spread, [5, H, W]."""
        return torch.stack([self._read(4 + k) for k in range(len(MAPS))])

    @cached_property
    def depth(self) -> Tensor:  # type: ignore[override]
        """Camera z of what is seen, [H, W]."""
        return self._read(9)

    @cached_property
    def opacity(self) -> Tensor:  # type: ignore[override]
        """Alpha, [H, W]."""
        return self._read(4)

    def hardly_shown(self, alpha: float, exposure: float, angle: float) -> NDArray[np.float64]:
        """Shares of pixels below an opacity, below a log exposure, beyond an angle, [3]."""
        limits = self.device.upload(np.array([alpha, exposure, angle], np.float32))
        counts, pixels = self.device.empty(3), self.planes.words // PLANES
        self.device.run_over("shares", pixels, self.picture, self.planes, limits, counts)
        return self.device.download(counts, dtype=np.uint32) / pixels

    def _read(self, plane: int, channels: int = 1) -> Tensor:
        pixels = self.planes.words // PLANES
        words = slice(plane * pixels, (plane + channels) * pixels)
        shape = self.camera.height, self.camera.width, channels
        found = torch.from_numpy(self.device.download(self.planes, words).reshape(shape))
        return found if channels > 1 else found[..., 0]


def look(
    device: Device,
    model: Model,
    bands: list[Band],
    camera: Camera,
    traits: Traits,
    background: Rgb,
    floor: float,
) -> DeviceMaps:
    """Picture, residual field and maps of a camera, all channels in one pass."""
    pixels = camera.width * camera.height
    head = np.array([*background, floor], np.float32).view(np.uint32)
    picture = device.upload(np.array([*head, camera.width, pixels, 0, 0], np.uint32))
    planes = device.empty(PLANES * pixels)
    tables = trait_tables.of(device, traits)
    degree, field_degree = model.sh_degree, isqrt(traits.coefficients.shape[1]) - 1
    for band in bands:
        values = device.empty(4 * VECTORS * band.drawn)
        for page, table in zip(model.pages if band.drawn else [], tables, strict=False):
            rows = page.first, page.geometry, band.ranks, page.sh, band.depths, table, values
            degrees = {"degree": degree, "field_degree": field_degree}
            device.run_over("pack", page.count, band.camera, *rows, **degrees)
        image = blend(device, band, values, VECTORS)
        device.run_over("finish", band.pixels, picture, band.camera, image, planes)
    device.run_over("slope", pixels, picture, planes)
    results = device.download(_summarised(device, picture, planes, pixels))
    return DeviceMaps(device, picture, planes, camera, results.tolist())


def _summarised(device: Device, picture: Buffer, planes: Buffer, pixels: int) -> Buffer:
    """Means of eight planes, the depth's variance, and two percentiles of five planes, [19]."""
    results, blocks = device.empty(AVERAGED + 1 + 2 * len(MAPS)), -(-pixels // BLOCK)
    for into, count in ((0, AVERAGED), (AVERAGED, 1)):
        sums, squared = device.empty(count * blocks), into > 0
        device.run("average", count * blocks, picture, planes, results, sums, squared=squared)
        device.run("total", count, picture, sums, results, into=into)
    ranks = [[0, ceil_rank(pixels, level)] for level in PERCENTILES] * len(MAPS)
    known, counts = device.upload(np.array(ranks, np.uint32)), device.empty(LANES * len(ranks))
    for shift in (24, 16, 8, 0):
        each = len(MAPS) * blocks
        device.run("select_count", each, picture, planes, known, counts, shift=shift)
        device.run("select_digit", 1, counts, known, results, shift=shift)
    return results
