# SPDX-License-Identifier: Apache-2.0
"""COLMAP reconstructions: where they are, what they hold, and which lenses can be used.

COLMAP's conventions are ours: world-to-camera poses, OpenCV axes, the corner of
the picture at (0, 0), so pixel centres lie at +0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError
from splatcert.scene.dataset import Shot, SparsePoints
from splatcert.scene.lens import INTRINSICS, Lens, LensError

PHOTO_FOLDER = "images"
FILES = ("bin", "txt")
"""Suffixes of a reconstruction's files, the preferred one first."""
MODELS: dict[int, tuple[str, int]] = {
    0: ("SIMPLE_PINHOLE", 3),
    1: ("PINHOLE", 4),
    2: ("SIMPLE_RADIAL", 4),
    3: ("RADIAL", 5),
    4: ("OPENCV", 8),
    5: ("OPENCV_FISHEYE", 8),
    6: ("FULL_OPENCV", 12),
    7: ("FOV", 5),
    8: ("SIMPLE_RADIAL_FISHEYE", 4),
    9: ("RADIAL_FISHEYE", 5),
    10: ("THIN_PRISM_FISHEYE", 12),
    11: ("RAD_TAN_THIN_PRISM_FISHEYE", 16),
    12: ("SIMPLE_DIVISION", 4),
    13: ("DIVISION", 5),
    14: ("SIMPLE_FISHEYE", 3),
    15: ("FISHEYE", 4),
    16: ("EUCM", 6),
    17: ("EQUIRECTANGULAR", 2),
}
"""Name and number of parameters of each camera model, by COLMAP's id."""
PINHOLE = {"SIMPLE_PINHOLE", "PINHOLE"}
BROWN = {"SIMPLE_RADIAL", "RADIAL", "OPENCV", "FULL_OPENCV"}
FISHEYE = {
    "OPENCV_FISHEYE",
    "SIMPLE_RADIAL_FISHEYE",
    "RADIAL_FISHEYE",
    "SIMPLE_FISHEYE",
    "FISHEYE",
}
ONE_FOCAL = {
    "SIMPLE_PINHOLE",
    "SIMPLE_RADIAL",
    "RADIAL",
    "SIMPLE_RADIAL_FISHEYE",
    "RADIAL_FISHEYE",
    "SIMPLE_FISHEYE",
}


class ColmapError(InputError):
    """A reconstruction that cannot be read."""


@dataclass(frozen=True)
class ColmapCamera:
    """One physical camera, as stored."""

    id: int
    model: str
    width: int
    height: int
    params: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ColmapImage:
    """One registered photo, as stored."""

    id: int
    name: str
    camera_id: int
    quaternion: NDArray[np.float64]
    """World to camera, w x y z, [4]."""
    translation: NDArray[np.float64]
    """[3]."""
    points2d: NDArray[np.float64] | None = None
    """FittedScene positions in pixels, [M, 2]; read only on request."""
    point_ids: NDArray[np.int64] | None = None
    """Id of the point behind each of them, -1 for none, [M]."""

    @property
    def world_to_camera(self) -> NDArray[np.float64]:
        """Rigid transform, [4, 4]."""
        w, x, y, z = self.quaternion / np.linalg.norm(self.quaternion)
        pose = np.eye(4)
        pose[:3, :3] = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        pose[:3, 3] = self.translation
        return pose


@dataclass(frozen=True, eq=False)
class ColmapModel:
    """A whole reconstruction."""

    folder: Path
    cameras: dict[int, ColmapCamera]
    images: tuple[ColmapImage, ...]
    """Sorted by name."""
    points: SparsePoints | None = field(default=None)


def read_colmap(folder: Path | str, *, observations: bool = False) -> ColmapModel:
    """Read a reconstruction, binary if present, else text; photos are not needed.

    `observations` also keeps the 2D points of every photo, which take most of
    the memory and which only checks of the poses need.
    """
    from splatcert.scene.readers import colmap_binary, colmap_text

    folder = Path(folder)
    suffix = _complete_suffix(folder)
    reader = colmap_binary if suffix == "bin" else colmap_text
    cameras = reader.read_cameras(folder / f"cameras.{suffix}")
    images = reader.read_images(folder / f"images.{suffix}", observations=observations)
    _check(folder / f"images.{suffix}", cameras, images)
    points_file = folder / f"points3D.{suffix}"
    points = reader.read_points(points_file) if points_file.is_file() else None
    if points is not None:
        points.check_finite(points_file)
    return ColmapModel(folder, cameras, tuple(sorted(images, key=lambda i: i.name)), points)


