# SPDX-License-Identifier: Apache-2.0
"""The `cpu` back end: C++ kernels behind the View protocol, and their autograd.

Splats are float32 on the CPU. Geometry is projected in float64, pixels are blended in
float32, and results have the same bits for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from splatcert import __version__, _native
from splatcert.raster.interface import Contributors
from splatcert.scene.cameras import Camera
from splatcert.splats.gaussians import Splats

MOST_THREADS = 1 << 16
"""Beyond it a number is a slip of the pen; the pool itself stops earlier."""


def threads() -> int:
    """How many threads a kernel may use."""
    return _native.threads()


def set_threads(count: int) -> None:
    """Use this many threads; 0 restores the default (SPLATCERT_NUM_THREADS or all cores)."""
    _native.set_threads(min(count, MOST_THREADS))


def isa() -> str:
    """Instruction set in use."""
    return _native.isa()


def available_isas() -> list[str]:
    """Instruction sets this machine can run, best first."""
    return _native.available_isas()


def set_isa(name: str) -> None:
    """Choose an instruction set; views prepared earlier stay valid."""
    _native.set_isa(name)


def renderer_identity() -> dict[str, object]:
    """What a certificate records about this renderer."""
    return {
        "name": "splatcert-cpu",
        "version": __version__,
        "constants": _native.constants(),
    }


def plain_floats(tensor: Tensor) -> Tensor:
    """A detached, contiguous float32 CPU tensor, as the kernels take it."""
    return tensor.detach().to(device="cpu", dtype=torch.float32).contiguous()


def prepare(
    means: Tensor,
    quats: Tensor,
    log_scales: Tensor,
    logit_opacities: Tensor,
    camera: Camera,
    antialiased: bool = False,
) -> _native.PreparedView:
    """Project, cull and sort once; the result serves any number of passes."""
    return _native.PreparedView(
        plain_floats(means),
        plain_floats(quats),
        plain_floats(log_scales),
        plain_floats(logit_opacities),
        camera.world_to_camera.copy(),  # the binding takes no read-only array
        camera.fx,
        camera.fy,
        camera.cx,
        camera.cy,
        camera.width,
        camera.height,
        antialiased,
    )


class NativeView:
    """Splats seen from one camera by the native renderer."""

    def __init__(self, splats: Splats, camera: Camera) -> None:
        self.camera = camera
        self._splats = splats
        self._prepared = prepare(
            splats.means,
            splats.quats,
            splats.log_scales,
            splats.logit_opacities,
            camera,
            splats.antialiased,
        )

    @property
    def nbytes(self) -> int:
        """Memory that keeping this view prepared costs."""
        return self._prepared.bytes

    def composite(self, values: Tensor) -> Tensor:
        """A: [N, D] to [H, W, D]."""
        values = plain_floats(values)
        image = _native.empty([self.camera.height, self.camera.width, values.shape[1]])
        self._prepared.composite(values, image)
        return image

    def scatter(self, image: Tensor) -> Tensor:
        """A transposed: [H, W, D] to [N, D]."""
        image = plain_floats(image)
        values = _native.empty([len(self._splats), image.shape[2]])
        self._prepared.scatter(image, values)
        return values

    def normal(self, values: Tensor) -> Tensor:
        """A transposed times A: [N, D] to [N, D]."""
        values = plain_floats(values)
        result = _native.empty(list(values.shape))
        self._prepared.normal(values, result)
        return result

    def colours(self) -> Tensor:
        """Colour of each drawn Gaussian towards this camera, [N, 3]."""
        colours = _native.empty([len(self._splats), 3])
        means, sh = plain_floats(self._splats.means), plain_floats(self._splats.sh)
        self._prepared.shade(means, sh, self._splats.sh_degree, colours)
        return colours

    def depths(self) -> Tensor:
        """Camera z of each drawn Gaussian, [N]."""
        depths = _native.empty([len(self._splats)])
        self._prepared.depths(depths)
        return depths

    def count(self, mask: Tensor) -> Tensor:
        """Pixels of a bool mask [H, W] that each Gaussian contributes to, [N]."""
        counts = _native.empty([len(self._splats)])
        self._prepared.count(mask.to(torch.uint8).contiguous(), counts)
        return counts

    def footprint(self) -> Tensor:
        """Sum of alpha over a Gaussian's pixels, with nothing before it, [N]."""
        sums = _native.empty([len(self._splats)])
        self._prepared.footprint(sums)
        return sums

    def contributors(self, pixels: Tensor) -> Contributors:
        """Weights behind chosen pixels, [P, 2] as (row, column)."""
        if pixels.is_floating_point() or pixels.ndim != 2:
            raise ValueError("pixels must be whole numbers [P, 2], as (row, column)")
        within = pixels.clamp(-1, 2**31 - 1)  # a larger number would wrap into the image
        found = self._prepared.contributors(within.to(torch.int32).contiguous())
        offsets, gaussians, weights = (torch.from_numpy(array) for array in found)
        return Contributors(offsets=offsets, gaussians=gaussians, weights=weights)


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
