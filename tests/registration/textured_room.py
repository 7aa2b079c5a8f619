# SPDX-License-Identifier: Apache-2.0
"""A corner of a room with patterned walls, photographed by ray casting: features everywhere."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from scene_writers import Pose

SIZE, FOCAL = (320, 240), 300.0
WALLS = ((2, 3.0), (0, -2.0), (1, 1.5))
"""Axis and position of the back wall, the left wall and the floor."""


def pattern(seed: int) -> np.ndarray:
    """Blobs of all sizes, [1024, 1024, 3]."""
    rng = np.random.default_rng(seed)
    total = np.zeros((1024, 1024, 3), np.float32)
    for cells in (24, 64, 160, 400):
        coarse = rng.random((cells, cells, 3), dtype=np.float32)
        total += cv2.resize(coarse, (1024, 1024), interpolation=cv2.INTER_CUBIC)
    return (total / 4).clip(0, 1)


def photograph(pose: Pose, seed: int = 0, size: tuple[int, int] = SIZE, focal: float = FOCAL):
    """What a pinhole camera with its centre in the middle sees, [H, W, 3], bytes."""
    columns, rows = np.meshgrid(np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5)
    rays = np.stack(
        [(columns - size[0] / 2) / focal, (rows - size[1] / 2) / focal, np.ones_like(rows)], -1
    )
    rays = rays @ pose.rotation.T
    nearest = np.full(rows.shape, np.inf)
    picture = np.zeros((*rows.shape, 3), np.float32)
    for number, (axis, position) in enumerate(WALLS):
        with np.errstate(divide="ignore", invalid="ignore"):
            depth = (position - pose.centre[axis]) / rays[..., axis]
        hit = np.isfinite(depth) & (depth > 1e-3) & (depth < nearest)
        where = pose.centre + rays * np.where(hit, depth, 0)[..., None]
        u, v = (where[..., other] for other in range(3) if other != axis)
        place = ((u + 4) * 120).astype(np.float32), ((v + 4) * 120).astype(np.float32)
        shown = cv2.remap(
            pattern(10 * seed + number), *place, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP
        )
        picture[hit] = shown[hit]
        nearest = np.where(hit, depth, nearest)
    return np.round(picture * 255).astype(np.uint8)


def viewpoints(count: int, seed: int) -> list[Pose]:
    """Cameras in front of the corner, looking into it."""
    rng = np.random.default_rng(seed)
    poses = []
    for _ in range(count):
        centre = np.array([rng.uniform(-0.8, 1.2), rng.uniform(-0.8, 0.6), rng.uniform(-1.5, 0.2)])
        forward = np.array([-0.8, 0.4, 3.0]) + rng.normal(scale=0.15, size=3) - centre
        forward /= np.linalg.norm(forward)
        right = np.cross([0.0, 1.0, 0.0], forward)
        right /= np.linalg.norm(right)
        poses.append(Pose(np.column_stack([right, np.cross(forward, right), forward]), centre))
    return poses


def save_photos(folder: Path, poses: dict[str, Pose], **options) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, pose in poses.items():
        Image.fromarray(photograph(pose, **options)).save(folder / name)
