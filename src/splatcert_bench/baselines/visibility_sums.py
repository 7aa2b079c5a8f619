# SPDX-License-Identifier: Apache-2.0
"""Per-Gaussian visibility summed over the training views, as GAVIS needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster.render import Backend, open_view
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import basis_towards

DEGREE = 2
"""Degree of the directional basis, as published."""


@dataclass(frozen=True, eq=False)
class VisibilitySums:
    """Sums over training views."""

    moments: Tensor
    """Sums of T phi(d), with d from the Gaussian to the camera, float64 [N, 9]."""
    views: int
    """Number of training views."""


def footprint_transmittance(splats: Splats, camera: Camera, backend: Backend = "cpu") -> Tensor:
    """Mean transmittance of each Gaussian over its footprint; 0 where it is not visible, [N].

    On a GPU the CPU renderer computes both sums, because gsplat has no sum of alphas.
    """
    view = open_view(splats, camera, "cpu" if backend == "cuda" else backend)
    ones = torch.ones(camera.height, camera.width, 1, dtype=splats.means.dtype)
    weights, alphas = view.scatter(ones)[:, 0], view.footprint()
    shown = alphas > 0
    return torch.where(shown, weights / torch.where(shown, alphas, 1), 0).clamp(0, 1)


def add_up_visibility(
    splats: Splats, cameras: Sequence[Camera], backend: Backend = "cpu"
) -> VisibilitySums:
    """Sweep over the training cameras once, without their photos."""
    bases = (DEGREE + 1) ** 2
    moments = torch.zeros(len(splats), bases, dtype=torch.float64)
    for camera in cameras:
        free = footprint_transmittance(splats, camera, backend)
        moments += (free[:, None] * basis_towards(splats.means, camera, bases)).double()
    return VisibilitySums(moments, len(cameras))
