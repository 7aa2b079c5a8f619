# SPDX-License-Identifier: Apache-2.0
"""Cameras without photos: the `cameras.json` that Inria's and other trainers write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from splatcert.artefacts import ordinary, write_text_whole
from splatcert.errors import InputError
from splatcert.scene.cameras import Camera
from splatcert.scene.json_file import MAX_JSON

FIELDS = ("img_name", "width", "height", "position", "rotation", "fx", "fy")


class CameraListError(InputError):
    """A list of cameras that cannot be used."""


def read_camera_list(path: Path) -> dict[str, Camera]:
    """Cameras by name, in the order of the file.

    `rotation` is camera-to-world in OpenCV axes and `position` the centre. Inria's files
    have no principal point: it is in the middle unless `cx` and `cy` are there.
    """
    try:
        if ordinary(path).stat().st_size > MAX_JSON:
            raise CameraListError(f"{path} has more than {MAX_JSON} bytes: is it the right file?")
        entries = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CameraListError(f"cannot read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise CameraListError(f"{path} is not JSON: {error}.") from None
    if not isinstance(entries, list) or not entries:
        raise CameraListError(
            f"{path} is not a list of cameras.\n"
            f"  Each entry needs {', '.join(FIELDS)}, as in Inria's cameras.json."
        )
    cameras = {}
    for index, entry in enumerate(entries):
        name, camera = _camera(entry, f"{path}, camera {index}")
        if name in cameras:
            raise CameraListError(f"{path}, camera {index}: a second {name!r}.\n  Rename one.")
        cameras[name] = camera
    return cameras


def _camera(entry: Any, where: str) -> tuple[str, Camera]:
    missing = [key for key in FIELDS if not isinstance(entry, dict) or key not in entry]
    if missing:
        raise CameraListError(f"{where}: no {', '.join(missing)}.")
    try:
        rotation = np.array(entry["rotation"], dtype=np.float64).reshape(3, 3)
        centre = np.array(entry["position"], dtype=np.float64).reshape(3)
        fx, fy = float(entry["fx"]), float(entry["fy"])
        width, height = int(entry["width"]), int(entry["height"])
        cx, cy = float(entry.get("cx", width / 2)), float(entry.get("cy", height / 2))
    except (TypeError, ValueError, OverflowError) as error:
        raise CameraListError(f"{where}: {error}.") from None
    pose = np.eye(4)
    with np.errstate(over="ignore", invalid="ignore"):  # the camera refuses what is not finite
        pose[:3, :3], pose[:3, 3] = rotation.T, -rotation.T @ centre
    try:
        camera = Camera(
            world_to_camera=pose,
            fx=fx,
            fy=fy,
            cx=cx,
            cy=cy,
            width=width,
            height=height,
        )
    except InputError as error:
        raise CameraListError(f"{where}: {error}") from None
    return str(entry["img_name"]), camera


def write_camera_list(path: Path, cameras: Mapping[str, Camera]) -> None:
    """The same format, with the principal point added."""
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
        }
        for index, (name, camera) in enumerate(cameras.items())
    ]
    write_text_whole(path, json.dumps(entries, indent=1) + "\n")
