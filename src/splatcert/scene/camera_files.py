# SPDX-License-Identifier: Apache-2.0
"""Cameras from any file that holds some, without their photos; and back to files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from splatcert.artefacts import write_text_whole
from splatcert.scene.camera_list import CameraListError, read_camera_list, write_camera_list
from splatcert.scene.cameras import Camera
from splatcert.scene.colmap import find_model, lens_of, read_colmap
from splatcert.scene.colmap_text import text_model
from splatcert.scene.dataset import Shot
from splatcert.scene.json_file import load_json
from splatcert.scene.transforms import read_frames

KNOWN = (
    "  Known are cameras.json (Inria's, or ours), transforms.json, and a COLMAP reconstruction\n"
    "  (its folder, or cameras and images as .bin or .txt inside)."
)


def read_cameras(path: Path) -> dict[str, Camera]:
    """Cameras by name, in the order of the file. A distorted lens becomes its pinhole."""
    if path.is_dir():
        folder = find_model(path)
        if folder is None:
            raise CameraListError(f"{path} is a folder without cameras.\n{KNOWN}")
        return _colmap(folder)
    if not path.exists():
        raise CameraListError(f"{path}: no such file or folder.\n{KNOWN}")
    if path.suffix in (".bin", ".txt"):
        return _colmap(path.parent)
    if path.suffix != ".json":
        raise CameraListError(f"{path} is no file of cameras.\n{KNOWN}")
    if path.name.startswith("transforms"):
        return _pinholes(read_frames(load_json(path), lambda folder, file: None))
    return read_camera_list(path)


def write_cameras(folder: Path, cameras: Mapping[str, Camera]) -> list[Path]:
    """`cameras.json` and a COLMAP text model in `sparse/0`; returns what was written."""
    written = [folder / "cameras.json"]
    write_camera_list(written[0], cameras)
    (folder / "sparse/0").mkdir(parents=True, exist_ok=True)
    for name, text in text_model(cameras).items():
        written.append(folder / "sparse/0" / name)
        write_text_whole(written[-1], text)
    return written


def _colmap(folder: Path) -> dict[str, Camera]:
    model = read_colmap(folder)
    lenses = {key: lens_of(camera, folder, folder) for key, camera in model.cameras.items()}
    return _pinholes(
        Shot(image.name, lenses[image.camera_id], image.world_to_camera, "", image.name)
        for image in model.images
    )


def _pinholes(shots: Iterable[Shot]) -> dict[str, Camera]:
    return {shot.name: shot.camera(shot.lens) for shot in shots}
