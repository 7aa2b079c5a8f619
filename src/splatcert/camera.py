# SPDX-License-Identifier: Apache-2.0
"""A pinhole camera: its pose, its intrinsics and its pixel grid."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.errors import InputError

MAX_SIDE = 1 << 16
MAX_PIXELS = 1 << 27
"""Largest picture, 134 megapixels, because a file may claim any size and renders stay in memory."""
FARTHEST = 1e15
"""Largest coordinate: beyond it, squares and products leave the range of float32."""
POSE_NUMBERS = 12


class CameraError(InputError):
    """A camera that cannot form an image."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PixelGrid:
    """Intrinsics in pixels, which a camera and a lens have in common."""

    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int

    def resized(self: Grid, width: int, height: int) -> Grid:
        """The same camera or lens on a different pixel grid."""
        sx, sy = width / self.width, height / self.height
        scaled = {"fx": self.fx * sx, "fy": self.fy * sy, "cx": self.cx * sx, "cy": self.cy * sy}
        return replace(self, **scaled, width=width, height=height)


Grid = TypeVar("Grid", bound=PixelGrid)


@dataclass(frozen=True, eq=False, kw_only=True)
class Camera(PixelGrid):
    """World-to-camera pose in OpenCV axes (x right, y down, z forward) and intrinsics.

    Pixel (column i, row j) has its centre at (i + 0.5, j + 0.5); the principal
    point may be anywhere.
    """

    plain_types: ClassVar[Mapping[str, Any]] = {
        "world_to_camera": tuple[float, ...],
        **dict.fromkeys(("fx", "fy", "cx", "cy"), float),
        **dict.fromkeys(("width", "height"), int),
    }
    """Entries of a camera in JSON, and their types."""

    world_to_camera: NDArray[np.float64]
    """Rigid transform, [4, 4]."""

    def __post_init__(self) -> None:
        pose = np.array(self.world_to_camera, dtype=np.float64)
        if pose.shape != (4, 4) or not np.isfinite(pose).all():
            raise CameraError(
                f"world_to_camera must be a finite 4x4 matrix, got {pose.tolist()!r:.200}"
            )
        rotation = pose[:3, :3]
        if np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-3 or np.linalg.det(rotation) < 0:
            raise CameraError(
                "world_to_camera must hold a rotation (orthonormal, determinant +1).\n"
                "  Remove scale and mirrored axes from it."
            )
        if np.abs(pose[:3, 3]).max() > FARTHEST:
            raise CameraError(
                f"a camera is {np.abs(pose[:3, 3]).max():.3g} from the origin; coordinates may "
                f"have at most {FARTHEST:g}.\n  Scale the world, or remove this camera."
            )
        pose.setflags(write=False)
        object.__setattr__(self, "world_to_camera", pose)
        if self.width < 1 or self.height < 1:
            raise CameraError(f"a camera must have pixels, got {self.width} x {self.height}")
        if max(self.width, self.height) > MAX_SIDE or self.width * self.height > MAX_PIXELS:
            raise CameraError(
                f"a camera of {self.width} x {self.height} pixels is too large: the limit is "
                f"{MAX_PIXELS} pixels (splatcert.camera.MAX_PIXELS) and {MAX_SIDE} per side.\n"
                "  Choose a smaller resolution."
            )
        intrinsics = (self.fx, self.fy, self.cx, self.cy)
        if not np.isfinite(intrinsics).all() or self.fx <= 0 or self.fy <= 0:
            raise CameraError(f"focal lengths must be positive and finite, got {intrinsics}")
        if np.abs(intrinsics).max() > FARTHEST:
            raise CameraError(
                f"focal lengths and principal point may be at most {FARTHEST:g} pixels, "
                f"got {intrinsics}.\n  Correct the camera, or remove it."
            )

    @property
    def K(self) -> NDArray[np.float64]:
        """Intrinsic matrix, [3, 3]."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1]], dtype=np.float64)

    @property
    def centre(self) -> NDArray[np.float64]:
        """Camera centre in world coordinates, [3]."""
        rotation, shift = self.world_to_camera[:3, :3], self.world_to_camera[:3, 3]
        return -rotation.T @ shift

    @property
    def forward(self) -> NDArray[np.float64]:
        """Unit viewing axis in world coordinates, [3]."""
        return self.world_to_camera[2, :3].copy()

    @classmethod
    def from_colmap(
        cls, quaternion: Sequence[float], translation: Sequence[float], **grid: Any
    ) -> Camera:
        """From COLMAP's `qvec` (w, x, y, z) and `tvec`, which map world to camera.

        `grid` holds fx, fy, cx, cy, width and height, here and below. COLMAP's pixel centres
        are at half integers, as ours are.
        """
        from scipy.spatial.transform import Rotation

        w, x, y, z = map(float, quaternion)
        pose: NDArray[np.float64] = np.eye(4)
        try:
            pose[:3, :3] = Rotation.from_quat([x, y, z, w]).as_matrix()
        except ValueError:
            raise CameraError("a quaternion of length zero is not a rotation") from None
        pose[:3, 3] = translation
        return cls(world_to_camera=pose, **grid)

    @classmethod
    def from_opengl(cls, camera_to_world: ArrayLike, **grid: Any) -> Camera:
        """From camera-to-world [4, 4] or [3, 4] in OpenGL axes (x right, y up, z backwards).

        These are the axes of Blender, of the NeRF data sets and of transforms.json.
        """
        given = np.asarray(camera_to_world, dtype=np.float64)
        if given.shape not in ((3, 4), (4, 4)):
            raise CameraError(f"camera_to_world must be [3, 4] or [4, 4], got {list(given.shape)}")
        axes = given[:3, :3] * (1.0, -1.0, -1.0)
        pose: NDArray[np.float64] = np.eye(4)
        pose[:3, :3], pose[:3, 3] = axes.T, -axes.T @ given[:3, 3]
        return cls(world_to_camera=pose, **grid)

    @classmethod
    def from_nerfstudio(cls, camera: Any) -> Camera:
        """From one camera of nerfstudio's `Cameras`, such as `cameras[3]` or `cameras[3:4]`.

        Its lens must be a pinhole: undistort photographs and cameras first. The world is
        nerfstudio's own, as its dataparser left it.
        """
        pose = np.asarray(camera.camera_to_worlds, dtype=np.float64)
        if pose.size != POSE_NUMBERS:
            raise CameraError(f"expected one camera, got poses of shape {list(pose.shape)}")
        distortion = getattr(camera, "distortion_params", None)
        if distortion is not None and np.any(np.asarray(distortion) != 0):
            raise CameraError("this camera has lens distortion.\n  Undistort its photograph first.")
        names = ("fx", "fy", "cx", "cy")
        numbers = {name: float(np.asarray(getattr(camera, name)).item()) for name in names}
        size = {name: int(np.asarray(getattr(camera, name)).item()) for name in ("width", "height")}
        return cls.from_opengl(pose.reshape(3, 4), **numbers, **size)

    def project(
        self, points: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Pixels [N, 2] and depths along the axis [N] of world points [N, 3].

        Pixels of points that are not in front (depth <= 0) are NaN.
        """
        rotation, shift = self.world_to_camera[:3, :3], self.world_to_camera[:3, 3]
        local = np.asarray(points, dtype=np.float64) @ rotation.T + shift
        depth = local[:, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            pixels = local[:, :2] / depth[:, None] * (self.fx, self.fy) + (self.cx, self.cy)
        pixels[depth <= 0] = np.nan
        return pixels, depth

    def cropped(self, width: int, height: int) -> Camera:
        """The same camera with only the first columns and rows of its pixels."""
        return replace(self, width=width, height=height)

    def resized(self, width: int, height: int) -> Camera:
        """The same camera on a different pixel grid."""
        sx, sy = width / self.width, height / self.height
        return replace(
            self,
            fx=self.fx * sx,
            fy=self.fy * sy,
            cx=self.cx * sx,
            cy=self.cy * sy,
            width=width,
            height=height,
        )

    def to_plain(self) -> dict[str, object]:
        """The camera as numbers for JSON; floats are restored bit for bit."""
        return {
            "world_to_camera": self.world_to_camera[:3].ravel().tolist(),
            **{name: float(getattr(self, name)) for name in ("fx", "fy", "cx", "cy")},
            "width": self.width,
            "height": self.height,
        }

    @classmethod
    def from_plain(cls, *, world_to_camera: tuple[float, ...], **intrinsics: Any) -> Camera:
        """The camera from numbers; the pose is its first three rows, row by row."""
        if len(world_to_camera) != POSE_NUMBERS:
            raise CameraError(f"a pose has {POSE_NUMBERS} numbers, got {len(world_to_camera)}")
        pose: NDArray[np.float64] = np.eye(4)
        pose[:3] = np.array(world_to_camera).reshape(3, 4)
        return cls(world_to_camera=pose, **intrinsics)


def camera_hash(camera: Camera) -> str:
    """Hash of a camera's pose, lens and pixel grid."""
    numbers = [*camera.world_to_camera.ravel().tolist(), camera.fx, camera.fy, camera.cx, camera.cy]
    packed = struct.pack(f"<{len(numbers)}d2q", *numbers, camera.width, camera.height)
    return hashlib.sha256(packed).hexdigest()


def extent_of(cameras: Sequence[Camera]) -> float:
    """1.1 times the largest distance of one of these cameras from their mean."""
    centres = np.array([camera.centre for camera in cameras])
    return 1.1 * float(np.linalg.norm(centres - centres.mean(axis=0), axis=1).max())
