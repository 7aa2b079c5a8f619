# SPDX-License-Identifier: Apache-2.0
"""How far a camera is from the training cameras: in place, rotation, lens and pixel grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera

Array = NDArray[np.float64]


class Nearest(NamedTuple):
    """The training camera nearest to a camera, and how far away it is."""

    pose: float
    """Distance in scene extents and rotation in radians, as one length."""
    distance: float
    """Its distance, in scene extents."""
    angle: float
    """Angle of the rotation about any axis that turns one into the other, radians."""
    lens: float
    """Log ratio of the fields of view, horizontal or vertical, smallest over training cameras."""
    pixels: float
    """Log ratio of the numbers of pixels, smallest over training cameras."""


class TrainingPoses:
    """The training cameras, as neighbours of a new one.

    A turn counts about every axis, so a camera that is rolled on the spot is far away. One
    scene extent counts as much as one radian.
    """

    def __init__(self, cameras: Sequence[Camera], extent: float) -> None:
        self.extent = extent
        self._centres = np.array([camera.centre for camera in cameras])
        self._rotations = np.array([camera.world_to_camera[:3, :3] for camera in cameras])
        self._lenses = np.array([_lens(camera) for camera in cameras])
        self._pixels = np.array([_pixels(camera) for camera in cameras])

    def nearest(self, camera: Camera, *, without: int | None = None) -> Nearest:
        """The nearest training camera; `without` leaves one out, for a training camera itself."""
        kept = slice(None) if without is None else np.arange(len(self._centres)) != without
        if not len(self._centres[kept]):
            return Nearest(0.0, 0.0, 0.0, 0.0, 0.0)
        away = np.linalg.norm(self._centres[kept] - camera.centre, axis=1) / self.extent
        angles = _angles(camera.world_to_camera[:3, :3], self._rotations[kept])
        joint = np.hypot(away, angles)
        closest = int(joint.argmin())
        lens = np.abs(self._lenses[kept] - _lens(camera)).min(axis=1)
        return Nearest(
            pose=float(joint[closest]),
            distance=float(away[closest]),
            angle=float(angles[closest]),
            lens=float(lens.min()),
            pixels=float(np.abs(self._pixels[kept] - _pixels(camera)).min()),
        )


def _angles(rotation: Array, others: Array) -> Array:
    """Angles between one rotation and others, [n], from the lengths of their differences.

    |R - S| = 2 sqrt(2) sin(angle / 2) in the Frobenius norm, which keeps small angles exact.
    """
    apart = np.linalg.norm(others - rotation, axis=(1, 2))
    return 2 * np.arcsin((apart / np.sqrt(8)).clip(0.0, 1.0))


def _lens(camera: Camera) -> tuple[float, float]:
    return float(np.log(camera.fx / camera.width)), float(np.log(camera.fy / camera.height))


def _pixels(camera: Camera) -> float:
    return float(np.log(camera.width * camera.height))
