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
from splatcert.camera import Camera
from splatcert.raster.view import Contributors
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


def field_values(view: NativeView, coefficients: Tensor) -> Tensor:
    """The field c . phi(d) of each drawn Gaussian, [N, K] to [N]; zero where it is not drawn."""
    values = _native.empty([len(coefficients)])
    _native.field_values(view._prepared, _means(view), plain_floats(coefficients), values)
    return values


def add_field_normal(
    view: NativeView, coefficients: Tensor, mask: Tensor | None, result: Tensor
) -> None:
    """Add the normal operator's image of the coefficients to `result`, both [N, K]."""
    _native.field_normal(
        view._prepared, _means(view), plain_floats(coefficients), _bytes(mask), result
    )


def add_survey(
    view: NativeView,
    photo: Tensor,
    mask: Tensor | None,
    background: tuple[float, float, float],
    *,
    support: Tensor,
    moments: Tensor,
    blocks: Tensor,
    squares: Tensor,
    energy: Tensor,
    histogram: Tensor,
) -> None:
    """Render, compare with the photo [H, W, 3], and add this view's share to six arrays.

    `field.survey.Sums` describes them. All of it shares one evaluation of the weights.
    """
    _native.survey(
        view._prepared,
        _means(view),
        view.colours(),
        plain_floats(photo),
        background,
        _bytes(mask),
        support,
        moments,
        blocks,
        squares,
        energy,
        histogram,
    )


def _means(view: NativeView) -> Tensor:
    return plain_floats(view._splats.means)


def _bytes(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.to(torch.uint8).contiguous()


CHANNELS, MAPS = 10, 5


@dataclass(frozen=True, eq=False)
class Rendered:
    """What one sweep makes of a camera."""

    center: Tensor
    """Picture on the background, clamped to [0, 1], [H, W, 3]."""
    field: Tensor
    """Residual field, not below its floor, [H, W]."""
    maps: Tensor
    """Opacity, luminance, log exposure, support angle, spread, [5, H, W]."""
    moments: list[float]
    """Mean and deviation of depth, means of field and residual summary."""


def pack_query(view: NativeView, traits: Tensor) -> Tensor:
    """The values that `render_query` composites, [N, 10]; zero where a Gaussian is not drawn."""
    values = _native.empty([len(traits), CHANNELS])
    splats = view._splats
    _native.pack_query(
        view._prepared,
        plain_floats(splats.means),
        plain_floats(splats.sh),
        plain_floats(traits),
        values,
    )
    return values


def render_query(
    view: NativeView,
    traits: Tensor,
    background: tuple[float, float, float],
    field_floor: float,
) -> Rendered:
    """All ten channels of a query, composited together and finished tile by tile."""
    height, width = view.camera.height, view.camera.width
    center, field = _native.empty([height, width, 3]), _native.empty([height, width])
    maps = _native.empty([MAPS, height, width])
    splats = view._splats
    moments = _native.render_query(
        view._prepared,
        plain_floats(splats.means),
        plain_floats(splats.sh),
        plain_floats(traits),
        background,
        field_floor,
        center,
        field,
        maps,
    )
    return Rendered(center, field, maps, moments)


def summarise_maps(maps: Tensor) -> list[float]:
    """Mean, 10th and 50th percentile of each map, of the luminance those of its slope."""
    return _native.summarise_maps(maps)
