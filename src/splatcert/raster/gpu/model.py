# SPDX-License-Identifier: Apache-2.0
"""What stays on the device from view to view: the splats and what they carry, in pages.

No binding of WebGPU need be larger than 128 MiB, so large models are stored in several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster.gpu.device import Buffer, Device
from splatcert.raster.query_maps import Traits
from splatcert.raster.reference import FOV_MARGIN
from splatcert.splats.gaussians import MAX_SH_DEGREE, Splats

GEOMETRY = 12
"""Words per Gaussian: mean and opacity, rotation, scales and one unused."""
WIDEST = 3 * (MAX_SH_DEGREE + 1) ** 2
"""Words per Gaussian of the widest table."""


@dataclass(frozen=True, eq=False)
class Page:
    """A run of Gaussians whose tables fit a binding each."""

    first: Buffer
    """Index of its first Gaussian, [1]."""
    count: int
    geometry: Buffer
    """[count, 12]."""
    sh: Buffer
    """[count, K, 3]."""


@dataclass(frozen=True, eq=False)
class Model:
    """Splats on the device."""

    count: int
    sh_degree: int
    pages: list[Page]


def page_slices(device: Device, count: int) -> list[slice]:
    """Runs of Gaussians whose widest table fits a binding."""
    size = max(1, device.largest_binding // (4 * WIDEST))
    return [slice(start, min(count, start + size)) for start in range(0, count, size)]


def _model(device: Device, splats: Splats) -> Model:
    doubles = [
        tensor.detach().to(device="cpu", dtype=torch.float64)
        for tensor in (splats.means, splats.quats, splats.log_scales, splats.logit_opacities)
    ]
    means, quats, log_scales, logits = doubles
    rotations = quats / quats.norm(dim=1, keepdim=True)
    columns = [means, logits.sigmoid()[:, None], rotations, log_scales.exp(), logits[:, None] * 0]
    table = torch.cat(columns, dim=1).float()
    table[:, 11] = 0
    table[~table.isfinite().all(1)] = 0  # opacity 0: not drawn
    sh = splats.sh.detach().to(device="cpu", dtype=torch.float32)
    return Model(
        len(splats),
        splats.sh_degree,
        [
            Page(
                device.upload(np.array([part.start], np.uint32)),
                part.stop - part.start,
                device.upload(table[part].numpy()),
                device.upload(sh[part].numpy()),
            )
            for part in page_slices(device, len(splats))
        ],
    )


def _tables(device: Device, traits: Traits) -> list[Buffer]:
    rows = traits.table.numpy()
    return [device.upload(rows[part]) for part in page_slices(device, len(rows))]


Source = TypeVar("Source")
Stored = TypeVar("Stored")


class Uploaded(Generic[Source, Stored]):
    """Device copies by the object they were made from, as long as it lives unchanged."""

    def __init__(
        self,
        make: Callable[[Device, Source], Stored],
        tensors: Callable[[Source], tuple[Tensor, ...]],
    ) -> None:
        self._make, self._tensors, self._lock = make, tensors, Lock()
        self._kept: WeakKeyDictionary[Source, tuple[object, Stored]] = WeakKeyDictionary()

    def of(self, device: Device, source: Source) -> Stored:
        """The copy of this object, uploaded on first use and after a change in place."""
        state = [device, *(_version(tensor) for tensor in self._tensors(source))]
        with self._lock:  # threads wait for one upload instead of each making their own
            kept = self._kept.get(source)
            if kept is None or kept[0] != state:
                kept = state, self._make(device, source)
                self._kept[source] = kept
        return kept[1]


def _version(tensor: Tensor) -> int:
    """Number of changes in place; tensors of inference mode do not count them."""
    return 0 if tensor.is_inference() else tensor._version


models = Uploaded(_model, lambda s: (s.means, s.quats, s.log_scales, s.logit_opacities, s.sh))
trait_tables = Uploaded(_tables, lambda t: (t.table,))


def camera_words(camera: Camera, rows: slice, antialiased: bool) -> NDArray[np.uint32]:
    """Some rows of a camera's picture as the kernels take them, [52]."""
    pose = np.asarray(camera.world_to_camera, np.float64)
    focal, principal = [camera.fx, camera.fy], [camera.cx, camera.cy]
    turn, centre = np.zeros((3, 4)), np.zeros(4)
    turn[:, :3] = pose[:3, :3]
    centre[:3] = -pose[:3, :3].T @ pose[:3, 3]
    slopes = [
        *_slopes(camera.cx, camera.fx, camera.width),
        *_slopes(camera.cy, camera.fy, camera.height),
    ]
    parts = [half for exact in (turn, centre, focal, principal) for half in _halves(exact)]
    floats = np.concatenate([*parts, np.array(slopes, np.float32)])
    sizes = [camera.width, rows.stop - rows.start, rows.start, antialiased, 0, 0, 0, 0]
    return np.concatenate([floats.view(np.uint32), np.array(sizes, np.uint32)])


def _slopes(principal: float, focal: float, size: int) -> tuple[float, float]:
    """Least and largest slope that the Jacobian may take."""
    margin = FOV_MARGIN * 0.5 * size / focal
    return -(principal / focal + margin), (size - principal) / focal + margin


def _halves(exact: object) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Doubles as sums of two floats."""
    doubles = np.asarray(exact, np.float64).ravel()
    high = doubles.astype(np.float32)
    return high, (doubles - high).astype(np.float32)
