# SPDX-License-Identifier: Apache-2.0
"""COLMAP's text files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from splatcert.camera import Camera
from splatcert.scene.dataset import SparsePoints
from splatcert.scene.readers.colmap import MODELS, ColmapCamera, ColmapError, ColmapImage
from splatcert.storage.lfs import refuse_pointer
from splatcert.storage.whole import require_regular_file

PARAMETERS = dict(MODELS.values())
STATED = re.compile(r"#\s*Number of (?:cameras|images|points):\s*(\d{1,19})")


class _Lines:
    """A text file's lines, its stated number of records, and errors that name the line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        data = require_regular_file(path).read_bytes()
        refuse_pointer(path, data, ColmapError)
        try:
            self.lines = data.decode("utf-8").splitlines()
        except UnicodeDecodeError:
            raise ColmapError(
                f"{path} is not text.\n  If it is a binary model, name it {path.stem}.bin."
            ) from None
        self.number = 0
        stated = [match for match in map(STATED.match, self.lines) if match]
        self.stated = int(stated[0].group(1)) if stated else None

    def records(self) -> Iterator[str]:
        """Lines that contain a record: neither comments nor blank."""
        while (line := self.next()) is not None:
            if line.strip() and not line.startswith("#"):
                yield line

    def next(self) -> str | None:
        """The next line, of any kind."""
        if self.number >= len(self.lines):
            return None
        self.number += 1
        return self.lines[self.number - 1]

    def wrong(self, why: str) -> ColmapError:
        return ColmapError(
            f"{why}.\n  In {self.path}, line {self.number}.\n"
            "  The file is damaged or mislabelled: copy or export it again."
        )

    def check_count(self, found: int, what: str) -> None:
        """Refuse a file whose own heading promises a different number of records."""
        if self.stated is not None and self.stated != found:
            raise ColmapError(
                f"{self.path} promises {self.stated} {what} and contains {found}.\n"
                "  It is truncated: copy or export it again.\n"
                "  If it was edited on purpose, delete the comment line with the number."
            )


def read_cameras(path: Path) -> dict[int, ColmapCamera]:
    """cameras.txt: one line per camera."""
    source = _Lines(path)
    cameras: dict[int, ColmapCamera] = {}
    for line in source.records():
        words = line.split()
        try:
            key, model = int(words[0]), words[1]
            width, height = int(words[2]), int(words[3])
            params = tuple(float(word) for word in words[4:])
        except (ValueError, IndexError):
            raise source.wrong("a camera is id, model, width, height, parameters") from None
        if model not in PARAMETERS:
            raise source.wrong(f"camera {key} has the unknown model {model!r}")
        if len(params) != PARAMETERS[model]:
            raise source.wrong(
                f"camera {key} has {len(params)} parameters, {model} takes {PARAMETERS[model]}"
            )
        if width < 1 or height < 1:
            raise source.wrong(f"camera {key} claims a picture of {width} x {height} pixels")
        if key in cameras:
            raise source.wrong(f"camera id {key} appears twice")
        cameras[key] = ColmapCamera(key, model, width, height, params)
    source.check_count(len(cameras), "cameras")
    return cameras


def read_images(path: Path, *, observations: bool) -> list[ColmapImage]:
    """images.txt: two lines per photo, the second of which may be blank."""
    source = _Lines(path)
    images: list[ColmapImage] = []
    for line in source.records():
        words = line.split(maxsplit=9)
        try:
            key, camera, name = int(words[0]), int(words[8]), words[9].strip()
            pose = np.array(words[1:8], dtype=np.float64)
        except (ValueError, IndexError):
            raise source.wrong(
                "a photo is id, quaternion (4), translation (3), camera, name"
            ) from None
        seen = _observations(source, name, observations)
        images.append(ColmapImage(key, name, camera, pose[:4], pose[4:], **seen))
    source.check_count(len(images), "photos")
    return images


def _observations(source: _Lines, name: str, keep: bool) -> dict:
    """The line of 2D points that follows a pose, checked even when it is not kept.

    Files that leave this line out would otherwise lose every second photo.
    """
    words = (source.next() or "").split()
    try:
        if len(words) % 3:
            raise ValueError
        ids = np.array(words[2::3], dtype=np.int64)
        xy = np.array([words[0::3], words[1::3]], dtype=np.float64).T
    except (ValueError, OverflowError):
        raise source.wrong(
            f"the line after {name!r} must hold its 2D points as x, y, point id, or be blank"
        ) from None
    return {"points2d": xy, "point_ids": ids} if keep else {}


def read_points(path: Path) -> SparsePoints:
    """points3D.txt: one line per point, its track last."""
    source = _Lines(path)
    numbers: list[list[str]] = []
    entries: list[str] = []
    for line in source.records():
        words = line.split()
        if len(words) < 8 or len(words) % 2:
            raise source.wrong(
                f"a point is id, x, y, z, r, g, b, error and pairs of image and index, "
                f"got {len(words)} values"
            )
        numbers.append(words[:8])
        entries += words[8:]
    source.check_count(len(numbers), "points")
    try:
        table = np.array(numbers, dtype=np.float64).reshape(-1, 8)
        ids = np.array([row[0] for row in numbers], dtype=np.uint64)
        np.array(entries, dtype=np.uint32)  # not kept, but a damaged one is a damaged file
        rgb = np.array([row[4:7] for row in numbers], dtype=np.uint8).reshape(-1, 3)
    except (ValueError, OverflowError) as error:
        raise ColmapError(
            f"{path} contains something that is not a number ({error}).\n"
            "  The file is damaged or mislabelled: copy or export it again."
        ) from None
    return SparsePoints(
        xyz=table[:, 1:4], rgb=rgb, error=table[:, 7], ids=ids, has_tracks=bool(entries)
    )


def text_model(cameras: Mapping[str, Camera]) -> dict[str, str]:
    """The three files of a model without points, by name; each photo has a camera of its own."""
    lenses, photos = [], []
    for key, (name, camera) in enumerate(cameras.items(), 1):
        lens = (camera.fx, camera.fy, camera.cx, camera.cy)
        lenses.append(f"{key} PINHOLE {camera.width} {camera.height} {_numbers(lens)}")
        x, y, z, w = Rotation.from_matrix(camera.world_to_camera[:3, :3]).as_quat()
        pose = (w, x, y, z, *camera.world_to_camera[:3, 3])
        photos.append(f"{key} {_numbers(pose)} {key} {name}\n")  # no 2D points: a blank line
    return {
        "cameras.txt": "\n".join(["# camera, model, width, height, fx fy cx cy", *lenses, ""]),
        "images.txt": "\n".join(
            ["# image, world to camera as qw qx qy qz tx ty tz, camera, name; 2D points", *photos]
        )
        + "\n",
        "points3D.txt": "# no points\n",
    }


def _numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(value)) for value in values)
