# SPDX-License-Identifier: Apache-2.0
"""Per-Gaussian visibility summed over the training views, as GAVIS needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.field.operator import harmonics
from splatcert.raster.native import NativeView
from splatcert.raster.reference import ReferenceView
from splatcert.raster.render import Backend
from splatcert.splats.gaussians import Splats

DEGREE = 2
"""Of the directional basis, as published."""


@dataclass(frozen=True, eq=False)
class VisibilitySums:
    """Sums over training views."""

    moments: Tensor
    """Of T phi(d), with d from the Gaussian to the camera, float64 [N, 9]."""
    views: int
    """How many training views there are."""


def footprint_transmittance(splats: Splats, camera: Camera, backend: Backend = "cpu") -> Tensor:
    """Transmittance of each Gaussian averaged over its footprint; 0 where it shows nowhere, [N].

    GPUs use the CPU's renderer here: gsplat has no sum of alphas.
    """
    opener = ReferenceView if backend == "reference" else NativeView
    view = opener(splats, camera)
    ones = torch.ones(camera.height, camera.width, 1, dtype=splats.means.dtype)
    weights, alphas = view.scatter(ones)[:, 0], view.footprint()
    shown = alphas > 0
    return torch.where(shown, weights / torch.where(shown, alphas, 1), 0).clamp(0, 1)


def add_up_visibility(
    splats: Splats, cameras: Sequence[Camera], backend: Backend = "cpu"
) -> VisibilitySums:
    """One sweep over the training cameras; photos are not looked at."""
    bases = (DEGREE + 1) ** 2
    moments = torch.zeros(len(splats), bases, dtype=torch.float64)
    for camera in cameras:
        free = footprint_transmittance(splats, camera, backend)
        moments += (free[:, None] * harmonics(splats.means, camera, bases)).double()
    return VisibilitySums(moments, len(cameras))
