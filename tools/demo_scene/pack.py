# SPDX-License-Identifier: Apache-2.0
"""The capture as it goes into the package: JPEG photographs, COLMAP poses, sparse points."""

from __future__ import annotations

import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import mitsuba as mi
import numpy as np
from cameras import FOCAL, HEIGHT, WIDTH, Pose, poses
from develop import develop, troubles
from numpy.typing import NDArray
from PIL import Image
from plans import Plan
from render import radiance_path
from scipy.spatial.transform import Rotation
from still_life import MIRRORING, still_life

QUALITY = 84
PINHOLE = 1
HELD_OUT = 5
"""The demo holds out every so manieth photograph, and no point takes its colour from one."""
CORNERS, CELL, JITTER = 130, 0.012, 0.002
"""Corners a photograph, size of a cell that keeps one point, error: both relative to depth."""


def pack(plan: Plan, radiances: Path, capture: Path) -> None:
    """Develop every view and write the capture.

    Photographs are numbered by lot: every fifth is then a fair sample of rings and close-ups.
    """
    planned = poses(plan)
    wrong, by_lot = (
        troubles(len(planned), plan),
        np.random.default_rng(plan.seed + 3).permutation(len(planned)),
    )
    every = [planned[view] for view in by_lot]
    photos = [
        develop(np.load(radiance_path(radiances, view)), wrong[view], seed=view) for view in by_lot
    ]
    names = [f"{view:03d}.jpg" for view in range(len(every))]
    (capture / "images").mkdir(parents=True, exist_ok=True)
    for name, photo in zip(names, photos, strict=True):
        Image.fromarray(photo).save(
            capture / "images" / name, quality=QUALITY, optimize=True, subsampling=0
        )
    sparse = capture / "sparse" / "0"
    sparse.mkdir(parents=True, exist_ok=True)
    xyz, rgb = sparse_points(plan, every, photos)
    (sparse / "cameras.bin").write_bytes(cameras_file())
    (sparse / "images.bin").write_bytes(images_file(every, names))
    (sparse / "points3D.bin").write_bytes(points_file(xyz, rgb))
    size = sum(path.stat().st_size for path in capture.rglob("*") if path.is_file())
    print(f"{capture}: {len(names)} photographs, {len(xyz)} points, {size / 1e6:.2f} MB")


def sparse_points(
    plan: Plan, every: list[Pose], photos: list[NDArray[np.uint8]]
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Corners of the training photographs on the surfaces they show, with errors as SfM has."""
    with TemporaryDirectory() as meshes:
        scene = still_life(Path(meshes), plan)
    random = np.random.default_rng(plan.seed + 2)
    taken: set[tuple[int, ...]] = set()
    xyz, rgb = [], []
    for view, (pose, photo) in enumerate(zip(every, photos, strict=True)):
        if view % HELD_OUT == 0:
            continue
        grey = cv2.cvtColor(photo, cv2.COLOR_RGB2GRAY)
        corners = cv2.goodFeaturesToTrack(grey, CORNERS, 0.01, 4).reshape(-1, 2)
        for column, row in corners:
            point, depth = surface(scene, pose, column + 0.5, row + 0.5)
            if point is None:
                continue
            level = int(np.log2(depth))
            cell = (level, *np.floor(point / (CELL * 2.0**level)).astype(int))
            if cell in taken:
                continue
            taken.add(cell)
            xyz.append(point + random.normal(0, JITTER * depth, 3))
            rgb.append(photo[int(row), int(column)])
    return np.array(xyz), np.array(rgb)


def surface(
    scene: mi.Scene, pose: Pose, x: float, y: float
) -> tuple[NDArray[np.float64] | None, float]:
    """What a pixel shows and how far it is; nothing on what only mirrors or refracts."""
    ray = np.array([(x - WIDTH / 2) / FOCAL, (y - HEIGHT / 2) / FOCAL, 1.0])
    direction = pose.rotation @ (ray / np.linalg.norm(ray))
    start, far = pose.centre, 0.0
    hit = scene.ray_intersect(mi.Ray3f(o=start.tolist(), d=direction.tolist()))
    while hit.is_valid() and is_pane(hit):
        start, far = np.array(hit.p) + 1e-4 * direction, far + float(hit.t)
        hit = scene.ray_intersect(mi.Ray3f(o=start.tolist(), d=direction.tolist()))
    if not hit.is_valid() or hit.shape.id() in MIRRORING:
        return None, 0.0
    return np.array(hit.p), far + float(hit.t)


def is_pane(hit: mi.SurfaceInteraction3f) -> bool:
    """Whether light passes straight through, as structure from motion then does."""
    return bool(mi.has_flag(hit.shape.bsdf().flags(), mi.BSDFFlags.Null))


def cameras_file() -> bytes:
    """One pinhole for all photographs."""
    head = struct.pack("<QiiQQ", 1, 1, PINHOLE, WIDTH, HEIGHT)
    return head + struct.pack("<4d", FOCAL, FOCAL, WIDTH / 2, HEIGHT / 2)


def images_file(every: list[Pose], names: list[str]) -> bytes:
    """World-to-camera poses, without the corners that were seen."""
    rows = [struct.pack("<Q", len(names))]
    for number, (pose, name) in enumerate(zip(every, names, strict=True), 1):
        x, y, z, w = Rotation.from_matrix(pose.rotation.T).as_quat()
        shift = -pose.rotation.T @ pose.centre
        rows.append(struct.pack("<i7di", number, w, x, y, z, *shift, 1))
        rows.append(name.encode() + b"\0" + struct.pack("<Q", 0))
    return b"".join(rows)


def points_file(xyz: NDArray[np.float64], rgb: NDArray[np.uint8]) -> bytes:
    """Points with colours, without tracks."""
    rows = [struct.pack("<Q", len(xyz))]
    for number, (point, colour) in enumerate(zip(xyz, rgb, strict=True), 1):
        rows.append(struct.pack("<Q3d3BdQ", number, *point, *colour, 1.0, 0))
    return b"".join(rows)
