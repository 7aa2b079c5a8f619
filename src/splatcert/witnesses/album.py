# SPDX-License-Identifier: Apache-2.0
"""The album: the training photographs of a capture, ready to be asked about any camera."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from splatcert import _native
from splatcert.camera import Camera
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.difficulty.guided.guide import Guide
from splatcert.field.fitted_scene import FittedScene
from splatcert.progress import Progress, quiet
from splatcert.raster.abreast import abreast
from splatcert.raster.gpu.device import Buffer, Device
from splatcert.raster.gpu.model import Uploaded
from splatcert.raster.gpu.query import DeviceMaps
from splatcert.raster.gpu.witnesses import upload_photos
from splatcert.raster.native_autograd import plain_floats
from splatcert.raster.query_maps import QueryMaps
from splatcert.raster.render import Backend, open_view, render
from splatcert.scene.roles import TrainingView, require_labels
from splatcert.storage.memory import require_memory
from splatcert.witnesses.maps import GuidedMap, Witness, WitnessMaps, ask, ask_device, ask_scale
from splatcert.witnesses.pack import BYTES, in_words, pack

ASKED = 8
"""Number of training views that are asked about a camera."""
SAME = 1e-9
"""Relative difference of poses up to which a camera is the one that took a photograph."""


@dataclass(frozen=True, eq=False)
class Album:
    """Photographs, residuals and depths of the training views, six bytes per pixel."""

    witnesses: tuple[Witness, ...]

    @classmethod
    def of(
        cls,
        views: Sequence[TrainingView],
        scene: FittedScene,
        backend: Backend,
        on: Progress = quiet,
    ) -> Album:
        """The album of these training views and their renders."""

        def collect(view: TrainingView) -> Witness:
            photo = require_labels(view, TrainingView).image()
            shown = render(scene.splats, view.camera, background=scene.background, backend=backend)
            packed = pack(photo, shown.rgb.clamp(0, 1).cpu(), shown.depth.cpu())
            return Witness(view.camera, packed)

        cameras = [view.camera for view in views]
        refuse_large_album(cameras)
        return cls(tuple(abreast(collect, views, cameras, "collecting training photographs", on)))

    @property
    def nbytes(self) -> int:
        """Memory used."""
        return sum(witness.packed.pixels.numel() for witness in self.witnesses)

    def ask(self, camera: Camera, maps: QueryMaps) -> WitnessMaps:
        """What the nearest photographs say about a camera's picture, on the device if it is there.

        The photographs are uploaded when the first picture on a device is asked about.
        """
        places = self.nearest(camera, _native.median(plain_floats(maps.depth)))
        asked = [self.witnesses[k] for k in places]
        if not isinstance(maps, DeviceMaps):
            return ask(camera, maps.center, maps.depth, asked)
        photos = _on_device.of(maps.device, self)
        return ask_device(maps, asked, [photos[k] for k in places])

    def scale(
        self, camera: Camera, found: QueryMaps, guide: Guide, *, correct: bool = False
    ) -> GuidedMap:
        """The scale that the nearest photographs and the field make of a rendered camera."""
        near = self.nearest(camera, _native.median(plain_floats(found.depth)))
        return ask_scale(camera, found, [self.witnesses[k] for k in near], guide, correct=correct)

    def nearest(self, camera: Camera, depth: float) -> list[int]:
        """Places of the views to ask: close to the camera, for its depth, and alike in direction.

        A photograph taken by this very camera is never asked: it may be the picture's own label,
        and a training view is described as if it were new.
        """
        centres, axes, poses = self._geometry
        away = np.linalg.norm(centres - camera.centre, axis=1)
        far = away / max(depth, SAME) + np.arccos((axes @ camera.forward).clip(-1.0, 1.0))
        apart = np.abs(poses - camera.world_to_camera).max((1, 2))
        far[apart <= SAME * np.abs(poses).max((1, 2), initial=1.0)] = np.inf
        order = far.argsort(kind="stable")[:ASKED]
        return [int(k) for k in order if np.isfinite(far[k])]

    @cached_property
    def _geometry(self) -> tuple[NDArray[np.float64], ...]:
        """Centres and viewing axes, [T, 3], and poses, [T, 4, 4]."""
        cameras = [witness.camera for witness in self.witnesses]
        parts = ("centre", "forward", "world_to_camera")
        return tuple(np.array([getattr(camera, part) for camera in cameras]) for part in parts)


def refuse_large_album(cameras: Sequence[Camera]) -> None:
    """Refuse more training photographs than memory may hold."""
    what = f"the guided scale of {len(cameras):,} training photographs"
    require_memory(album_bytes(cameras), what, " (--scale paper keeps none)")


def album_bytes(cameras: Iterable[Camera]) -> int:
    """Memory that the training photographs of these cameras take."""
    return sum(BYTES * camera.width * camera.height for camera in cameras)


def _upload(device: Device, album: Album) -> list[Buffer]:
    return upload_photos(device, [in_words(witness.packed) for witness in album.witnesses])


_on_device = Uploaded(_upload, lambda album: tuple(w.packed.pixels for w in album.witnesses))


def render_maps(scene: FittedScene, camera: Camera, backend: Backend) -> QueryMaps:
    """Picture, depth and maps of a camera."""
    return open_view(scene.splats, camera, backend).query(scene.traits, scene.background, EPSILON0)
