# SPDX-License-Identifier: Apache-2.0
"""Forward and backward pass of one photograph; native kernels fill every array."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from splatcert import _native
from splatcert.camera import Camera
from splatcert.raster import native
from splatcert.training.density import DensityStats
from splatcert.training.table import GaussianTable


@dataclass(frozen=True)
class ViewFit:
    """How well the render fits a photograph; gradients are in the table."""

    loss: float
    squared_error: float
    drawn: Tensor
    """Which Gaussians the view draws, uint8 [N]."""


def fit_view(
    table: GaussianTable,
    camera: Camera,
    target: Tensor,
    *,
    mask: Tensor | None,
    degree: int,
    background: tuple[float, float, float],
    ssim_weight: float,
    stats: DensityStats | None,
) -> ViewFit:
    """Render, compare, and leave the gradients of all parameters in the table.

    Gradients of the harmonics are added to the existing ones, because harmonics are updated
    less often; all others are overwritten. Sums of density control, if given, are added to.
    """
    count, values, grads = len(table), table.values, table.grads
    means, quats, log_scales = values["means"], values["quats"], values["log_scales"]
    logits, sh = values["logit_opacities"], values["sh"]
    prepared = native.prepare(means, quats, log_scales, logits, camera, table.antialiased)
    # The background enters by linearity: sum w c + (1 - sum w) b = b + sum w (c - b).
    backdrop = torch.tensor(background) if any(background) else None
    colours = _native.empty([count, 3])
    prepared.shade(means, sh, degree, colours)
    if backdrop is not None:
        colours -= backdrop
    picture = _native.empty([camera.height, camera.width, 3])
    prepared.composite(colours, picture)
    shown = picture if backdrop is None else picture + backdrop

    pull = _native.empty([camera.height, camera.width, 3])
    flags = None if mask is None else mask.to(torch.uint8).contiguous()
    l1, ssim = _native.loss(shown, target, 1 - ssim_weight, ssim_weight, flags, False, pull)

    grad_colours, means2d = _native.empty([count, 3]), _native.empty([count, 2])
    absolute = _native.empty([count, 2]) if stats is not None else None
    prepared.backward(
        means,
        quats,
        log_scales,
        logits,
        colours,
        picture,
        pull,
        grad_colours,
        grads["means"],
        grads["quats"],
        grads["log_scales"],
        grads["logit_opacities"],
        means2d,
        absolute,
    )
    prepared.shade_backward(means, sh, degree, grad_colours, True, grads["means"], grads["sh"])
    drawn = torch.zeros(count, dtype=torch.uint8)
    drawn[torch.from_numpy(prepared.drawn())] = 1
    if stats is not None and absolute is not None:
        stats.add(prepared, means2d, absolute)
    return ViewFit(
        loss=(1 - ssim_weight) * l1 + ssim_weight * (1 - ssim),
        squared_error=float((shown - target).square_().mean()),
        drawn=drawn,
    )
