# SPDX-License-Identifier: Apache-2.0
"""The initial Gaussians: one on each sparse point, or scattered ones."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import KDTree
from torch import Tensor

from splatcert.config import TrainConfig
from splatcert.errors import InputError
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import rgb_to_constant

NEIGHBOURS = 3
FIRST_OPACITY = 0.1
JITTER = 0.1
"""Jitter as a share of a Gaussian's initial size, which makes members of an ensemble differ."""


class CaptureError(InputError):
    """A capture that cannot be trained on."""


def check_capture(scene: Scene) -> None:
    """Refuse early what would fail later."""
    views = len(scene.training)
    if views < 2:
        raise CaptureError(
            f"{scene.path}: {views} training photograph(s); at least 2 are required.\n"
            "  Add photographs, or hold out fewer of them."
        )
    centres = np.stack([camera.centre for camera in scene.training.cameras])
    if np.ptp(centres, axis=0).max() <= 1e-6 * max(1.0, float(np.abs(centres).max())):
        raise CaptureError(
            f"{scene.path}: all {views} training cameras are at one place.\n"
            "  Depth cannot be learned without parallax; check the poses, or photograph\n"
            "  from several places."
        )


def _starting_points(
    scene: Scene, config: TrainConfig, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Positions, colours in [0, 1], and a note on where they come from."""
    points = scene.points
    if points is not None and len(points.xyz):
        colours = np.asarray(points.rgb, dtype=np.float64) / 255
        return (
            np.asarray(points.xyz, dtype=np.float64),
            colours,
            f"{len(points.xyz):,} sparse points",
        )
    centres = np.stack([camera.centre for camera in scene.training.cameras])
    middle, reach = centres.mean(axis=0), 3 * max(scene.extent, 1e-6)
    xyz = middle + rng.uniform(-reach, reach, (config.random_points, 3))
    note = f"{config.random_points:,} random points, because the scene has no sparse ones"
    return xyz, rng.uniform(0, 1, xyz.shape), note


def initial_splats(scene: Scene, config: TrainConfig) -> tuple[Splats, str]:
    """The initial splats, and a note on where they come from."""
    rng = np.random.Generator(np.random.PCG64([config.seed, 0]))
    xyz, rgb, note = _starting_points(scene, config, rng)
    if len(xyz) > config.max_gaussians:
        chosen = np.sort(rng.choice(len(xyz), config.max_gaussians, replace=False))
        xyz, rgb = xyz[chosen], rgb[chosen]
        note += f", {config.max_gaussians:,} of them kept"
    count = len(xyz)
    sizes = _spacings(xyz, scene.extent)
    xyz = xyz + JITTER * sizes[:, None] * rng.standard_normal((count, 3))
    sh = torch.zeros(count, (config.sh_degree + 1) ** 2, 3)
    sh[:, 0] = rgb_to_constant(torch.from_numpy(rgb).float())
    quats = torch.zeros(count, 4)
    quats[:, 0] = 1
    splats = Splats(
        means=_float(xyz),
        quats=quats,
        log_scales=_float(np.log(sizes)[:, None].repeat(3, axis=1)),
        logit_opacities=torch.full((count,), FIRST_OPACITY).logit(),
        sh=sh,
        antialiased=config.antialiased,
    )
    return splats, note


def _spacings(xyz: NDArray[np.float64], extent: float) -> NDArray[np.float64]:
    """Root mean square distance to the three nearest neighbours, [N], never zero."""
    if len(xyz) == 1:
        return np.array([0.1 * max(extent, 1e-6)])
    near = min(NEIGHBOURS, len(xyz) - 1)
    distances, _ = KDTree(xyz).query(xyz, k=near + 1)
    spacing = np.sqrt((distances[:, 1:] ** 2).mean(axis=1))
    return np.maximum(spacing, 1e-7 * max(extent, 1e-6))


def _float(values: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).float()
