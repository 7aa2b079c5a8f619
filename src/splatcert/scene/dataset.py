# SPDX-License-Identifier: Apache-2.0
"""Every dataset format as one type: shots, sparse points and split rules."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import FARTHEST, Camera
from splatcert.errors import InputError, listed
from splatcert.scene.lens import Lens, pinhole_of

Format = Literal["colmap", "transforms", "blender"]
Part = Literal["training", "held out", "unused"]


@dataclass(frozen=True, eq=False)
class WorldFrame:
    """How the coordinates of a `transforms.json` came from those of the original data.

    The scene stays in the coordinates that the file's `transform_matrix` entries
    use. nerfstudio's models refer to the original data instead, so that their
    loader needs this step as well:

        x_scene = applied_scale * (applied_transform @ [x_original, 1])
    """

    applied_transform: NDArray[np.float64] = field(default_factory=lambda: np.eye(4))
    """Rotation (axes may be swapped) and shift, [4, 4]."""
    applied_scale: float = 1.0

    @property
    def original_to_scene(self) -> NDArray[np.float64]:
        """Both in one matrix, [4, 4]."""
        return np.diag([self.applied_scale] * 3 + [1.0]) @ self.applied_transform


@dataclass(frozen=True, eq=False)
class Shot:
    """One posed photo, before its file has been looked for."""

    name: str
    """Unique; photos are sorted by it."""
    lens: Lens
    world_to_camera: NDArray[np.float64]
    """[4, 4], OpenCV axes."""
    folder: str
    """Folder of the photo inside the dataset; `images_4` would replace it."""
    file: str
    """The photo's path inside that folder."""
    mask: str | None = None
    """Path of its mask inside the dataset, if the format names one."""

    def camera(self, lens: Lens) -> Camera:
        """The camera at this pose with the pinhole of a lens: its own, perhaps resized."""
        pinhole = pinhole_of(lens)
        return Camera(
            world_to_camera=self.world_to_camera,
            fx=pinhole.fx,
            fy=pinhole.fy,
            cx=pinhole.cx,
            cy=pinhole.cy,
            width=pinhole.width,
            height=pinhole.height,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Posed photos, sparse points and what the format says about splits."""

    format: Format
    root: Path
    """Folder that all files must lie in."""
    source: Path
    """The file or folder that was read; named in messages."""
    shots: tuple[Shot, ...]
    """Sorted by name."""
    points: SparsePoints | None = None
    frame: WorldFrame = field(default_factory=WorldFrame)
    split: dict[str, Part] | None = None
    """The format's own split by name, if it has one."""
    registered: tuple[str, ...] = ()
    """Photos that were added after the poses of the others had been computed, by name."""


class PointsError(InputError):
    """A point cloud that cannot be used."""


@dataclass(frozen=True, eq=False)
class SparsePoints:
    """N reconstructed points in the scene's frame."""

    xyz: NDArray[np.float64]
    """[N, 3]."""
    rgb: NDArray[np.uint8]
    """[N, 3], sRGB."""
    error: NDArray[np.float64] | None = None
    """Mean reprojection error in pixels at the model's resolution, [N]."""
    ids: NDArray[np.uint64] | None = None
    """The file's own point ids, [N]."""
    has_tracks: bool = False
    """Whether the file says which photos observed each point."""

    def __len__(self) -> int:
        return len(self.xyz)

    def check_finite(self, where: Path) -> None:
        """Refuse points without a usable position, naming how many and the first."""
        bad = np.flatnonzero(~(np.abs(self.xyz) <= FARTHEST).all(axis=1))
        if len(bad):
            raise PointsError(
                f"{len(bad)} of {len(self)} sparse points are not finite or beyond {FARTHEST:g}, "
                f"first at index {bad[0]}.\n"
                f"  In {where}.\n"
                "  Remove them, or export the reconstruction again."
            )


Holdout = int | str | tuple[str, ...] | os.PathLike[str] | None
DEFAULT_EVERY = 8
SPLIT_SEED = 0
OWN_SPLIT = "the dataset's own split"
"""The rule in words, if the format defines one."""


class SplitError(InputError):
    """A split that cannot be made."""


def split(dataset: Dataset, holdout: Holdout) -> tuple[dict[str, Part], str]:
    """The part of each photo by name, and the rule in words.

    `"auto"` is the photos registered afterwards if there are any, else the dataset's own
    split where its format has one, else every 8th photo in sorted order, which is what
    published comparisons hold out.
    """
    names = [shot.name for shot in dataset.shots]
    if isinstance(holdout, str) and holdout.isdigit():
        holdout = int(holdout)
    if holdout == "auto" and dataset.registered:
        count = len(dataset.registered)
        parts = _by_name(names, dataset.registered)
        return parts, f"{count} photo{'s' * (count > 1)} registered afterwards"
    if holdout == "auto":
        holdout = DEFAULT_EVERY if dataset.split is None else "format"
    if holdout is None or (holdout == 0 and not isinstance(holdout, bool)):
        parts, rule = _by_index(names, 0), "no photo held out"
    elif isinstance(holdout, bool):
        raise SplitError(f"holdout must be a number, a list file, 'format' or None, got {holdout}")
    elif isinstance(holdout, int):
        parts = _by_index(names, holdout)
        rule = f"index % {holdout} == 0 of the sorted names held out"
    elif (every := random_rule(holdout)) is not None:
        parts = _by_chance(names, every)
        rule = f"one random photo of every {every} in name order held out (seed {SPLIT_SEED})"
    elif holdout == "format":
        parts, rule = _own(dataset)
    elif isinstance(holdout, tuple):
        parts, rule = _by_name(names, holdout), f"{len(holdout)} photos held out by name"
    else:
        path = Path(holdout)
        path = path if path.is_file() else dataset.root / path
        parts, rule = _by_list(names, path), f"held out as listed in {path.name}"
    if "training" not in parts.values():
        raise SplitError(
            f"none of the {len(names)} photos is left for training ({rule}).\n"
            f"  In {dataset.source}.\n"
            "  Hold out fewer photos."
        )
    return parts, rule


def _by_index(names: Sequence[str], every: int) -> dict[str, Part]:
    """Photos at index 0, n, 2n, ... of the sorted names."""
    if every < 0 or every == 1:
        raise SplitError(
            f"holdout={every} leaves nothing to train on.\n"
            "  Pass 8 for every 8th photo, any other number above 1, or 0 for none."
        )
    return {
        name: "held out" if every and index % every == 0 else "training"
        for index, name in enumerate(sorted(names))
    }


def random_rule(holdout: Holdout) -> int | None:
    """N of the rule "randomN"; None for any other rule."""
    found = re.fullmatch("random([0-9]{1,18})", holdout) if isinstance(holdout, str) else None
    return int(found[1]) if found else None


def _by_chance(names: Sequence[str], every: int) -> dict[str, Part]:
    """One photo of every run of n sorted names: evenly spread, and in step with no rhythm.

    A hash of the names draws it. In a short last run the draw may fall on none: every photo
    has the same chance of 1/n.
    """
    if not 2 <= every <= len(names):
        raise SplitError(
            f"holdout=random{every} cannot split {len(names)} photos.\n"
            "  Pass a number from 2 to that many, such as random8 for one of every 8."
        )
    ordered, chosen = sorted(names), set()
    for start in range(0, len(ordered), every):
        run = ordered[start : start + every]
        text = "\0".join((str(SPLIT_SEED), *run)).encode(errors="backslashreplace")
        place = int.from_bytes(hashlib.sha256(text).digest(), "big") % every
        chosen.update(run[place : place + 1])
    return {name: "held out" if name in chosen else "training" for name in ordered}


def _by_name(names: Sequence[str], chosen: tuple[str, ...]) -> dict[str, Part]:
    """Exactly these photos."""
    wanted = set(chosen)
    if unknown := sorted(wanted - set(names)):
        raise SplitError(
            f"{len(unknown)} of {len(chosen)} held-out names are not in the dataset: "
            f"{listed(unknown)}.\n  Names look like {names[0]!r}."
        )
    return {name: "held out" if name in wanted else "training" for name in names}


def _by_list(names: Sequence[str], path: Path) -> dict[str, Part]:
    """Photos named in a text file, one per line; blank lines and # comments are skipped."""
    if not path.is_file():
        raise SplitError(
            f"no list of held-out photos at {path}.\n"
            "  holdout takes a number, random8, the path of a text file with one photo name per "
            "line, 'format', 'auto' or None."
        )
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise SplitError(
            f"{path} is not text.\n  It must contain one photo name per line."
        ) from None
    wanted = [line for line in lines if line and not line.startswith("#")]
    known = set(names)
    if unknown := [name for name in wanted if name not in known]:
        near = get_close_matches(unknown[0], names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Names look like {names[0]!r}."
        raise SplitError(
            f"{len(unknown)} of {len(wanted)} held-out names are not in the dataset: "
            f"{listed(unknown)}.\n"
            f"  In {path}, line {lines.index(unknown[0]) + 1}.\n"
            f"  Correct the names.{hint}"
        )
    chosen = set(wanted)
    return {name: "held out" if name in chosen else "training" for name in names}


def _own(dataset: Dataset) -> tuple[dict[str, Part], str]:
    """The split that the format defines, or COLMAP's `test.txt` beside the model."""
    if dataset.split is not None:
        return dataset.split, OWN_SPLIT
    listing = dataset.source / "test.txt"
    if dataset.format == "colmap" and listing.is_file():
        names = [shot.name for shot in dataset.shots]
        return _by_list(names, listing), "held out as listed in test.txt"
    raise SplitError(
        f"the dataset {dataset.source} does not define a split of its own.\n"
        "  Pass holdout=8, a list file, or None."
    )
