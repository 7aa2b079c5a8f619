# SPDX-License-Identifier: Apache-2.0
"""Which camera took a new photo: one of the capture's, or one of its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from splatcert.registration.features import RegistrationError
from splatcert.scene.lens import Lens, same_shape
from splatcert.scene.pixels import exif_optics, read_header
from splatcert.scene.readers.colmap import ColmapCamera

Choice = Literal["auto", "shared", "own"]
FILM = 36.0
"""Width of 35 mm film in millimetres."""
USUAL_FOCAL = 1.2
"""Focal length over the long side where nothing is known; COLMAP's value."""
SAME_FOCAL = 0.01
"""Largest relative difference between focal lengths of one camera."""


@dataclass(frozen=True)
class Optics:
    """What the file of a photo says about the camera behind it."""

    size: tuple[int, int]
    model: str
    focal: float
    """In millimetres; 0 if untold."""
    focal35: float
    """As on 35 mm film; 0 if untold."""

    @classmethod
    def of(cls, path: Path) -> Optics:
        """Read from the file's header."""
        return cls(read_header(path).size, *exif_optics(path))

    def agrees(self, other: Optics) -> bool:
        """Whether both may come from one camera at one focal length."""
        told = (self.model, self.focal, self.focal35) == (other.model, other.focal, other.focal35)
        return told and same_shape(self.size, other.size)

    def guess(self) -> tuple[ColmapCamera, bool]:
        """A camera to start from, and whether its focal length is more than a guess."""
        width, height = self.size
        share = self.focal35 / FILM or USUAL_FOCAL
        params = (share * max(self.size), width / 2, height / 2, 0.0)
        return ColmapCamera(0, "SIMPLE_RADIAL", width, height, params), self.focal35 > 0


@dataclass(frozen=True)
class Shared:
    """A camera of the capture that a new photo shares: by its key there, and its lens."""

    key: int
    lens: Lens


class CaptureCameras:
    """The cameras of a capture and what their photos say about themselves."""

    def __init__(self, keys: Sequence[int], lenses: Sequence[Lens], photos: Sequence[Path]) -> None:
        self.lenses: Mapping[int, Lens] = dict(zip(keys, lenses, strict=True))
        self.optics: dict[int, Counter[Optics]] = defaultdict(Counter)
        for key, photo in zip(keys, photos, strict=True):
            self.optics[key][Optics.of(photo)] += 1

    def shared(self, optics: Optics, asked: Choice, name: str) -> Shared | None:
        """The camera that a new photo shares, None for its own.

        Cameras agree if size and EXIF entries do. Where several agree and their focal lengths
        differ, none of them is known to be the right one.
        """
        if asked == "own":
            return None
        fits = Counter(
            {
                key: sum(n for one, n in known.items() if asked == "shared" or one.agrees(optics))
                for key, known in self.optics.items()
                if same_shape(self.lenses[key].size, optics.size)
            }
        )
        chosen = [key for key, count in fits.most_common() if count]
        if chosen:
            focals = [self.lenses[key].fx / self.lenses[key].width for key in chosen]
            if asked == "shared" or max(focals) - min(focals) <= SAME_FOCAL * min(focals):
                lens = self.lenses[chosen[0]]
                return Shared(chosen[0], lens.resized(*optics.size))
        if asked == "shared":
            raise RegistrationError(
                f"{name} has {optics.size[0]} x {optics.size[1]} pixels, which is the shape of no "
                "camera of the capture.\n  Use --camera own or --camera auto."
            )
        return None
