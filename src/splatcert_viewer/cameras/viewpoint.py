# SPDX-License-Identifier: Apache-2.0
"""The viewpoint of a browser, and the camera that renders it.

Browser and renderer share OpenCV axes; the browser's quaternion turns camera coordinates into
world coordinates, its field of view is the vertical one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import atan, pi, sqrt, tan

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from splatcert.camera import Camera, CameraError

Array = NDArray[np.float64]
ROUNDED = 1e-4
"""Relative distance, and 1 - cos of half the angle, up to which viewpoints are the same."""
SLIMMEST = 1 / 8
"""Limit on the aspect ratio; narrower or flatter windows are drawn at this limit."""


@dataclass(frozen=True, eq=False)
class Viewpoint:
    """A pinhole camera without a pixel grid, its axis through the centre of the picture."""

    wxyz: Array
    """Rotation from camera to world, [4]."""
    position: Array
    """[3]."""
    fov: float
    """Vertical field of view, radians."""
    aspect: float
    """Width over height."""

    def camera(self, pixels: int) -> Camera:
        """A camera with about this number of square pixels.

        Raises a `ValueError` if the numbers do not describe a camera.
        """
        if not 0 < self.fov < pi:
            raise CameraError(f"a field of view must be between 0 and pi, got {self.fov}")
        aspect = min(max(self.aspect, SLIMMEST), 1 / SLIMMEST)
        height = max(1, round(sqrt(pixels / aspect)))
        width = max(1, round(height * aspect))
        focal = 0.5 * height / tan(self.fov / 2)
        pose = np.eye(4)
        pose[:3, :3] = _rotation(self.wxyz).as_matrix().T
        pose[:3, 3] = -pose[:3, :3] @ self.position
        return Camera(
            world_to_camera=pose,
            fx=focal,
            fy=focal,
            cx=width / 2,
            cy=height / 2,
            width=width,
            height=height,
        )

    def shown_in(self, aspect: float) -> Viewpoint:
        """The same viewpoint, widened so that a window of this aspect shows the whole picture."""
        opened = max(1.0, self.aspect / aspect)
        return replace(self, fov=2 * atan(opened * tan(self.fov / 2)), aspect=aspect)

    def is_at(self, other: Viewpoint) -> bool:
        """Whether place and direction are the same up to what a browser rounds."""
        apart = float(np.abs(self.position - other.position).max())
        turned = 1 - abs(float(self.wxyz @ other.wxyz))
        return apart <= ROUNDED * (1 + float(np.abs(self.position).max())) and turned <= ROUNDED

    def flight(self, goal: Viewpoint, steps: int) -> Iterator[Viewpoint]:
        """Viewpoints on the way to another one, slow at both ends; the last is the goal."""
        turns = Slerp(
            [0.0, 1.0], Rotation.concatenate([_rotation(self.wxyz), _rotation(goal.wxyz)])
        )
        for step in range(1, steps):
            share = step / steps
            share = share * share * (3 - 2 * share)
            yield Viewpoint(
                _wxyz(turns(share)),
                (1 - share) * self.position + share * goal.position,
                (1 - share) * self.fov + share * goal.fov,
                goal.aspect,
            )
        yield goal


def viewpoint_of(camera: Camera) -> Viewpoint:
    """The viewpoint of a camera; its principal point is assumed to be the centre."""
    return Viewpoint(
        wxyz=_wxyz(Rotation.from_matrix(camera.world_to_camera[:3, :3].T)),
        position=camera.centre,
        fov=2 * atan(0.5 * camera.height / camera.fy),
        aspect=camera.width * camera.fy / (camera.height * camera.fx),
    )


def _rotation(wxyz: Array) -> Rotation:
    return Rotation.from_quat(np.roll(np.asarray(wxyz, dtype=np.float64), -1))


def _wxyz(rotation: Rotation) -> Array:
    return np.roll(rotation.as_quat(), 1)
