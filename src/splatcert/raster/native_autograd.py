# SPDX-License-Identifier: Apache-2.0
"""Gradients of the native renderer, for torch: composite, colours, and the whole picture."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from splatcert import _native
from splatcert.camera import Camera
from splatcert.raster.native import plain_floats, prepare
from splatcert.splats.gaussians import Splats


@dataclass(eq=False)
class ScreenGradients:
    """Gradients in the image plane that density control reads after `backward`, in pixels."""

    means2d: Tensor | None = None
    """[N, 2]."""
    absolute: Tensor | None = None
    """[N, 2], absolute values summed over pixels; filled when `want_absolute`."""
    want_absolute: bool = False


class _Composite(torch.autograd.Function):
    """A(geometry) applied to values, differentiable in both."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx, prepared, screen, means, quats, log_scales, logit_opacities, values, height, width
    ):
        """Composite, keeping what the adjoint needs."""
        geometry = [plain_floats(t) for t in (means, quats, log_scales, logit_opacities)]
        values = plain_floats(values)
        image = _native.empty([height, width, values.shape[1]])
        prepared.composite(values, image)
        ctx.prepared, ctx.screen = prepared, screen
        ctx.save_for_backward(*geometry, values, image)
        return image

    @staticmethod
    def backward(ctx, grad_image):  # type: ignore[override]
        """Gradients of values and of all raw geometry in one sweep."""
        *geometry, values, image = ctx.saved_tensors
        grads = [_native.empty(list(t.shape)) for t in (values, *geometry)]
        means2d = _native.empty([len(values), 2])
        absolute = (
            _native.empty([len(values), 2]) if ctx.screen and ctx.screen.want_absolute else None
        )
        ctx.prepared.backward(
            *geometry, values, image, plain_floats(grad_image), *grads, means2d, absolute
        )
        if ctx.screen is not None:
            ctx.screen.means2d, ctx.screen.absolute = means2d, absolute
        grad_values, *grad_geometry = grads
        return None, None, *grad_geometry, grad_values, None, None


class _Shade(torch.autograd.Function):
    """Colours towards the camera, differentiable in means and harmonics."""

    @staticmethod
    def forward(ctx, prepared, means, sh, degree):  # type: ignore[override]
        """Evaluate max(0, SH + 0.5) for drawn Gaussians."""
        means, sh = plain_floats(means), plain_floats(sh)
        colours = _native.empty([len(means), 3])
        prepared.shade(means, sh, degree, colours)
        ctx.prepared, ctx.degree = prepared, degree
        ctx.save_for_backward(means, sh)
        return colours

    @staticmethod
    def backward(ctx, grad_colours):  # type: ignore[override]
        """Through the clamp, the harmonics and the viewing direction."""
        means, sh = ctx.saved_tensors
        grad_means, grad_sh = _native.empty(list(means.shape)), _native.empty(list(sh.shape))
        ctx.prepared.shade_backward(
            means, sh, ctx.degree, plain_floats(grad_colours), False, grad_means, grad_sh
        )
        return None, grad_means, grad_sh, None


def render_differentiable(
    splats: Splats,
    camera: Camera,
    *,
    background: Tensor | None = None,
    sh_degree: int | None = None,
    screen: ScreenGradients | None = None,
) -> Tensor:
    """Colour image [H, W, 3] with gradients to every parameter of the splats.

    The background enters by linearity: sum w c + (1 - sum w) b = b + sum w (c - b),
    so it needs no term of its own in the adjoint.
    """
    prepared = prepare(
        splats.means,
        splats.quats,
        splats.log_scales,
        splats.logit_opacities,
        camera,
        splats.antialiased,
    )
    degree = splats.sh_degree if sh_degree is None else sh_degree
    colours: Tensor = _Shade.apply(prepared, splats.means, splats.sh, degree)  # type: ignore[assignment]
    if background is not None:
        colours = colours - background
    image: Tensor = _Composite.apply(  # type: ignore[assignment]
        prepared,
        screen,
        splats.means,
        splats.quats,
        splats.log_scales,
        splats.logit_opacities,
        colours,
        camera.height,
        camera.width,
    )
    return image if background is None else image + background