def _complete_suffix(folder: Path) -> str:
    """Suffix of the files to read: binary where both lists have it, else text."""
    stems = ("cameras", "images")
    there = {s: [stem for stem in stems if (folder / f"{stem}.{s}").is_file()] for s in FILES}
    for suffix in FILES:
        if len(there[suffix]) == len(stems):
            return suffix
    suffix = next((s for s in FILES if there[s]), FILES[0])
    missing = ", ".join(f"{stem}.{suffix}" for stem in stems if stem not in there[suffix])
    raise ColmapError(
        f"the reconstruction in {folder} has no {missing}.\n"
        "  A model is cameras, images and points3D, all .bin or all .txt: copy the missing file,\n"
        "  or export the model again."
    )


def _check(path: Path, cameras: dict[int, ColmapCamera], images: Sequence[ColmapImage]) -> None:
    """Refuse an empty model, names used twice, unknown cameras and impossible poses."""
    if not images:
        raise ColmapError(f"{path} registers no photo.\n  Run the reconstruction again.")
    seen: set[str] = set()
    for image in images:
        if image.name in seen:
            raise ColmapError(
                f"the photo name {image.name!r} appears twice in {path}.\n"
                "  Names must be unique: remove one of the two registrations."
            )
        seen.add(image.name)
        if image.camera_id not in cameras:
            raise ColmapError(
                f"photo {image.name!r} was taken by camera {image.camera_id}, "
                f"but the model has only cameras {sorted(cameras)[:8]}.\n"
                f"  In {path}.\n"
                "  cameras and images must come from the same reconstruction: export both again."
            )
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(image.quaternion))
        if not np.isfinite(image.translation).all() or not abs(norm - 1) < 0.05:
            raise ColmapError(
                f"photo {image.name!r} has no usable pose: quaternion {image.quaternion.tolist()}, "
                f"translation {image.translation.tolist()}.\n"
                f"  In {path}.\n"
                "  Remove this photo from the reconstruction, or export it again."
            )


def shots_of(model: ColmapModel, photos: Path) -> list[Shot]:
    """Every photo with its lens and pose; the folder of photos is for messages."""
    used = sorted({image.camera_id for image in model.images})
    lenses = {key: lens_of(model.cameras[key], model.folder, photos) for key in used}
    return [
        Shot(image.name, lenses[image.camera_id], image.world_to_camera, PHOTO_FOLDER, image.name)
        for image in model.images
    ]


def lens_of(camera: ColmapCamera, folder: Path, photos: Path) -> Lens:
    """The lens of a COLMAP camera, or the command that makes one we can use."""
    if camera.model not in PINHOLE | BROWN | FISHEYE:
        undistorted = photos.parent.with_name(photos.parent.name + "_undistorted")
        raise ColmapError(
            f"camera {camera.id} in {folder} has model {camera.model}, which splatcert does not "
            "undistort.\n  Run:\n"
            f"  colmap image_undistorter --image_path {photos} --input_path {folder} "
            f"--output_path {undistorted} --output_type COLMAP\n"
            f"  and load {undistorted}."
        )
    params = list(camera.params)
    if camera.model in ONE_FOCAL:
        params.insert(0, params[0])
    intrinsics, distortion = dict(zip(INTRINSICS, params, strict=False)), params[4:]
    kind = "pinhole"
    if camera.model in BROWN:
        kind, distortion = "brown", distortion + [0.0] * max(0, 4 - len(distortion))
    elif camera.model in FISHEYE:
        kind, distortion = "fisheye", distortion + [0.0] * (4 - len(distortion))
    try:
        return Lens(
            **intrinsics,
            width=camera.width,
            height=camera.height,
            kind=kind,
            distortion=tuple(distortion),
        )
    except LensError as error:
        raise ColmapError(f"camera {camera.id} in {folder}: {error}") from None
