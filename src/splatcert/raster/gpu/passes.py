# SPDX-License-Identifier: Apache-2.0
"""The linear passes over one band: composite, scatter, and the weights behind pixels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.raster.gpu.device import Buffer, Device
from splatcert.raster.gpu.prepare import VECTORS, Band

Floats = NDArray[np.float32]
Last = Literal["weight", "square", "count"]
"""What the fourth channel of a scatter is multiplied by."""
LANES_OF: tuple[Last, ...] = ("weight", "square", "count")


def runs(channels: int, widest: int) -> Iterator[slice]:
    """Channels in runs of at most `widest`."""
    for first in range(0, channels, widest):
        yield slice(first, min(channels, first + widest))


def padded(rows: Floats) -> Floats:
    """Rows with zeros up to a multiple of four channels, [..., D]."""
    missing = -rows.shape[-1] % 4
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, missing)]) if missing else rows


def blend(device: Device, band: Band, values: Buffer, vectors: int) -> Buffer:
    """Values of the drawn, [M, 4 vectors], to the image [pixels, 4 vectors]."""
    image = device.empty(4 * vectors * band.pixels)
    lists = band.camera, band.starts, band.listed, band.records
    device.run("blend", band.tiles, *lists, values, image, vectors=vectors)
    return image


def gather(
    device: Device, band: Band, image: Buffer, last: Last = "weight", occluded: bool = True
) -> Buffer:
    """An image [pixels, 4] to the drawn, [M, 4]: sums per tile, then over tiles in order."""
    parts = device.empty(4 * band.order.words)
    lists = band.camera, band.starts, band.listed, band.records, band.order
    how = {"last_lane": LANES_OF.index(last), "occluded": occluded}
    device.run("scatter", band.tiles, *lists, image, parts, **how)
    sums = device.empty(4 * band.drawn)
    device.run_over("gather", band.drawn, band.nearest, band.offsets, parts, sums)
    return sums


def composite(device: Device, band: Band, values: Floats) -> Floats:
    """Values of the drawn, [M, D], to the image [pixels, D]."""
    images = []
    for run in runs(values.shape[1], 4 * VECTORS):
        table = padded(values[:, run])
        image = blend(device, band, device.upload(table), table.shape[1] // 4)
        shown = device.download(image).reshape(band.pixels, table.shape[1])
        images.append(shown[:, : run.stop - run.start])
    return np.concatenate(images, axis=1)


def scatter(
    device: Device, band: Band, image: Floats, last: Last = "weight", occluded: bool = True
) -> Floats:
    """An image [pixels, D] to the drawn, [M, D]."""
    sums = []
    for run in runs(image.shape[1], 4):
        part = device.upload(padded(image[:, run]))
        found = device.download(gather(device, band, part, last, occluded))
        sums.append(found.reshape(band.drawn, 4)[:, : run.stop - run.start])
    return np.concatenate(sums, axis=1)


def normal(device: Device, band: Band, values: Floats, mask: NDArray[np.uint32] | None) -> Floats:
    """A^T M A of the drawn, [M, D] to [M, D]; the image stays on the device."""
    kept = None if mask is None else device.upload(mask)
    sums = []
    for run in runs(values.shape[1], 4):
        image = blend(device, band, device.upload(padded(values[:, run])), 1)
        if kept is not None:
            device.run_over("keep", band.pixels, kept, image)
        found = device.download(gather(device, band, image))
        sums.append(found.reshape(band.drawn, 4)[:, : run.stop - run.start])
    return np.concatenate(sums, axis=1)


def contributors(
    device: Device, band: Band, pixels: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], Floats]:
    """Number, drawn Gaussians and weights behind pixels of this band, [P, 2] as (row, column)."""
    lists = band.camera, band.starts, band.listed, band.records, device.upload(pixels)
    counted, nothing, none = device.empty(len(pixels)), device.empty(0), device.empty(0)
    device.run_over("contribute", len(pixels), *lists, counted, nothing, none, write=False)
    counts = device.download(counted, dtype=np.uint32)
    total = int(counts.sum(dtype=np.uint64))
    starts = device.upload((np.cumsum(counts, dtype=np.uint32) - counts).astype(np.uint32))
    found, weights = device.empty(total), device.empty(total)
    device.run_over("contribute", len(pixels), *lists, starts, found, weights, write=True)
    return counts, device.download(found, dtype=np.uint32), device.download(weights)
