# SPDX-License-Identifier: Apache-2.0
"""Training photographs on the device, and what they say about the pixels of a query there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.raster.gpu.device import Buffer, Device, DeviceMemoryError
from splatcert.raster.gpu.query import DeviceMaps
from splatcert.raster.render import BackendError

SUMS, MAPS = 18, 11
"""Numbers per pixel that witnesses add to, and that become of them: the kernels' own."""


def upload_photos(device: Device, photos: Sequence[NDArray[np.uint8]]) -> list[Buffer]:
    """Packed photographs, [h, w, 8] each, one buffer per photograph."""
    largest = max((photo.nbytes for photo in photos), default=0)
    if largest > device.largest_binding:
        raise BackendError(
            f"a training photo takes {largest:,} bytes, and a buffer of this GPU holds "
            f"{device.largest_binding:,}.\n"
            "  Load the capture at a smaller size, or use the back end 'cpu'."
        )
    try:
        return [device.upload(photo.view(np.uint32)) for photo in photos]
    except DeviceMemoryError as error:
        total = sum(photo.nbytes for photo in photos)
        raise DeviceMemoryError(
            f"the GPU has too little memory for {len(photos)} training photos ({total:,} bytes), "
            "which this scale compares with.\n"
            "  Close other programs that use it, load the capture at a smaller size, or use the "
            "back end 'cpu'."
        ) from error


def ask_photos(
    maps: DeviceMaps,
    photos: Sequence[Buffer],
    sizes: Sequence[tuple[int, int]],
    numbers: NDArray[np.float64],
) -> NDArray[np.float32]:
    """The maps that these photographs make of a query, [11, H, W].

    `numbers` are rotation and shift from the query's camera to that of each, its centre in the
    query's, its lens and its depths, [n, 21]. Photographs add to the sums one after the other, so
    bits repeat.
    """
    device, camera = maps.device, maps.camera
    pixels = camera.width * camera.height
    found = device.empty(MAPS * pixels)
    at_once = max(1, device.largest_binding // (4 * SUMS))
    for first in range(0, pixels, at_once):
        count = min(at_once, pixels - first)
        told = device.empty(SUMS * count)
        for photo, size, row in zip(photos, sizes, numbers, strict=True):
            asked = device.upload(_asked(camera, row, size, first))
            device.run_over("witness", count, maps.picture, maps.planes, asked, photo, told)
        place = device.upload(np.array([first], np.uint32))
        device.run_over("testimony", count, maps.picture, place, told, found)
    return device.download(found).reshape(MAPS, camera.height, camera.width)


def _asked(
    query: Camera, row: NDArray[np.float64], size: tuple[int, int], first: int
) -> NDArray[np.uint32]:
    """One photograph, width and height, as its kernel takes it, [28]."""
    rotation, shift, centre, lens, depths = np.split(row, [9, 12, 15, 19])
    turned = np.column_stack([rotation.reshape(3, 3), shift]).ravel()
    own = (query.fx, query.fy, query.cx, query.cy)
    floats = np.concatenate([turned, centre, depths[:1], lens, own]).astype(np.float32)
    whole = np.array([*size, first], np.uint32)
    return np.concatenate([floats.view(np.uint32), whole, depths[1:].astype("f4").view("u4")])
