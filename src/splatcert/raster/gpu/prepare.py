# SPDX-License-Identifier: Apache-2.0
"""A view on the device: projected, sorted by depth, and listed tile by tile.

A picture whose lists would exceed a binding is prepared in bands of rows, each like a picture of
its own, so every buffer stays within the limits of WebGPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splatcert.camera import Camera
from splatcert.raster.gpu.device import Buffer, Device
from splatcert.raster.gpu.model import Model, camera_words
from splatcert.raster.gpu.sort import scan, sorted_order
from splatcert.raster.render import BackendError
from splatcert.storage.memory import BYTES_PER_ENTRY, BYTES_PER_PIXEL, require_memory

TILE = 16
VECTORS = 3
"""Vectors of four channels that one pass composites at most."""
DEPTH_DIGITS = [(0, 0), (0, 8), (1, 0), (1, 8), (1, 16), (1, 24)]
"""What rounding took from the depth, then its float: 40 bits of precision."""


@dataclass(frozen=True, eq=False)
class Band:
    """Some rows of a view, ready for any number of passes; M Gaussians are drawn in E entries."""

    rows: slice
    width: int
    camera: Buffer
    ranks: Buffer
    """Place among the drawn of every Gaussian, [N + 1]; it is drawn if the next is larger."""
    gaussians: Buffer
    """Indices of the drawn, [M]."""
    depths: Buffer
    """Fine and coarse sort keys, [M, 2]; the coarse one is the float itself."""
    records: Buffer
    """Footprints, [M, 8]."""
    nearest: Buffer
    """The drawn from near to far, [M]."""
    offsets: Buffer
    """First entry of each of them, [M + 1]."""
    order: Buffer
    """Entries by tile, near to far within each, [E]."""
    listed: Buffer
    """Their Gaussians among the drawn, [E]."""
    starts: Buffer
    """First of each tile's entries in this order, [tiles + 1]."""

    @property
    def drawn(self) -> int:
        """M."""
        return self.gaussians.words

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return self.starts.words - 1

    @property
    def pixels(self) -> int:
        """Number of pixels."""
        return self.width * (self.rows.stop - self.rows.start)

    @property
    def nbytes(self) -> int:
        """Memory on the device."""
        return 4 * sum(part.words for part in vars(self).values() if isinstance(part, Buffer))


def prepare(device: Device, model: Model, camera: Camera, antialiased: bool) -> list[Band]:
    """The bands of a view, from the top: one, or as many as the limits of the device require."""
    what = f"a view of {camera.width} x {camera.height} pixels"
    pixels = BYTES_PER_PIXEL * camera.width * camera.height
    require_memory(pixels, what)
    waiting, bands, entries = [slice(0, camera.height)], [], 0
    while waiting:
        rows = waiting.pop()
        height = rows.stop - rows.start
        band = None
        if height <= TILE or 16 * VECTORS * camera.width * height <= device.largest_binding:
            band = _band(device, model, camera, antialiased, rows)
        if band is None and height <= TILE:
            raise BackendError(
                f"too many Gaussians in rows {rows.start} to {rows.stop - 1} of a picture "
                f"{camera.width} pixels wide for this GPU.\n"
                f"  One of its buffers holds {device.largest_binding:,} bytes. "
                "Render fewer pixels, or use the back end 'cpu'."
            )
        if band is None:
            middle = rows.start + TILE * max(1, height // (2 * TILE))
            waiting += [slice(middle, rows.stop), slice(rows.start, middle)]
            continue
        bands.append(band)
        entries += band.order.words
        why = f", because {model.count:,} Gaussians are in {entries:,} tiles or more"
        require_memory(pixels + BYTES_PER_ENTRY * entries, what, why)
    return bands


def _band(
    device: Device, model: Model, camera: Camera, antialiased: bool, rows: slice
) -> Band | None:
    """Some rows of a view, or None if they exceed a binding."""
    seen = device.upload(camera_words(camera, rows, antialiased))
    ranks = device.empty(model.count + 1)
    for page in model.pages:
        device.run_over("cull", page.count, seen, page.first, page.geometry, ranks)
    scan(device, ranks)
    drawn = _last(device, ranks)
    if 16 * VECTORS * drawn > device.largest_binding:
        return None

    records, depths, gaussians = (device.empty(words * drawn) for words in (8, 2, 1))
    for page in model.pages if drawn else []:
        tables = page.first, page.geometry, ranks, records, depths, gaussians
        device.run_over("place", page.count, seen, *tables)
    nearest = sorted_order(device, depths, drawn, DEPTH_DIGITS, words=2)
    offsets = device.empty(drawn + 1)
    device.run_over("measure", drawn, seen, records, nearest, offsets)
    scan(device, offsets)
    entries = _last(device, offsets)
    if 16 * entries > device.largest_binding:
        return None

    tiles, owners, listed = (device.empty(entries) for _ in range(3))
    device.run_over("emit", drawn if entries else 0, seen, records, nearest, offsets, tiles, owners)
    columns, height = -(-camera.width // TILE), rows.stop - rows.start
    starts = device.empty(columns * -(-height // TILE) + 1)
    digits = [(0, shift) for shift in range(0, (starts.words - 1).bit_length(), 8)]
    order = sorted_order(device, tiles, entries, digits)
    device.run_over("ranges", entries, tiles, order, owners, starts, listed)
    found = seen, ranks, gaussians, depths, records, nearest, offsets, order, listed, starts
    return Band(rows, camera.width, *found)


def _last(device: Device, sums: Buffer) -> int:
    """The total at the end of running sums."""
    return int(device.download(sums, slice(sums.words - 1, sums.words), np.uint32)[0])
