# SPDX-License-Identifier: Apache-2.0
"""How many photos of a capture have a pose, and which COLMAP model says so."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from splatcert.errors import listed
from splatcert.scene.dataset import Dataset
from splatcert.scene.photo_files import PHOTO_SUFFIXES, PhotoFinder
from splatcert.scene.pixels import ImageError
from splatcert.scene.readers.colmap_models import models_in, photo_count, place_of

SUFFIXES = {suffix.lower() for suffix in PHOTO_SUFFIXES}


@dataclass(frozen=True, kw_only=True)
class Registered:
    """Photos with a pose, among those in the folder and among those the dataset names."""

    with_photo: int
    """Poses whose photo is there."""
    named: int
    """Poses that the dataset names."""
    skipped: int
    """Poses that were left out because their photo is missing."""
    in_folder: int | None
    """Photos in the folder; None where a format has several folders."""
    model: str | None
    """Folder of the COLMAP model that was read."""
    models: dict[str, str]
    """Every COLMAP model, with its number of photos in words; empty if there is only one."""

    @property
    def is_notable(self) -> bool:
        """Whether something was left out or chosen that a user may not expect."""
        unposed = self.in_folder is not None and self.in_folder > self.with_photo
        return unposed or self.skipped > 0 or bool(self.models)

    def words(self) -> str:
        """The same in words."""
        total = self.named if self.in_folder is None else max(self.in_folder, self.with_photo)
        parts = [f"{self.with_photo} of {total} photos are registered"]
        if self.skipped:
            parts.append(f"{self.skipped} of {self.named} poses left out: their photos are missing")
        if self.models:
            others = [f"{k}: {words}" for k, words in self.models.items() if k != self.model]
            parts.append(
                f"model {self.model} of {len(self.models)} (not read: {listed(others, 4)}; "
                "--sparse N reads sparse/N)"
            )
        return "; ".join(parts)


def count_registered(dataset: Dataset, finder: PhotoFinder) -> Registered:
    """Count the poses of a dataset and the photos in its folder."""
    read = dataset.source if dataset.format == "colmap" else None
    models = [] if read is None else models_in(dataset.root)
    several = models if len(models) > 1 else []
    found = [finder.photo(shot.folder, shot.file, dataset.source) for shot in dataset.shots]
    return Registered(
        with_photo=sum(path is not None for path in found),
        named=len(found),
        skipped=0,
        in_folder=_photos_beside(dataset, finder),
        model=None if read is None else place_of(read, dataset.root),
        models={place_of(one, dataset.root): photo_count(one) for one in several},
    )


def without_missing(
    dataset: Dataset, finder: PhotoFinder, counted: Registered
) -> tuple[Dataset, Registered]:
    """The dataset without the poses whose photo is missing, and how many those are."""
    kept = [
        shot
        for shot in dataset.shots
        if finder.photo(shot.folder, shot.file, dataset.source) is not None
    ]
    if not kept:
        folders = sorted({finder.images or shot.folder for shot in dataset.shots})
        raise ImageError(
            f"none of the {len(dataset.shots)} photos that {dataset.source} names was found.\n"
            f"  Looked in {listed(str(finder.root / folder) for folder in folders)}.\n"
            "  Name the folder that contains them: --images FOLDER."
        )
    names = {shot.name for shot in kept}
    split = dataset.split and {name: dataset.split[name] for name in dataset.split.keys() & names}
    skipped = len(dataset.shots) - len(kept)
    return replace(dataset, shots=tuple(kept), split=split), replace(counted, skipped=skipped)


def _photos_beside(dataset: Dataset, finder: PhotoFinder) -> int | None:
    """Number of photos in the folders that a dataset's photos come from."""
    if dataset.format == "blender":
        return None
    folders = {finder.images or shot.folder for shot in dataset.shots}
    return sum(_count_photos(finder.root / folder, deep=bool(folder)) for folder in folders)


def _count_photos(folder: Path, *, deep: bool) -> int:
    total = 0
    for _, below, files in os.walk(folder):
        total += sum(os.path.splitext(file)[1].lower() in SUFFIXES for file in files)
        if not deep:
            below.clear()
    return total
