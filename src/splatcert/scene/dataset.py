# SPDX-License-Identifier: Apache-2.0
"""Every dataset format as one type: shots and sparse points."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import FARTHEST, Camera
from splatcert.errors import InputError
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
    added: tuple[str, ...] = ()
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
