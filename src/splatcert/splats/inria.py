# SPDX-License-Identifier: Apache-2.0
"""The output folder of Inria's trainer and its many descendants (FastGS, 3DGS-U, ...).

The Gaussians stay in the frame of the capture. `notes` lists what the folder
does not store: antialiasing, random backgrounds, FastGS's footprint factor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatcert.splats.untrusted import ForeignFileError, load_namespace

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
    def background(self) -> tuple[float, float, float] | None:
        """Colour behind the Gaussians in training and evaluation."""
        white = self._setting("white_background", bool)
        return None if white is None else ((1.0, 1.0, 1.0) if white else (0.0, 0.0, 0.0))

    @property
    def has_held_out(self) -> bool | None:
        """Trained with `--eval`: every eighth image by name was held out."""
        return self._setting("eval", bool)

    @property
    def has_exposure(self) -> bool:
        """Training views were corrected by an affine colour map that new views do not have."""
        return self._setting("train_test_exp", bool) is True

    def _setting(self, name: str, kind: type | tuple[type, ...]) -> Any:
        value = self.settings.get(name)
        return value if isinstance(value, kind) else None

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
