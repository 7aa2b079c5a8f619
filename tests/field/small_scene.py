# SPDX-License-Identifier: Apache-2.0
"""A handful of splats with a residual field and support, and their maps by brute force."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import torch

from splatcert.camera import Camera
from splatcert.difficulty.descriptor import CameraGeometry
from splatcert.field.fit import ResidualField
from splatcert.field.fitted_scene import FittedScene
from splatcert.field.support import Support
from splatcert.raster.reference import ReferenceView
from splatcert_bench.synthetic.scenes import made_cameras, random_splats

TRAINING = 9


def small_camera(width: int = 41, height: int = 30) -> Camera:
    camera = made_cameras(1, width, height)[0]
    return replace(camera, cx=camera.cx + 2.3, cy=camera.cy - 1.7, fy=1.1 * camera.fy)


def small_scene(
    seed: int = 0, count: int = 150, degree: int = 2, camera: Camera | None = None
) -> FittedScene:
    """Random splats, a random field, and a support in which some Gaussians are unseen."""
    generator = torch.Generator().manual_seed(seed)
    camera = small_camera() if camera is None else camera
    splats = random_splats(count, seed=seed, camera=camera, sh_degree=2)
    exposure = 30 * torch.rand(count, generator=generator)
    direction = torch.randn(count, 3, generator=generator)
    direction *= (exposure * torch.rand(count, generator=generator))[:, None] / direction.norm(
        dim=1, keepdim=True
    )
    error = exposure * 0.1 * torch.rand(count, generator=generator)
    for tensor in (exposure, direction, error):
        tensor[::17] = 0
    coefficients = 0.05 * torch.randn(count, (degree + 1) ** 2, generator=generator)
    coefficients[:, 0] += 0.3
    field = cast(ResidualField, SimpleNamespace(coefficients=coefficients))
    cameras = made_cameras(TRAINING, camera.width, camera.height)
    return FittedScene(
        splats=splats,
        field=field,
        support=Support(exposure, direction, error),
        geometry=CameraGeometry(cameras, extent=2.5),
    )


def weights_of(observed: FittedScene, camera: Camera) -> np.ndarray:
    """Rows of A for every pixel, [H W, N], in float64."""
    view = ReferenceView(observed.splats.to(torch.float64), camera)
    drawn = view.footprints.weights(view.pixels()).numpy()
    weights = np.zeros((len(drawn), len(observed.splats)))
    weights[:, view.order.numpy()] = drawn
    return weights


def rank(values: np.ndarray, percent: int) -> float:
    """The ceil(n percent / 100)-th smallest."""
    return float(np.sort(values, axis=None)[-(-values.size * percent // 100) - 1])
