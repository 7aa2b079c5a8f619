# SPDX-License-Identifier: Apache-2.0
"""The pose of a new photo: points of the old ones, robust estimation, refinement, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.registration.features import SEED, FeatureDatabase, Picture, colmap_camera

Floats = NDArray[np.float64]
INLIER = 0.004
"""Largest reprojection error of an inlier, as a share of the picture's long side."""
FEWEST = 12
"""Points below which no pose is estimated."""
GRID = 4
"""Cells per side of the grid that measures how inliers spread over the picture."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Located:
    """A pose, if one was found, and the evidence for it."""

    world_to_camera: Floats | None = None
    """[4, 4]."""
    camera: tuple[float, ...] = ()
    """Parameters of the camera, refined where they were free."""
    points: int = 0
    """Matches between the photo and points of the capture."""
    inliers: int = 0
    error: float = np.inf
    """Median reprojection error of the inliers, in pixels."""
    cells: int = 0
    """Cells of the grid that contain an inlier, of 16."""
    turn: float = np.inf
    """Angle between the poses from two halves of the points, in degrees."""
    shift: float = np.inf
    """Distance between the centres from two halves of the points, in the capture's unit."""

    @property
    def ratio(self) -> float:
        """Share of the points that are inliers."""
        return self.inliers / max(self.points, 1)


class Landmarks:
    """Points triangulated from the known photos at their known poses."""

    def __init__(
        self,
        database: FeatureDatabase,
        known: Sequence[Picture],
        poses: Floats,
        folder: Path,
    ) -> None:
        colmap = database.colmap
        model = colmap.Reconstruction()
        for picture, pose in zip(known, poses, strict=True):
            key = database.ids[picture.key]
            model.add_camera_with_trivial_rig(colmap_camera(colmap, picture, key))
            image = colmap.Image(name=picture.key, camera_id=key, image_id=key)
            model.add_image_with_trivial_frame(image, colmap.Rigid3d(pose[:3]))
        options = colmap.IncrementalPipelineOptions()
        options.num_threads, options.random_seed = database.threads, SEED
        options.extract_colors = False
        folder.mkdir(exist_ok=True)
        found = colmap.triangulate_points(
            model, database.path, folder, folder, clear_points=True, options=options
        )
        self.database, self.known = database, known
        self.xyz: dict[int, Floats] = {key: point.xyz for key, point in found.points3D.items()}
        self.seen: list[dict[int, int]] = []
        for picture in known:
            points = found.image(database.ids[picture.key]).points2D
            self.seen.append({i: p.point3D_id for i, p in enumerate(points) if p.has_point3D()})

    def __len__(self) -> int:
        return len(self.xyz)

    def seen_by(self, picture: Picture, look_alikes: Sequence[int]) -> tuple[Floats, Floats]:
        """Pixels of a new photo and the points that they show, [N, 2] and [N, 3]."""
        positions = self.database.positions(picture)
        votes: dict[tuple[int, int], int] = {}
        for index in look_alikes:
            seen = self.seen[index]
            for theirs, mine in self.database.verified(self.known[index], picture).tolist():
                if theirs in seen:
                    pair = mine, seen[theirs]
                    votes[pair] = votes.get(pair, 0) + 1
        best: dict[int, tuple[int, int]] = {}
        for (mine, point), count in sorted(votes.items()):
            best[mine] = max(best.get(mine, (0, 0)), (count, point))
        chosen = [(mine, point) for mine, (_, point) in sorted(best.items())]
        pixels = np.array([positions[mine] for mine, _ in chosen]).reshape(-1, 2)
        return pixels, np.array([self.xyz[point] for _, point in chosen]).reshape(-1, 3)


def locate(
    database: FeatureDatabase, picture: Picture, pixels: Floats, xyz: Floats, *, free: bool
) -> Located:
    """The pose of a photo; `free` also estimates focal length and distortion.

    Poses from two disjoint halves of the points, found independently, show how far the pose
    can be trusted: nothing but the right pose makes them agree.
    """
    whole = _estimate(database, picture, pixels, xyz, free=free, seed=SEED)
    if whole is None:
        return Located(points=len(pixels))
    pose, params, inside, error = whole
    size = np.array([picture.camera.width, picture.camera.height])
    cells = np.floor(pixels[inside] / size * GRID).clip(0, GRID - 1).astype(int)
    found = Located(
        world_to_camera=pose,
        camera=params,
        points=len(pixels),
        inliers=int(inside.sum()),
        error=error,
        cells=len(np.unique(cells @ (GRID, 1))),
    )
    fixed = replace(picture, camera=replace(picture.camera, params=params))
    order = np.random.default_rng(SEED).permutation(len(pixels))
    halves = [
        _estimate(database, fixed, pixels[half], xyz[half], free=False, seed=seed)
        for seed, half in enumerate((order[::2], order[1::2]), SEED + 1)
    ]
    if halves[0] is None or halves[1] is None:
        return found
    return replace(found, turn=angle(halves[0][0], halves[1][0]), shift=_apart(halves))


def _estimate(
    database: FeatureDatabase,
    picture: Picture,
    pixels: Floats,
    xyz: Floats,
    *,
    free: bool,
    seed: int,
) -> tuple[Floats, tuple[float, ...], NDArray[np.bool_], float] | None:
    """Pose, camera parameters, which points are inliers, and their median error."""
    if len(pixels) < FEWEST:
        return None
    colmap = database.colmap
    options, refining = (
        colmap.AbsolutePoseEstimationOptions(),
        colmap.AbsolutePoseRefinementOptions(),
    )
    limit = INLIER * max(picture.camera.width, picture.camera.height)
    options.ransac.max_error, options.ransac.random_seed = limit, seed
    options.estimate_focal_length = free and not picture.knows_focal
    refining.refine_focal_length = refining.refine_extra_params = free
    camera = colmap_camera(colmap, picture, 1)
    answer: dict[str, Any] | None = colmap.estimate_and_refine_absolute_pose(
        pixels, xyz, camera, options, refining
    )
    if answer is None:
        return None
    pose = np.eye(4)
    pose[:3] = answer["cam_from_world"].matrix()
    camera = answer.get("camera", camera)
    there = xyz @ pose[:3, :3].T + pose[:3, 3]
    ahead = there[:, 2] > 0
    error = np.full(len(xyz), np.inf)
    if ahead.any():
        seen = camera.img_from_cam(there[ahead], check_cheirality=False)
        error[ahead] = np.linalg.norm(seen - pixels[ahead], axis=1)
    inside = error <= limit
    if not inside.any():
        return None
    return pose, tuple(map(float, camera.params)), inside, float(np.median(error[inside]))


def angle(one: Floats, other: Floats) -> float:
    """Angle between two orientations, in degrees."""
    cosine = (np.trace(one[:3, :3] @ other[:3, :3].T) - 1) / 2
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def centre(pose: Floats) -> Floats:
    """Where the camera stands."""
    return -pose[:3, :3].T @ pose[:3, 3]


def _apart(halves: Sequence[Any]) -> float:
    return float(np.linalg.norm(centre(halves[0][0]) - centre(halves[1][0])))
