# SPDX-License-Identifier: Apache-2.0
"""The record of photos that were added to a finished capture: which ones, and their hashes.

`splatcert register` writes it beside the reconstruction. A trainer that ran before could not
have seen these photos, so they are the ones to calibrate on.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from splatcert.errors import InputError, listed
from splatcert.scene.dataset import WorldFrame
from splatcert.storage.schema import PlainError, from_plain, read_json, to_plain
from splatcert.storage.whole import file_hash, write_text_whole

FILE = "registered.json"
IDENTITY = tuple(np.eye(4).ravel().tolist())
AGAIN = "Register the photos again: splatcert register DATA PHOTOS -o OUT."


class RegisteredError(InputError):
    """A record of registered photos that does not match its capture."""


@dataclass(frozen=True, kw_only=True)
class AddedPhoto:
    """One photo that was registered afterwards."""

    name: str
    """Its name in the reconstruction."""
    sha256: str
    """Of the file."""
    camera: Literal["shared", "own"]
    """Whether it has the intrinsics of a camera of the capture, or its own."""
    inliers: int
    """Points that agree with its pose."""
    error: float
    """Median reprojection error of the inliers, in pixels of the photo."""


@dataclass(frozen=True, kw_only=True)
class AddedPhotos:
    """All photos that were added to a capture."""

    schema: int = 1
    photos: tuple[AddedPhoto, ...]
    original_to_scene: tuple[float, ...] = IDENTITY
    """From the coordinates of the original data to those of the poses, 4 x 4 by rows."""

    def __post_init__(self) -> None:
        if self.schema != 1:
            raise ValueError(f"schema {self.schema} is not known to this version")
        if not self.photos or len(set(self.names)) < len(self.photos):
            raise ValueError("photos must list at least one, and none twice")
        if len(self.original_to_scene) != 16 or not np.isfinite(self.original_to_scene).all():
            raise ValueError("original_to_scene must be 16 finite numbers")

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(photo.name for photo in self.photos)

    @property
    def frame(self) -> WorldFrame:
        """The frame of the capture before photos were added to it."""
        return WorldFrame(np.array(self.original_to_scene).reshape(4, 4))

    def save(self, folder: Path) -> None:
        """Write the record into the folder of a capture."""
        write_text_whole(folder / FILE, json.dumps(to_plain(self), indent=1) + "\n")


def read_added(root: Path, names: Collection[str], photos: Path) -> AddedPhotos | None:
    """The record in a capture's folder, checked against its photos; None where there is none."""
    path = root / FILE
    if not path.is_file():
        return None
    content = read_json(path, "record of registered photos", raises=RegisteredError)
    try:
        found = from_plain(AddedPhotos, content)
    except PlainError as error:
        raise RegisteredError(f"{path}: {error}.\n  {AGAIN}") from None
    if unknown := sorted(set(found.names) - set(names)):
        raise RegisteredError(
            f"{path} lists {len(unknown)} photos that the reconstruction does not have: "
            f"{listed(unknown)}.\n  {AGAIN}"
        )
    wrong = [
        photo.name
        for photo in found.photos
        if (photos / photo.name).is_file() and file_hash(photos / photo.name) != photo.sha256
    ]
    if wrong:
        raise RegisteredError(
            f"{len(wrong)} of {len(found.photos)} registered photos have changed since: "
            f"{listed(wrong)}.\n  Listed in {path}.\n  Restore them. {AGAIN}"
        )
    return found
