# SPDX-License-Identifier: Apache-2.0
"""From a capture and new photos to a capture that contains both; old poses stay untouched."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from splatcert.progress import Progress, each, quiet
from splatcert.registration.capture_photos import KnownSide, NewPhoto, new_photos
from splatcert.registration.features import (
    FeatureDatabase,
    Picture,
    RegistrationError,
    require_pycolmap,
)
from splatcert.registration.localise import Floats, Landmarks, Located, locate
from splatcert.registration.optics import SAME_FOCAL, Choice, Optics
from splatcert.registration.pairs import LookAlikes, near_pairs
from splatcert.registration.publish import publish
from splatcert.registration.verdict import doubts
from splatcert.registration.write import refuse_other_content
from splatcert.storage.whole import owned_folder

WORK = ".registration"
"""Folder of features and matches inside the output; deleting it costs time, nothing else."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """A new photo, its pose, and why it is refused if it is."""

    photo: NewPhoto
    picture: Picture
    """With the camera as it was finally used."""
    located: Located
    doubts: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Registration:
    """What became of all new photos."""

    known: KnownSide
    outcomes: tuple[Outcome, ...]
    landmarks: int
    """Points that were triangulated at the known poses."""

    @property
    def accepted(self) -> list[Outcome]:
        """Photos whose pose is certain enough."""
        return [one for one in self.outcomes if not one.doubts]


def register(
    data: Path,
    photos: Path,
    output: Path,
    *,
    reading: Mapping[str, Any] | None = None,
    camera: Choice = "auto",
    threads: int = 0,
    on: Progress = quiet,
) -> Registration:
    """Localise new photos in a capture and write a capture with those that are certain.

    `reading` is how to read the capture, as for `read_photographs`. The output is written if at
    least one photo is accepted.
    """
    require_pycolmap()
    known = KnownSide.open(data, reading or {})
    place, root = output.resolve(), known.photographs.finder.root.resolve()
    folders = {path.resolve().parent for path in known.paths} - {root}
    if place == root or any(place.is_relative_to(folder) for folder in folders):
        raise RegistrationError(
            f"{output} is part of the capture, which stays as it is.\n"
            "  Choose another folder with --output."
        )
    refuse_other_content(output)
    added = new_photos(photos, known, camera)
    with owned_folder(output, "registering photos"):
        work = output / WORK
        work.mkdir(exist_ok=True)
        database = FeatureDatabase(work / "database.db", threads or os.cpu_count() or 1)
        try:
            result = _localise(known, added, database, work, on)
        finally:
            database.close()
        if result.accepted:
            publish(known, [(o.photo, o.picture, o.located) for o in result.accepted], output, work)
    return result


def _localise(
    known: KnownSide,
    added: Sequence[NewPhoto],
    database: FeatureDatabase,
    work: Path,
    on: Progress,
) -> Registration:
    pictures, new = known.pictures(), [photo.picture for photo in added]
    database.find_features([*pictures, *new], "features", on)
    search = LookAlikes(database, pictures)
    alike = [search.of(picture) for picture in each(new, "similar photos", on)]
    wanted = sorted({index for chosen in alike for index in chosen})
    pairs = [(pictures[i], pictures[j]) for i, j in near_pairs(known.poses, wanted, known.extent)]
    for picture, chosen in zip(new, alike, strict=True):
        pairs += [(pictures[index], picture) for index in chosen]
    database.match(pairs, "matches", on)
    on("points", 0, 1)
    landmarks = Landmarks(database, pictures, known.poses, work / "points")
    shown = [landmarks.seen_by(*one) for one in zip(new, alike, strict=True)]
    located = [
        locate(database, picture, *points, free=photo.shared is None)
        for photo, picture, points in each(list(zip(added, new, shown, strict=True)), "poses", on)
    ]
    new = _pooled_cameras(added, new, located)
    for index, picture in enumerate(new):
        if picture.knows_focal and added[index].shared is None:
            located[index] = locate(database, picture, *shown[index], free=False)
    return Registration(
        known=known,
        landmarks=len(landmarks),
        outcomes=tuple(
            Outcome(
                photo=photo,
                picture=picture,
                located=found,
                doubts=tuple(doubts(found, max(photo.optics.size), known.extent)),
            )
            for photo, picture, found in zip(added, new, located, strict=True)
        ),
    )


def _pooled_cameras(
    added: Sequence[NewPhoto], pictures: Sequence[Picture], located: Sequence[Located]
) -> list[Picture]:
    """Pictures with the camera that their group of photos has in common.

    One photo says little about a focal length. Photos of one size and one EXIF entry share the
    median of their estimates, if these agree; otherwise each keeps its own.
    """
    groups: dict[Optics, list[int]] = defaultdict(list)
    for index, (photo, found) in enumerate(zip(added, located, strict=True)):
        if photo.shared is None and found.world_to_camera is not None:
            groups[photo.optics].append(index)
    pooled = list(pictures)
    for members in groups.values():
        params = np.array([located[index].camera for index in members])
        middle: Floats = np.median(params, axis=0)
        spread = np.median(np.abs(params[:, 0] / middle[0] - 1))
        for index in members:
            chosen = middle if spread <= SAME_FOCAL else params[members.index(index)]
            camera = replace(pictures[index].camera, params=tuple(map(float, chosen)))
            pooled[index] = replace(pictures[index], camera=camera, knows_focal=True)
    return pooled
