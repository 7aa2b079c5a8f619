# SPDX-License-Identifier: Apache-2.0
"""Gradients of the native renderer for torch: composite, colours and depths."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from splatcert import _native
from splatcert.camera import Camera
from splatcert.splats.gaussians import Splats


def plain_floats(tensor: Tensor) -> Tensor:
    """A detached, contiguous float32 CPU tensor, as the kernels take it."""
    return _on_cpu(tensor.detach()).contiguous()


def _on_cpu(tensor: Tensor) -> Tensor:
    """A float32 CPU tensor; autograd casts its gradient back to the original type and device."""
    return tensor.to(device="cpu", dtype=torch.float32)


def tracked(*tensors: Tensor) -> bool:
    """Whether autograd records what is computed from these tensors."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


@dataclass(eq=False)
class ScreenGradients:
    """Gradients in the image plane, in pixels; `backward` fills them for density control."""

    means2d: Tensor | None = None
    """[N, 2]."""
    absolute: Tensor | None = None
    """[N, 2], absolute values summed over pixels; filled if `want_absolute`."""
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
    @once_differentiable
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
    @once_differentiable
    def backward(ctx, grad_colours):  # type: ignore[override]
        """Through the clamp, the harmonics and the viewing direction."""
        means, sh = ctx.saved_tensors
        grad_means, grad_sh = _native.empty(list(means.shape)), _native.empty(list(sh.shape))
        ctx.prepared.shade_backward(
            means, sh, ctx.degree, plain_floats(grad_colours), False, grad_means, grad_sh
        )
        return None, grad_means, grad_sh, None


class _Depths(torch.autograd.Function):
    """Camera z of drawn Gaussians, differentiable in means."""

    @staticmethod
    def forward(ctx, means, depths, forward):  # type: ignore[override]
        """Pass on the depths that the view was prepared with."""
        ctx.save_for_backward(depths, forward)
        return depths.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_depths):  # type: ignore[override]
        """Along the optical axis; a Gaussian that is not drawn has depth zero."""
        depths, forward = ctx.saved_tensors
        return (grad_depths * (depths > 0))[:, None] * forward, None, None


def composite(
    prepared: _native.PreparedView,
    splats: Splats,
    camera: Camera,
    values: Tensor,
    screen: ScreenGradients | None = None,
) -> Tensor:
    """Composite with gradients to the geometry of the splats and to the values, [H, W, D]."""
    geometry = (splats.means, splats.quats, splats.log_scales, splats.logit_opacities)
    inputs = [_on_cpu(tensor) for tensor in (*geometry, values)]
    return _Composite.apply(prepared, screen, *inputs, camera.height, camera.width)  # type: ignore[return-value]


def colours(prepared: _native.PreparedView, splats: Splats, degree: int) -> Tensor:
    """Colours towards the camera with gradients to means and harmonics, [N, 3]."""
    return _Shade.apply(prepared, _on_cpu(splats.means), _on_cpu(splats.sh), degree)  # type: ignore[return-value]


def depths(splats: Splats, camera: Camera, found: Tensor) -> Tensor:
    """The depths `found` by the kernel, [N], with gradients to the means."""
    forward = torch.from_numpy(camera.forward).to(found)
    return _Depths.apply(_on_cpu(splats.means), found, forward)  # type: ignore[return-value]
