# SPDX-License-Identifier: Apache-2.0
"""The two sides of a registration: photos with known poses, and new ones without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import extent_of
from splatcert.errors import listed
from splatcert.registration.features import Picture, RegistrationError
from splatcert.registration.optics import CaptureCameras, Choice, Optics, Shared
from splatcert.scene.dataset import Part, Shot
from splatcert.scene.lens import Lens
from splatcert.scene.load import Photographs, read_photographs
from splatcert.scene.photo_files import PHOTO_SUFFIXES, find_photos, fitted_lens
from splatcert.scene.readers.colmap import read_colmap
from splatcert.scene.readers.colmap_append import camera_of
from splatcert.storage.whole import file_hash

OWN_FOLDER = "registered"
"""Where a new photo goes whose name a photo of the capture already has."""


@dataclass(frozen=True, eq=False)
class KnownSide:
    """The capture: its photos at their size, with poses and cameras."""

    photographs: Photographs
    shots: tuple[Shot, ...]
    paths: tuple[Path, ...]
    lenses: tuple[Lens, ...]
    """At the size of the photos."""
    keys: tuple[int, ...]
    """Camera of each photo: COLMAP's own number, or one counted here."""

    @classmethod
    def open(cls, data: Path, reading: Mapping[str, Any]) -> KnownSide:
        """Read a capture of any format; of a format with its own split, the training photos."""
        photographs = read_photographs(data, **reading)
        dataset = photographs.dataset
        if dataset.added:
            raise RegistrationError(
                f"{data} already contains {len(dataset.added)} registered photos.\n"
                "  Pass the capture that they were added to, and all new photos at once."
            )
        parts: dict[str, Part] = {
            shot.name: "training"
            if (dataset.split or {}).get(shot.name) in (None, "training")
            else "unused"
            for shot in dataset.shots
        }
        found = find_photos(dataset, parts, photographs.finder)
        shots = tuple(shot for shot in dataset.shots if parts[shot.name] == "training")
        paths = tuple(path for path in found.values() if path is not None)
        header = photographs.finder.header
        sized = zip(shots, paths, strict=True)
        lenses = tuple(fitted_lens(shot, path, header(path)) for shot, path in sized)
        if dataset.format == "colmap":
            cameras = {image.name: image.camera_id for image in read_colmap(dataset.source).images}
            keys = tuple(cameras[shot.name] for shot in shots)
        else:
            numbers = {lens: n for n, lens in enumerate(dict.fromkeys(lenses), 1)}
            keys = tuple(numbers[lens] for lens in lenses)
        return cls(photographs, shots, paths, lenses, keys)

    @property
    def is_colmap(self) -> bool:
        """Whether its reconstruction is copied as it is."""
        return self.photographs.dataset.format == "colmap"

    @property
    def poses(self) -> NDArray[np.float64]:
        """World to camera, [N, 4, 4]."""
        return np.array([shot.world_to_camera for shot in self.shots])

    @cached_property
    def extent(self) -> float:
        """As of a scene whose training photos these are."""
        views = zip(self.shots, self.lenses, strict=True)
        return extent_of([shot.camera(lens) for shot, lens in views])

    @cached_property
    def hashes(self) -> tuple[str, ...]:
        """SHA-256 of each photo."""
        return tuple(map(file_hash, self.paths))

    def pictures(self) -> list[Picture]:
        """For the search for features."""
        known = zip(self.paths, self.hashes, self.lenses, strict=True)
        return [
            Picture(path=path, sha256=digest, camera=camera_of(lens, 0), place=place)
            for place, (path, digest, lens) in enumerate(known)
        ]


@dataclass(frozen=True, kw_only=True)
class NewPhoto:
    """A photo to be registered."""

    name: str
    """In the capture it will belong to."""
    path: Path
    sha256: str
    optics: Optics
    shared: Shared | None
    """The camera of the capture that took it; None for a camera of its own."""

    @property
    def picture(self) -> Picture:
        """For the search for features."""
        if self.shared is not None:
            camera, known = camera_of(self.shared.lens, 0), True
        else:
            camera, known = self.optics.guess()
        return Picture(path=self.path, sha256=self.sha256, camera=camera, knows_focal=known)


def new_photos(folder: Path, known: KnownSide, camera: Choice) -> list[NewPhoto]:
    """The photos of a folder; a photo of the capture is refused, because models have seen it."""
    suffixes = {suffix.lower() for suffix in PHOTO_SUFFIXES}
    if not folder.is_dir():
        raise RegistrationError(f"{folder} is not a folder.\n  Pass the folder of new photos.")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in suffixes)
    if not files:
        raise RegistrationError(
            f"{folder} contains no photos.\n"
            f"  Looked for {', '.join(sorted(suffixes))}. Convert other formats, such as HEIC."
        )
    taken = {shot.name for shot in known.shots}
    first: dict[str, Path | str] = dict(zip(known.hashes, taken_names(known.shots), strict=True))
    twice, found = [], []
    cameras = CaptureCameras(known.keys, known.lenses, known.paths)
    for path in files:
        place = path.relative_to(folder).as_posix()
        digest, optics = file_hash(path), Optics.of(path)
        if digest in first:
            twice.append(f"{place} is {first[digest]}")
        first.setdefault(digest, place)
        name = f"{OWN_FOLDER}/{place}" if place in taken else place
        shared = cameras.shared(optics, camera, place)
        found.append(NewPhoto(name=name, path=path, sha256=digest, optics=optics, shared=shared))
    if twice:
        raise RegistrationError(
            f"{len(twice)} of {len(files)} new photos are copies: {listed(twice)}.\n"
            "  A photo that the model may have seen cannot calibrate, and none counts twice.\n"
            f"  Remove them from {folder}."
        )
    return found


def taken_names(shots: Sequence[Shot]) -> list[str]:
    """Names of known photos, as messages call them."""
    return [f"{shot.name} of the capture" for shot in shots]
