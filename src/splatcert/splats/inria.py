# SPDX-License-Identifier: Apache-2.0
"""The output folder of Inria's trainer and its many descendants (FastGS, 3DGS-U, ...).

The Gaussians stay in the frame of the capture. `notes` lists what the folder
does not store: antialiasing, random backgrounds, FastGS's footprint factor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from splatcert.camera import Camera
from splatcert.errors import InputError
from splatcert.scene.readers.camera_files import read_camera_list
from splatcert.splats.untrusted import ForeignFileError, load_namespace

LARGEST_WIDTH = 1600
HOLDOUT = 8


@dataclass(frozen=True)
class InriaRun:
    """One trained model of an output folder and the settings that shape its pictures."""

    folder: Path
    iteration: int
    settings: dict[str, Any]
    """Literal entries of cfg_args; empty if the file is missing."""

    @property
    def ply(self) -> Path:
        """The Gaussians."""
        return self.folder / "point_cloud" / f"iteration_{self.iteration}" / "point_cloud.ply"

    @property
    def sh_degree(self) -> int | None:
        """Degree asked for in training."""
        return self._setting("sh_degree", int)

    @property
    def background(self) -> tuple[float, float, float] | None:
        """Colour behind the Gaussians in training and evaluation."""
        white = self._setting("white_background", bool)
        return None if white is None else ((1.0, 1.0, 1.0) if white else (0.0, 0.0, 0.0))

    @property
    def resolution(self) -> int | float | None:
        """The `-r` option: -1, a divisor 1, 2, 4, 8, or a width; see `trained_size`."""
        return self._setting("resolution", (int, float))

    @property
    def has_held_out(self) -> bool | None:
        """Trained with `--eval`: every eighth image by name was held out."""
        return self._setting("eval", bool)

    @property
    def source_path(self) -> str | None:
        """Where the capture was, on the machine that trained."""
        return self._setting("source_path", str)

    @property
    def images(self) -> str | None:
        """Image folder within the capture, such as images_4."""
        return self._setting("images", str)

    @property
    def has_exposure(self) -> bool:
        """Training views were corrected by an affine colour map that new views do not have."""
        return self._setting("train_test_exp", bool) is True

    def _setting(self, name: str, kind: type | tuple[type, ...]) -> Any:
        value = self.settings.get(name)
        return value if isinstance(value, kind) else None

    @cached_property
    def cameras(self) -> dict[str, Camera]:
        """Cameras of cameras.json by image name, as Inria's renderer sees them.

        Its projection is symmetric, so the principal point is the image centre
        whatever COLMAP found. Sizes are those of the capture; see `as_trained`.
        """
        path = self.folder / "cameras.json"
        if not path.is_file():
            return {}
        return {name: _centred(camera) for name, camera in read_camera_list(path).items()}

    def as_trained(self, camera: Camera) -> Camera:
        """A camera of the capture as this model saw it: centred, at the trained size."""
        return as_inria(camera, -1 if self.resolution is None else self.resolution)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user must know before trusting renders of this model."""
        notes = [
            "Inria renders with the principal point in the image centre; cx and cy were ignored",
            "whether training was antialiased is not stored; default assumed",
        ]
        if not self.settings:
            notes.append("no cfg_args: background, resolution and held-out views are unknown")
        if self.has_held_out is False:
            notes.append("trained without --eval: every image was a training image")
        if self.has_exposure:
            notes.append("training views had their own exposure; renders are without it")
        return tuple(notes)


def as_inria(camera: Camera, resolution: int | float = -1) -> Camera:
    """The camera with its principal point centred, at the size Inria trains on."""
    width, height = trained_size(camera.width, camera.height, resolution)
    return _centred(camera.resized(width, height))


def _centred(camera: Camera) -> Camera:
    return replace(camera, cx=camera.width / 2, cy=camera.height / 2)


def trained_size(width: int, height: int, resolution: int | float) -> tuple[int, int]:
    """Pixels that Inria trains on, for an image file of this size and the option `-r`."""
    if resolution in (1, 2, 4, 8):
        return round(width / resolution), round(height / resolution)
    if resolution == -1:
        factor = max(width / LARGEST_WIDTH, 1.0)
    elif resolution > 0:
        factor = width / resolution
    else:
        raise InputError(f"resolution must be -1 or positive, got {resolution}")
    return int(width / factor), int(height / factor)


def open_inria(folder: Path, iteration: int | None = None) -> InriaRun:
    """The newest model of an output folder, or the one of a chosen iteration."""
    found = inria_iterations(folder)
    if not found:
        raise ForeignFileError(f"{folder}: no point_cloud/iteration_*/point_cloud.ply inside")
    if iteration is not None and iteration not in found:
        listed = ", ".join(str(n) for n in found)
        raise ForeignFileError(f"{folder}: no iteration {iteration}; it has {listed}")
    config = folder / "cfg_args"
    settings = load_namespace(config) if config.is_file() else {}
    return InriaRun(folder, found[-1] if iteration is None else iteration, settings)


def inria_iterations(folder: Path) -> list[int]:
    """Iterations with a stored model, ascending."""
    return sorted(
        int(match[1])
        for path in folder.glob("point_cloud/iteration_*/point_cloud.ply")
        if (match := re.fullmatch(r"iteration_(\d{1,12})", path.parent.name))
    )
