# SPDX-License-Identifier: Apache-2.0
"""A capture small enough for dense matrices: every weight of every view can be listed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import pi

import numpy as np
import torch
from torch import Tensor

from splatcert.raster.reference import ReferenceView
from splatcert.raster.render import render
from splatcert.scene.roles import TrainingView
from splatcert.scene.scene import scene_from_tensors
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import SH_CONSTANT, basis
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

WIDTH, HEIGHT = 34, 22


@dataclass(frozen=True, eq=False)
class TinyCapture:
    """Splats that are a little wrong, and photographs of the right ones."""

    splats: Splats
    training: tuple[TrainingView, ...]

    @property
    def names(self) -> list[str]:
        return [view.name for view in self.training]


def tiny_capture(count: int = 130, views: int = 7, *, masked: bool = False) -> TinyCapture:
    """One Gaussian of it lies behind every camera; every second view may have a mask."""
    generator = torch.Generator().manual_seed(1)
    truth = made_splats(count, sh_degree=1)
    # So few Gaussians are so large that each lies under dozens of others, and coefficients
    # are then hardly determined. Made smaller, they overlap as those of trained models do.
    truth = replace(truth, log_scales=truth.log_scales - 1.0)
    cameras = made_cameras(views, WIDTH, HEIGHT, turn=140)
    names = [f"{k:02d}.png" for k in range(views)]
    noise = 0.05 * torch.randn(views, HEIGHT, WIDTH, 3, generator=generator)
    photos = {
        name: (render(truth, camera).rgb + noise[k]).clamp(0, 1)
        for k, (name, camera) in enumerate(zip(names, cameras, strict=True))
    }
    masks = {n: torch.rand(HEIGHT, WIDTH, generator=generator) > 0.3 for n in names[::2]}
    scene = scene_from_tensors(
        dict(zip(names, cameras, strict=True)), photos, masks=masks if masked else None
    )
    means = truth.means + 0.02 * torch.randn(count, 3, generator=generator)
    means[0] = torch.tensor([0.0, 0.0, 500.0])
    return TinyCapture(replace(truth, means=means), tuple(scene.training))


@dataclass(frozen=True, eq=False)
class DenseView:
    """One training view with its weights as a matrix, all in float64."""

    weights: Tensor
    """w, [P, N]."""
    d: Tensor
    """Unit directions from Gaussians to the camera, [N, 3]."""
    residual: Tensor
    """Maximum over channels of the absolute error, zero where the mask leaves out, [P]."""
    counted: Tensor
    """1 where a pixel counts, [P]."""
    squared_error: float
    """Mean over counted pixels and channels."""

    def matrix(self, degree: int) -> Tensor:
        """A_t over counted pixels, [P, N K]."""
        phi = basis(self.d, degree)
        full = (self.counted[:, None] * self.weights)[:, :, None] * phi
        return full.reshape(len(self.weights), -1)


def dense_view(splats: Splats, view: TrainingView, background=(0.0, 0.0, 0.0)) -> DenseView:
    """By listing all weights of the reference renderer."""
    exact = splats.to(torch.float64)
    reference = ReferenceView(exact, view.camera)
    weights = torch.zeros(HEIGHT * WIDTH, len(splats), dtype=torch.float64)
    weights[:, reference.order] = reference.footprints.weights(reference.pixels())
    shown = weights @ reference.colours()
    shown += (1 - weights.sum(1, keepdim=True)) * shown.new_tensor(background)
    error = (shown.clamp(0, 1) - view.image().reshape(-1, 3)).abs()
    counted = view.mask().reshape(-1).double()
    apart = torch.from_numpy(np.asarray(view.camera.centre)) - exact.means
    return DenseView(
        weights,
        apart / apart.norm(dim=1, keepdim=True),
        error.amax(1) * counted,
        counted,
        float((error**2).mean(1) @ counted / counted.sum()),
    )


def dense_fit(views: list[DenseView], degree: int, ridge: float, prior: float):
    """The minimiser of eq:spatial-fit and tau, from the normal equations."""
    count, bases = views[0].weights.shape[1], (degree + 1) ** 2
    squares = sum((v.counted[:, None] * v.weights**2).sum(0) for v in views)
    tau = ridge * float(squares[squares > 0].mean()) / (4 * pi)
    start = torch.zeros(count, bases, dtype=torch.float64)
    start[:, 0] = prior / SH_CONSTANT
    normal = tau * torch.eye(count * bases, dtype=torch.float64)
    rhs = tau * start.reshape(-1)
    for view in views:
        A = view.matrix(degree)
        normal += A.T @ A
        rhs += A.T @ view.residual
    return torch.linalg.solve(normal, rhs).reshape(count, bases), tau
