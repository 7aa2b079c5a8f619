# SPDX-License-Identifier: Apache-2.0
"""The world normalisation of gsplat's trainer, which its checkpoints do not store.

By default the trainer turns, centres and scales the world before it starts, from all
poses and sparse points of the capture. The same steps on the same capture give the
same similarity, up to signs that a linear-algebra library is free to choose; which
signs were chosen shows in where the Gaussians lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from splatcert.splats.gaussians import Splats
from splatcert.splats.transform import FrameError, split_similarity

Matrix = NDArray[np.float64]

SAMPLED_POINTS = 500
SAMPLED_GAUSSIANS = 50_000
EXACT = "donot_use_mm_for_euclid_dist"


def gsplat_normalization(camera_to_worlds: ArrayLike, points: ArrayLike) -> Matrix:
    """Similarity from the frame of COLMAP to the frame gsplat trains in, 4x4.

    Requires every registered image and every sparse point, held-out ones included,
    because the trainer normalises before it splits.
    """
    cameras = np.array(camera_to_worlds, dtype=np.float64)
    # The trainer stores points in single precision before it uses them.
    cloud = np.array(points, dtype=np.float32).astype(np.float64)
    if cameras.ndim != 3 or cameras.shape[1:] != (4, 4) or not len(cameras):
        raise FrameError(f"camera_to_worlds must be [N, 4, 4], got {list(cameras.shape)}")
    if cloud.ndim != 2 or cloud.shape[1] != 3 or len(cloud) < 2:
        raise FrameError(f"points must be [M, 3] with at least two rows, got {list(cloud.shape)}")
    if not (np.isfinite(cameras).all() and np.isfinite(cloud).all()):
        raise FrameError("camera poses and points must be finite to rebuild gsplat's frame")
    upright = _from_cameras(cameras)
    moved = _apply(upright, cloud)
    level = _from_points(moved)
    moved = _apply(level, moved)
    # More points are expected near the ground, so the long tail should point up.
    flip = np.diag([1.0, -1.0, -1.0, 1.0])
    upside_down = np.median(moved[:, 2]) > moved[:, 2].mean()
    return (flip if upside_down else np.eye(4)) @ level @ upright


def _from_cameras(cameras: Matrix) -> Matrix:
    """Mean up direction to -y, focus point to the origin, median distance to one."""
    rotations, centres = cameras[:, :3, :3], cameras[:, :3, 3]
    up = -rotations[:, :, 1].mean(axis=0)
    if not np.linalg.norm(up) > 0:
        raise FrameError(
            "gsplat's frame requires an up direction, but the cameras' up directions cancel out"
        )
    turn = _shortest_turn(up / np.linalg.norm(up), np.array([0.0, -1.0, 0.0]))
    centres = centres @ turn.T
    axes = rotations[:, :, 2] @ turn.T
    nearest = centres - (axes * centres).sum(axis=1, keepdims=True) * axes
    shift = -np.median(nearest, axis=0)
    distance = float(np.median(np.linalg.norm(centres + shift, axis=1)))
    if not distance > 0:
        raise FrameError(
            "gsplat's frame requires cameras away from the point they look at;\n"
            f"  the median distance of these {len(cameras)} cameras is {distance}."
        )
    similarity = np.eye(4)
    similarity[:3, :3] = turn
    similarity[:3, 3] = shift
    similarity[:3] /= distance
    return similarity


def _shortest_turn(start: Matrix, end: Matrix) -> Matrix:
    """Rotation about the common normal. The trainer mirrors x where none is defined."""
    cosine = float(start @ end)
    if cosine <= -1:
        return np.diag([-1.0, 1.0, 1.0])
    x, y, z = np.cross(start, end)
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + skew + skew @ skew / (1 + cosine)


def _from_points(points: Matrix) -> Matrix:
    """Rigid motion to the principal axes of the points, longest first, about their median."""
    centre = np.median(points, axis=0)
    values, vectors = np.linalg.eigh(np.cov(points - centre, rowvar=False))
    vectors = vectors[:, values.argsort()[::-1]]
    if np.linalg.det(vectors) < 0:
        vectors[:, 0] *= -1
    motion = np.eye(4)
    motion[:3, :3] = vectors.T
    motion[:3, 3] = -vectors.T @ centre
    return motion


def _apply(matrix: Matrix, points: Matrix) -> Matrix:
    return points @ matrix[:3, :3].T + matrix[:3, 3]


@dataclass(frozen=True, eq=False)
class FrameCandidate:
    """One possible frame of a model, and how far its Gaussians then are from the points."""

    name: str
    to_model: Matrix
    """Similarity from the capture's frame to the model's, 4x4."""
    distance: float
    """Median distance of a sparse point to a Gaussian, over the spread of the points."""


def frame_distance(splats: Splats, points: ArrayLike, to_model: ArrayLike) -> float:
    """How far sparse points are from the nearest Gaussian, relative to their spread.

    A check of a frame without rendering: training starts at the sparse points and
    hardly leaves them. On real captures the right frame gives about 0.01 and a frame
    that is only turned the wrong way 0.03 to 0.2.
    """
    matrix, scale, _ = split_similarity(to_model)
    cloud = np.array(points, dtype=np.float64)
    if not len(cloud) or not len(splats):
        raise FrameError(
            f"comparing frames requires points and Gaussians, got {len(cloud)} and {len(splats)}"
        )
    spread = float(np.median(np.linalg.norm(cloud - np.median(cloud, axis=0), axis=1)))
    random = np.random.default_rng(0)
    chosen = cloud[random.permutation(len(cloud))[:SAMPLED_POINTS]]
    kept = torch.from_numpy(random.permutation(len(splats))[:SAMPLED_GAUSSIANS])
    gaussians = splats.means.detach()[kept].cpu().float()
    nearest = torch.cat(
        [
            torch.cdist(torch.from_numpy(block).float(), gaussians, compute_mode=EXACT).amin(dim=1)
            for block in np.array_split(_apply(matrix, chosen), max(len(chosen) // 100, 1))
        ]
    )
    return float(nearest.median()) / (scale * max(spread, np.finfo(np.float64).tiny))


def gsplat_frames(
    splats: Splats, camera_to_worlds: ArrayLike, points: ArrayLike
) -> list[FrameCandidate]:
    """Frames that gsplat's trainer may have used, the best match first.

    The rebuilt normalisation comes with the half turns that other eigenvector signs
    or releases without the final flip would give, and with no normalisation at all.
    """
    rebuilt = gsplat_normalization(camera_to_worlds, points)
    turns = {
        "gsplat": (1.0, 1.0, 1.0),
        "gsplat, turned about x": (1.0, -1.0, -1.0),
        "gsplat, turned about y": (-1.0, 1.0, -1.0),
        "gsplat, turned about z": (-1.0, -1.0, 1.0),
    }
    frames = {name: np.diag([*signs, 1.0]) @ rebuilt for name, signs in turns.items()}
    frames["COLMAP"] = np.eye(4)
    candidates = [
        FrameCandidate(name, matrix, frame_distance(splats, points, matrix))
        for name, matrix in frames.items()
    ]
    return sorted(candidates, key=lambda candidate: candidate.distance)
