# SPDX-License-Identifier: Apache-2.0
"""The `cpu` back end: every method of a view in C++.

Splats are float32 on the CPU. Geometry is projected in float64, pixels are blended in
float32, and results have the same bits for any number of threads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from splatcert import _native
from splatcert.camera import Camera
from splatcert.raster import native_autograd
from splatcert.raster.native_autograd import ScreenGradients, plain_floats, tracked
from splatcert.raster.normal_sums import NormalSums, Rgb
from splatcert.raster.query_maps import CHANNELS, MAPS, QueryMaps, Traits
from splatcert.raster.view import RENDERER_VERSION, Contributors, View
from splatcert.splats.gaussians import Splats
from splatcert.storage.memory import (
    BYTES_PER_ENTRY,
    BYTES_PER_PIXEL,
    memory_limit,
    require_memory,
)

MOST_THREADS = 1 << 16
"""Larger numbers would overflow the binding; the pool has a lower limit of its own."""


def threads() -> int:
    """Number of threads that a kernel may use."""
    return _native.threads()


def set_threads(count: int) -> None:
    """Use this many threads; 0 restores the default (SPLATCERT_NUM_THREADS or all cores)."""
    _native.set_threads(min(count, MOST_THREADS))


def isa() -> str:
    """Instruction set in use."""
    return _native.isa()


def available_isas() -> list[str]:
    """Instruction sets that this machine supports, best first."""
    return _native.available_isas()


def set_isa(name: str) -> None:
    """Choose an instruction set; views prepared earlier stay valid."""
    _native.set_isa(name)


def renderer_identity() -> dict[str, object]:
    """What a certificate records about this renderer."""
    return {
        "name": "splatcert-cpu",
        "version": RENDERER_VERSION,
        "constants": _native.constants(),
    }


def prepare(
    means: Tensor,
    quats: Tensor,
    log_scales: Tensor,
    logit_opacities: Tensor,
    camera: Camera,
    antialiased: bool = False,
) -> _native.PreparedView:
    """Project, cull and sort once; the result serves any number of passes.

    What it takes is counted first: a small file can hold Gaussians that reach every tile.
    """
    what = f"a view of {camera.width} x {camera.height} pixels"
    pixels = BYTES_PER_PIXEL * camera.width * camera.height
    require_memory(pixels, what)
    room = (memory_limit() - pixels) // BYTES_PER_ENTRY
    means, quats = plain_floats(means), plain_floats(quats)
    widths, opacities = plain_floats(log_scales), plain_floats(logit_opacities)
    pose = camera.world_to_camera.copy()  # the binding takes no read-only array
    grid = camera.fx, camera.fy, camera.cx, camera.cy, camera.width, camera.height
    try:
        return _native.PreparedView(means, quats, widths, opacities, pose, *grid, antialiased, room)
    except _native.TooManyEntries as error:
        entries = int(str(error))
        why = f", because {len(means):,} Gaussians are in up to {entries:,} tiles, counted together"
        require_memory(pixels + BYTES_PER_ENTRY * entries, what, why)
        raise


class NativeView(View):
    """Splats seen from one camera by the native renderer.

    `composite`, `picture`, `colours` and `depths` are differentiable; the other methods are not.
    """

    def __init__(self, splats: Splats, camera: Camera) -> None:
        self.camera = camera
        self.splats = splats
        self._prepared = prepare(*self._geometry, camera, splats.antialiased)

    @property
    def nbytes(self) -> int:
        """Memory used by this prepared view."""
        return self._prepared.bytes

    def composite(self, values: Tensor) -> Tensor:
        """A: [N, D] to [H, W, D]."""
        if tracked(values, *self._geometry):
            return native_autograd.composite(self._prepared, self.splats, self.camera, values)
        values = plain_floats(values)
        image = _native.empty([self.camera.height, self.camera.width, values.shape[1]])
        self._prepared.composite(values, image)
        return image

    def scatter(self, image: Tensor) -> Tensor:
        """A transposed: [H, W, D] to [N, D]."""
        image = plain_floats(image)
        values = _native.empty([len(self.splats), image.shape[2]])
        self._prepared.scatter(image, values)
        return values

    def normal(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """A^T M A: [N, D] to [N, D]."""
        values = plain_floats(values)
        if mask is not None:
            with torch.no_grad():
                return super().normal(values, mask)
        result = _native.empty(list(values.shape))
        self._prepared.normal(values, result)
        return result

    def colours(self) -> Tensor:
        """Colour of each drawn Gaussian towards this camera, [N, 3]."""
        splats = self.splats
        if tracked(splats.means, splats.sh):
            return native_autograd.colours(self._prepared, splats, splats.sh_degree)
        colours = _native.empty([len(splats), 3])
        self._prepared.shade(*self._seen[1:], splats.sh_degree, colours)
        return colours

    def depths(self) -> Tensor:
        """Camera z of each drawn Gaussian, [N]."""
        depths = _native.empty([len(self.splats)])
        self._prepared.depths(depths)
        if tracked(self.splats.means):
            return native_autograd.depths(self.splats, self.camera, depths)
        return depths

    def count(self, mask: Tensor) -> Tensor:
        """Pixels of a bool mask [H, W] that each Gaussian contributes to, [N]."""
        counts = _native.empty([len(self.splats)])
        self._prepared.count(mask.to(torch.uint8).contiguous(), counts)
        return counts

    def footprint(self) -> Tensor:
        """Sum of alpha over the pixels of each Gaussian, ignoring occlusion, [N]."""
        sums = _native.empty([len(self.splats)])
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

    def field_values(self, coefficients: Tensor) -> Tensor:
        """Value of a field towards this camera, [N, K] to [N]; zero where it is not drawn."""
        values = _native.empty([len(coefficients)])
        _native.field_values(self._prepared, self._means, plain_floats(coefficients), values)
        return values

    def field_normal(self, coefficients: Tensor, mask: Tensor | None, result: Tensor) -> None:
        """Add A^T M A C to `result`, float64 [N, K], with one evaluation of the weights."""
        _native.field_normal(
            self._prepared, self._means, plain_floats(coefficients), _bytes(mask), result
        )

    def pack(self, traits: Traits) -> Tensor:
        """The table that a query composites, [N, 10]; zero where a Gaussian is not drawn."""
        values = _native.empty([len(self.splats), len(CHANNELS)])
        table = plain_floats(traits.table)
        _native.pack_query(*self._seen, table, values)
        return values

    def picture(self, background: Rgb) -> tuple[Tensor, Tensor, Tensor]:
        """Colour, opacity and depth, finished tile by tile."""
        if tracked(self.splats.sh, *self._geometry):
            return super().picture(background)
        size = [self.camera.height, self.camera.width]
        rgb, alpha, depth = _native.empty([*size, 3]), _native.empty(size), _native.empty(size)
        _native.render_picture(*self._seen, background, rgb, alpha, depth)
        return rgb, alpha, depth

    def query(self, traits: Traits, background: Rgb, floor: float) -> QueryMaps:
        """Picture, residual field and maps, composited together and finished tile by tile."""
        height, width = self.camera.height, self.camera.width
        center, field = _native.empty([height, width, 3]), _native.empty([height, width])
        maps = _native.empty([len(MAPS), height, width])
        depth = _native.empty([height, width])
        table, images = plain_floats(traits.table), (center, field, maps, depth)
        moments = _native.render_query(*self._seen, table, background, floor, *images)
        return QueryMaps(center, field, maps, depth, moments, _native.summarise_maps(maps))

    def survey(self, photo: Tensor, mask: Tensor | None, background: Rgb, sums: NormalSums) -> None:
        """Render, compare and add this view's share, with one evaluation of the weights."""
        with torch.no_grad():
            colours = self.colours()
        seen = plain_floats(photo), background, _bytes(mask)
        shares = sums.support, sums.moments, sums.blocks, sums.squares, sums.energy, sums.histogram
        _native.survey(self._prepared, self._means, colours, *seen, *shares)

    @property
    def _geometry(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        splats = self.splats
        return splats.means, splats.quats, splats.log_scales, splats.logit_opacities

    @property
    def _means(self) -> Tensor:
        return plain_floats(self.splats.means)

    @property
    def _seen(self) -> tuple[_native.PreparedView, Tensor, Tensor]:
        return self._prepared, self._means, plain_floats(self.splats.sh)


def _bytes(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.to(torch.uint8).contiguous()


def render_differentiable(
    splats: Splats,
    camera: Camera,
    *,
    background: Tensor | None = None,
    sh_degree: int | None = None,
    screen: ScreenGradients | None = None,
) -> Tensor:
    """Colour image [H, W, 3] with gradients to every parameter, and those of density control.

    The background enters by linearity: sum w c + (1 - sum w) b = b + sum w (c - b),
    so it needs no term of its own in the adjoint.
    """
    prepared = NativeView(splats, camera)._prepared
    degree = splats.sh_degree if sh_degree is None else sh_degree
    colours = native_autograd.colours(prepared, splats, degree)
    if background is not None:
        colours = colours - background
    image = native_autograd.composite(prepared, splats, camera, colours, screen)
    return image if background is None else image + background
