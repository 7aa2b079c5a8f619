# SPDX-License-Identifier: Apache-2.0
"""Where no Gaussian can be, and how large it can be, known from the cameras alone.

Both faults are invisible in training photographs and can ruin a new view: a Gaussian in the free
space between cameras, which fills the picture of a camera beside it, and a huge one far
away, whose projection spreads over views that look past it.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.spatial import KDTree

from splatcert.scene.scene import Scene
from splatcert.training.table import GaussianTable

LARGEST = 0.3
"""Largest standard deviation, as a share of the distance from the middle of the cameras."""
FREE_SPACINGS, FREE_DEPTH = 2.0, 0.3
"""Radius of the free space around a camera: distances to the next camera, but at most this share
of the distance to the nearest sparse points."""
NEAREST_POINTS = 10
"""The nearest sparse points may be outliers; distances are to this one."""


class Limits:
    """Limits of one capture."""

    def __init__(self, scene: Scene) -> None:
        centres = np.stack([camera.centre for camera in scene.training.cameras])
        self.extent = scene.extent
        self.middle = torch.from_numpy(centres.mean(axis=0)).float()
        self.cameras = KDTree(centres)
        points = scene.points
        self.free = np.zeros(len(centres))
        if points is not None and len(points.xyz) >= NEAREST_POINTS:
            spacing = self.cameras.query(centres, k=2)[0][:, 1]
            depth = KDTree(points.xyz).query(centres, k=NEAREST_POINTS)[0][:, -1]
            self.free = np.minimum(FREE_SPACINGS * spacing, FREE_DEPTH * depth)

    def shrink(self, table: GaussianTable) -> None:
        """Shrink what is too large for its distance."""
        distance = (table.values["means"] - self.middle).norm(dim=1, keepdim=True)
        largest = LARGEST * distance.clamp_(min=self.extent)
        torch.minimum(table.values["log_scales"], largest.log_(), out=table.values["log_scales"])

    def allowed(self, table: GaussianTable) -> torch.Tensor:
        """Which Gaussians are outside the free space around cameras, bool [N]."""
        places, farthest = table.values["means"].numpy(), self.free.max()
        distance, nearest = self.cameras.query(places, distance_upper_bound=farthest)
        return torch.from_numpy(distance >= np.append(self.free, 0.0)[nearest])
