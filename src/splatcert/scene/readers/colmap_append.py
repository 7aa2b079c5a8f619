# SPDX-License-Identifier: Apache-2.0
"""COLMAP models with photos added: every byte that was there stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from struct import pack

import numpy as np
from scipy.spatial.transform import Rotation

from splatcert.scene.dataset import SparsePoints
from splatcert.scene.lens import Lens
from splatcert.scene.readers.colmap import MODELS, ColmapCamera, ColmapImage
from splatcert.scene.readers.colmap_binary import CAMERA, COUNT, IMAGE, POINT

IDS = {name: key for key, (name, _) in MODELS.items()}
EMPTY = COUNT.pack(0)


def camera_of(lens: Lens, key: int) -> ColmapCamera:
    """The COLMAP camera of a lens."""
    params = [lens.fx, lens.fy, lens.cx, lens.cy, *lens.distortion]
    model = {"pinhole": "PINHOLE", "fisheye": "OPENCV_FISHEYE"}.get(lens.kind, "OPENCV")
    if lens.kind == "brown" and len(lens.distortion) > 4:
        model, params = "FULL_OPENCV", [*params, *[0.0] * (12 - len(params))]
    return ColmapCamera(key, model, lens.width, lens.height, tuple(params))


def image_of(name: str, key: int, camera: int, world_to_camera: np.ndarray) -> ColmapImage:
    """A photo without 2D points at this pose, [4, 4]."""
    turn = Rotation.from_matrix(world_to_camera[:3, :3]).as_quat()
    return ColmapImage(key, name, camera, np.roll(turn, 1), world_to_camera[:3, 3])


def append_model(
    source: Path, target: Path, cameras: Sequence[ColmapCamera], images: Sequence[ColmapImage]
) -> None:
    """Copy a model, binary or text, with cameras and photos added at its end.

    Rigs and frames of newer COLMAP versions are left out: they would have to name the added
    photos, and COLMAP makes them anew where they are missing.
    """
    binary = (source / "images.bin").is_file()
    suffix, add = ("bin", _add_records) if binary else ("txt", _add_lines)
    write: dict[str, tuple[Sequence, Callable]] = {
        "cameras": (cameras, _camera_record if binary else _camera_line),
        "images": (images, _image_record if binary else _image_lines),
    }
    for stem, (added, layout) in write.items():
        before = (source / f"{stem}.{suffix}").read_bytes()
        after = add(before, [layout(one) for one in added])
        (target / f"{stem}.{suffix}").write_bytes(after)
    points = source / f"points3D.{suffix}"
    if points.is_file():
        (target / points.name).write_bytes(points.read_bytes())


def write_model(
    target: Path,
    cameras: Sequence[ColmapCamera],
    images: Sequence[ColmapImage],
    points: SparsePoints | None,
) -> None:
    """A new binary model; its points have no tracks."""
    (target / "cameras.bin").write_bytes(_add_records(EMPTY, [_camera_record(c) for c in cameras]))
    (target / "images.bin").write_bytes(_add_records(EMPTY, [_image_record(i) for i in images]))
    table = np.zeros(0 if points is None else len(points), POINT)
    if points is not None:
        table["id"] = np.arange(1, len(table) + 1)
        table["xyz"], table["rgb"] = points.xyz, points.rgb
        table["error"] = -1.0 if points.error is None else points.error
    (target / "points3D.bin").write_bytes(COUNT.pack(len(table)) + table.tobytes())


def _add_records(before: bytes, records: Sequence[bytes]) -> bytes:
    (count,) = COUNT.unpack_from(before)
    return COUNT.pack(count + len(records)) + before[COUNT.size :] + b"".join(records)


def _camera_record(camera: ColmapCamera) -> bytes:
    head = CAMERA.pack(camera.id, IDS[camera.model], camera.width, camera.height)
    return head + pack(f"<{len(camera.params)}d", *camera.params)


def _image_record(image: ColmapImage) -> bytes:
    pose = (*image.quaternion, *image.translation)
    name = image.name.encode() + b"\0"
    return IMAGE.pack(image.id, *pose, image.camera_id) + name + EMPTY


def _add_lines(before: bytes, lines: Sequence[str]) -> bytes:
    """The text with lines added; comments go, because one of them states the number of records.

    Readers skip blank lines between photos. One before the first added photo makes sure that
    the photo before it has its line of 2D points, which editors cut off at the end of a file.
    """
    kept = [line for line in before.decode("utf-8").splitlines() if not line.startswith("#")]
    return "\n".join([*kept, "", *lines, ""]).encode()


def _camera_line(camera: ColmapCamera) -> str:
    params = " ".join(map(repr, map(float, camera.params)))
    return f"{camera.id} {camera.model} {camera.width} {camera.height} {params}"


def _image_lines(image: ColmapImage) -> str:
    pose = " ".join(repr(float(x)) for x in (*image.quaternion, *image.translation))
    return f"{image.id} {pose} {image.camera_id} {image.name}\n"
