# SPDX-License-Identifier: Apache-2.0
"""Cameras from any file that holds some, without their photos; and back to files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from splatcert.camera import Camera
from splatcert.errors import InputError
from splatcert.scene.dataset import Shot
from splatcert.scene.lens import INTRINSICS
from splatcert.scene.readers.colmap import read_colmap, shots_of
from splatcert.scene.readers.colmap_models import find_model
from splatcert.scene.readers.colmap_text import text_model
from splatcert.scene.readers.transforms import read_frames
from splatcert.storage.schema import load_json, read_json
from splatcert.storage.whole import output_folder, write_text_whole

KNOWN = (
    "  Supported: cameras.json (Inria's or splatcert's), transforms.json, and a COLMAP\n"
    "  reconstruction (its folder, or its cameras and images as .bin or .txt)."
)


def read_cameras(path: Path) -> dict[str, Camera]:
    """Cameras by name, in the order of the file. A distorted lens becomes its pinhole."""
    if path.is_dir():
        folder = find_model(path)
        if folder is None:
            raise CameraListError(f"{path} contains no cameras.\n{KNOWN}")
        return _pinholes(shots_of(read_colmap(folder), folder))
    if not path.exists():
        raise CameraListError(f"{path}: no such file or folder.\n{KNOWN}")
    if path.suffix in (".bin", ".txt"):
        return _pinholes(shots_of(read_colmap(path.parent), path.parent))
    if path.suffix != ".json":
        raise CameraListError(f"{path} is not a file of cameras.\n{KNOWN}")
    if path.name.startswith("transforms"):
        return _pinholes(read_frames(load_json(path, "transforms file"), lambda folder, file: None))
    return read_camera_list(path)


def write_cameras(folder: Path, cameras: Mapping[str, Camera]) -> list[Path]:
    """`cameras.json` and a COLMAP text model in `sparse/0`; returns what was written."""
    written = [folder / "cameras.json"]
    write_camera_list(written[0], cameras)
    output_folder(folder / "sparse/0", inside=folder)
    for name, text in text_model(cameras).items():
        written.append(folder / "sparse/0" / name)
        write_text_whole(written[-1], text)
    return written


def _pinholes(shots: Iterable[Shot]) -> dict[str, Camera]:
    return {shot.name: shot.camera(shot.lens) for shot in shots}


FASTEST = 240
"""Most frames per second of a film."""
FIELDS = ("img_name", "width", "height", "position", "rotation", "fx", "fy")


class CameraListError(InputError):
    """A list of cameras that cannot be used."""


def read_camera_list(path: Path) -> dict[str, Camera]:
    """Cameras by name, in the order of the file.

    `rotation` is camera-to-world in OpenCV axes and `position` the centre. Inria's files
    have no principal point; without `cx` and `cy` it is the image centre.
    """
    entries = read_json(path, "list of cameras", allow_nan=True, raises=CameraListError)
    if not isinstance(entries, list) or not entries:
        raise CameraListError(
            f"{path} is not a list of cameras.\n"
            f"  Each entry must have {', '.join(FIELDS)}, as in Inria's cameras.json."
        )
    cameras = {}
    for index, entry in enumerate(entries):
        name, camera = _camera(entry, f"{path}, camera {index}")
        if name in cameras:
            raise CameraListError(
                f"{path}, camera {index}: the name {name!r} appears twice.\n  Rename one of them."
            )
        cameras[name] = camera
    return cameras


def _camera(entry: Any, where: str) -> tuple[str, Camera]:
    missing = [key for key in FIELDS if not isinstance(entry, dict) or key not in entry]
    if missing:
        raise CameraListError(f"{where} has no {', '.join(missing)}.")
    try:
        rotation = np.array(entry["rotation"], dtype=np.float64).reshape(3, 3)
        centre = np.array(entry["position"], dtype=np.float64).reshape(3)
        size = {side: int(entry[side]) for side in ("width", "height")}
        middle = {"cx": size["width"] / 2, "cy": size["height"] / 2}
        lens = {name: float({**middle, **entry}[name]) for name in INTRINSICS}
    except (TypeError, ValueError, OverflowError) as error:
        raise CameraListError(f"{where}: {error}.") from None
    pose = np.eye(4)
    with np.errstate(over="ignore", invalid="ignore"):  # Camera refuses what is not finite
        pose[:3, :3], pose[:3, 3] = rotation.T, -rotation.T @ centre
    try:
        camera = Camera(world_to_camera=pose, **lens, **size)
    except InputError as error:
        raise CameraListError(f"{where}: {error}") from None
    return str(entry["img_name"]), camera


def path_rate(path: Path) -> int | None:
    """Frames per second of a list whose cameras have times: a path; None for separate views."""
    if path.suffix != ".json":
        return None
    entries = read_json(path, "list of cameras", allow_nan=True, raises=CameraListError)
    if not isinstance(entries, list) or not all("seconds" in entry for entry in entries):
        return None
    try:
        first, second = (float(entry["seconds"]) for entry in entries[:2])
    except (TypeError, ValueError):
        first = second = 0.0
    if not first < second:
        raise CameraListError(
            f"{path}: the cameras of a path must have increasing times, in seconds.\n"
            "  Correct them, or remove every entry named seconds to render separate views."
        )
    return round(min(max(1 / (second - first), 1), FASTEST))


def write_camera_list(path: Path, cameras: Mapping[str, Camera], *, fps: int | None = None) -> None:
    """The same format, with the principal point added, and for a path the time of each frame."""
    write_text_whole(path, camera_list(cameras, fps=fps))


def camera_list(cameras: Mapping[str, Camera], *, fps: int | None = None) -> str:
    """The text of such a file."""
    entries = [
        {
            "id": index,
            "img_name": name,
            "width": camera.width,
            "height": camera.height,
            "position": camera.centre.tolist(),
            "rotation": camera.world_to_camera[:3, :3].T.tolist(),
            "fx": float(camera.fx),
            "fy": float(camera.fy),
            "cx": float(camera.cx),
            "cy": float(camera.cy),
            **({} if fps is None else {"seconds": index / fps}),
        }
        for index, (name, camera) in enumerate(cameras.items())
    ]
    return json.dumps(entries, indent=1) + "\n"
