# SPDX-License-Identifier: Apache-2.0
"""COLMAP's binary files; every count in them is checked before it is used.

Every count is compared with the remaining bytes before anything is
allocated, and every byte of a file must be accounted for.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct

import numpy as np

from splatcert.scene.dataset import SparsePoints
from splatcert.scene.readers.colmap import MODELS, ColmapCamera, ColmapError, ColmapImage
from splatcert.storage.lfs import refuse_pointer
from splatcert.storage.whole import require_regular_file

COUNT = Struct("<Q")
CAMERA = Struct("<IiQQ")
IMAGE = Struct("<I7dI")
POINT = np.dtype(
    [
        ("id", "<u8"),
        ("xyz", "<f8", 3),
        ("rgb", "u1", 3),
        ("error", "<f8"),
        ("track", "<u8"),
    ]
)
OBSERVATION = np.dtype([("xy", "<f8", 2), ("point", "<i8")])
TRACK_ENTRY = 8
MAX_NAME = 4096
MAX_SIDE = 1 << 20


class _Bytes:
    """A file's bytes and a cursor that never runs past their end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = require_regular_file(path).read_bytes()
        refuse_pointer(path, self.data, ColmapError)
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, layout: Struct, what: str) -> tuple:
        self.need(layout.size, what)
        values = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return values

    def need(self, size: int, what: str) -> None:
        if size > self.left:
            raise ColmapError(
                f"{self.path} ends inside {what}: {size} bytes are needed at byte {self.at}, "
                f"{self.left} of {len(self.data)} are left.\n"
                "  The file is truncated: copy or export it again."
            )

    def count(self, least: int, what: str) -> int:
        """A number of records, refused if so many cannot fit into the remaining bytes."""
        (number,) = self.take(COUNT, f"the number of {what}")
        if number * least > self.left:
            text = " It looks like a text model: name it .txt." if self.data[:1] == b"#" else ""
            raise ColmapError(
                f"{self.path} announces {number} {what}, at least {number * least} bytes, "
                f"but only {self.left} of {len(self.data)} are left.\n"
                f"  The file is truncated or mislabelled: copy or export it again.{text}"
            )
        return number

    def finish(self, what: str) -> None:
        if self.left:
            raise ColmapError(
                f"{self.path} has {self.left} bytes left after the last of its {what}.\n"
                "  It is not a COLMAP file of this kind, or it is damaged: copy or export it again."
            )


def read_cameras(path: Path) -> dict[int, ColmapCamera]:
    """cameras.bin."""
    source = _Bytes(path)
    cameras: dict[int, ColmapCamera] = {}
    for _ in range(source.count(CAMERA.size, "cameras")):
        key, model, width, height = source.take(CAMERA, f"camera {len(cameras)}")
        if model not in MODELS:
            raise ColmapError(
                f"camera {key} has model id {model}; COLMAP's ids run from 0 to {max(MODELS)}.\n"
                f"  In {path}, camera {len(cameras)} of the file.\n"
                "  The file is mislabelled or newer than this reader: export the model as text."
            )
        if not (0 < width < MAX_SIDE and 0 < height < MAX_SIDE):
            raise ColmapError(
                f"camera {key} claims a picture of {width} x {height} pixels, in {path}.\n"
                "  The file is mislabelled or damaged: copy or export it again."
            )
        if key in cameras:
            raise ColmapError(f"camera id {key} appears twice in {path}.\n  Export it again.")
        name, number = MODELS[model]
        params = source.take(Struct(f"<{number}d"), f"the parameters of camera {key}")
        cameras[key] = ColmapCamera(key, name, width, height, params)
    source.finish("cameras")
    return cameras


def read_images(path: Path, *, observations: bool) -> list[ColmapImage]:
    """images.bin; 2D points are skipped by default."""
    source = _Bytes(path)
    images: list[ColmapImage] = []
    # A record is a pose, a name of at least its closing zero, and a count.
    for index in range(source.count(IMAGE.size + 1 + COUNT.size, "photos")):
        key, *pose, camera = source.take(IMAGE, f"photo {index}")
        end = source.data.find(b"\0", source.at, source.at + MAX_NAME)
        if end < 0:
            raise ColmapError(
                f"the name of photo {index} (image {key}) has no end within {MAX_NAME} bytes.\n"
                f"  In {path}, at byte {source.at}.\n"
                "  The file is truncated or mislabelled: copy or export it again."
            )
        name = _name(source.data[source.at : end], index, path)
        source.at = end + 1
        number = source.count(OBSERVATION.itemsize, f"2D points of {name!r}")
        seen = {}
        if observations:
            rows = np.frombuffer(source.data, OBSERVATION, number, source.at)
            seen = {"points2d": rows["xy"].copy(), "point_ids": rows["point"].copy()}
        source.at += number * OBSERVATION.itemsize
        rotation, shift = np.array(pose[:4]), np.array(pose[4:])
        images.append(ColmapImage(key, name, camera, rotation, shift, **seen))
    source.finish("photos")
    return images


def _name(raw: bytes, index: int, path: Path) -> str:
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        name = ""
    if not name:
        raise ColmapError(
            f"the name of photo {index} is {raw[:40]!r}, in {path}.\n"
            "  The file is mislabelled or damaged: copy or export it again."
        )
    return name


def read_points(path: Path) -> SparsePoints:
    """points3D.bin.

    Records differ in length, so one pass finds where each begins and copies its fixed part;
    NumPy then reads them as a table. Tracks are skipped.
    """
    source = _Bytes(path)
    number = source.count(POINT.itemsize, "points")
    data, at = source.data, source.at
    track_at = POINT.itemsize - COUNT.size
    heads = []
    for index in range(number):
        body = at + POINT.itemsize
        source.at = at
        source.need(POINT.itemsize, f"point {index} of {number}")
        (length,) = COUNT.unpack_from(data, at + track_at)
        end = body + length * TRACK_ENTRY
        if end > len(data):
            raise ColmapError(
                f"point {index} of {number} announces {length} observations, "
                f"but {len(data) - body} bytes are left.\n"
                f"  In {path}, at byte {at}.\n"
                "  The file is truncated or mislabelled: copy or export it again."
            )
        heads.append(data[at:body])
        at = end
    source.at = at
    source.finish("points")
    rows = np.frombuffer(b"".join(heads), POINT)
    return SparsePoints(
        xyz=rows["xyz"].copy(),
        rgb=rows["rgb"].copy(),
        error=rows["error"].copy(),
        ids=rows["id"].copy(),
        has_tracks=bool(rows["track"].any()),
    )
