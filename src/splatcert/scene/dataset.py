# SPDX-License-Identifier: Apache-2.0
"""What every dataset format is turned into before photos are looked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.scene.cameras import Camera
from splatcert.scene.lens import Lens, pinhole_of
from splatcert.scene.points import SparsePoints

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
    """Folder of the photo below the dataset; `images_4` would take its place."""
    file: str
    """The photo's path below that folder."""
    mask: str | None = None
    """Path of its mask below the dataset, where the format names one."""

    def camera(self, lens: Lens) -> Camera:
        """This pose seen through the pinhole of a lens: its own, or that at another size."""
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
