# SPDX-License-Identifier: Apache-2.0
"""One view of fixed splats as a linear operator: what every back end does, in plain torch.

A view is an operator A with entries w = alpha * T (eq:gs-render). `composite` applies it and
`scatter` its transpose. A back end implements the abstract methods and inherits the rest; it
overrides a default where it can share one evaluation of the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster.normal_sums import BINS, NormalSums, Rgb
from splatcert.raster.query_maps import LEAST_ALPHA, QueryMaps, Traits, finish, support_angle
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import basis, basis_towards, directions

RENDERER_VERSION = "0.1.0"
"""Changes only when pixels change: the release of splatcert that first rendered these."""
PIXELS_AT_ONCE = 4096
"""Pixels whose weights a default lists together."""


@dataclass(frozen=True, eq=False)
class Contributors:
    """The Gaussians behind chosen pixels, front to back, with their weights.

    Pixel k of the request owns entries `offsets[k]:offsets[k + 1]`.
    """

    offsets: Tensor
    """[P + 1] int64."""
    gaussians: Tensor
    """[M] int64, indices into the splats."""
    weights: Tensor
    """[M], w = alpha * T."""


class View(ABC):
    """Splats seen from one camera, prepared once for many passes."""

    camera: Camera
    splats: Splats

    @abstractmethod
    def composite(self, values: Tensor) -> Tensor:
        """A: one row of D values per Gaussian, [N, D], to an image [H, W, D].

        Differentiable with respect to the values and the geometry of the splats; on `gpu`, the
        values alone.
        """

    @abstractmethod
    def scatter(self, image: Tensor) -> Tensor:
        """A transposed: an image [H, W, D] to one row per Gaussian, [N, D]."""

    @abstractmethod
    def colours(self) -> Tensor:
        """Colour of each Gaussian towards this camera, [N, 3]; zero where it is not drawn."""

    @abstractmethod
    def depths(self) -> Tensor:
        """Camera z of each Gaussian, [N]; zero where it is not drawn."""

    @abstractmethod
    def contributors(self, pixels: Tensor) -> Contributors:
        """Weights behind chosen pixels, [P, 2] as (row, column)."""

    @property
    def nbytes(self) -> int:
        """Memory used by this prepared view; by default, one cache line per Gaussian."""
        return 64 * len(self.splats)

    def normal(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """A^T M A, [N, D] to [N, D], where M keeps the pixels of a bool mask [H, W]."""
        image = self.composite(values)
        return self.scatter(image if mask is None else image * mask[..., None].to(image))

    def count(self, mask: Tensor) -> Tensor:
        """Pixels of a bool mask [H, W] that each Gaussian contributes to, [N]."""
        counts = torch.zeros(len(self.splats))
        for found in self._listed(mask):
            counts += torch.bincount(found.gaussians.cpu(), minlength=len(counts))
        return counts

    def footprint(self) -> Tensor:
        """Sum of alpha over the pixels of each Gaussian, ignoring occlusion, [N].

        By default, the CPU renderer computes it.
        """
        from splatcert.raster.native import NativeView

        return NativeView(self.splats, self.camera).footprint()

    def field_values(self, coefficients: Tensor) -> Tensor:
        """Value of a field towards this camera, c . phi(d), [N, K] to [N]."""
        phi = basis_towards(self.splats.means, self.camera, coefficients.shape[1])
        return (coefficients.to(phi) * phi).sum(1)

    def field_normal(self, coefficients: Tensor, mask: Tensor | None, result: Tensor) -> None:
        """Add A^T M A C to `result`, float64 [N, K] on the CPU; A here includes phi."""
        phi = basis_towards(self.splats.means, self.camera, coefficients.shape[1])
        values = (coefficients.to(phi) * phi).sum(1, keepdim=True)
        result += (self.normal(values, mask).to(phi) * phi).to(result)

    def pack(self, traits: Traits) -> Tensor:
        """The table that a query composites, [N, 10], in the order of `query_maps.CHANNELS`."""
        depths = self.depths()
        columns = [
            torch.ones_like(depths),
            depths,
            traits.log_exposure,
            support_angle(traits.direction, self.splats.means, self.camera),
            traits.spread,
            self.field_values(traits.coefficients),
            traits.residual_summary,
        ]
        stacked = torch.stack([column.to(depths) for column in columns], dim=1)
        return torch.cat([self.colours(), stacked], dim=1)

    def picture(self, background: Rgb) -> tuple[Tensor, Tensor, Tensor]:
        """Colour on the background [H, W, 3], opacity [H, W] and depth [H, W], in one pass.

        Differentiable; depth is camera z divided by opacity, and 0 where nothing was hit.
        """
        depths = self.depths()
        values = torch.cat([self.colours(), depths[:, None], torch.ones_like(depths)[:, None]], 1)
        image = self.composite(values)
        alpha = image[..., 4]
        rgb = image[..., :3] + (1 - alpha)[..., None] * image.new_tensor(background)
        depth = image[..., 3] / alpha.clamp(min=LEAST_ALPHA)
        return rgb, alpha, torch.where(alpha > LEAST_ALPHA, depth, torch.zeros_like(depth))

    def query(self, traits: Traits, background: Rgb, floor: float) -> QueryMaps:
        """Picture, residual field and maps of this camera, all channels in one pass."""
        return finish(self.composite(self.pack(traits)), background, floor)

    def survey(self, photo: Tensor, mask: Tensor | None, background: Rgb, sums: NormalSums) -> None:
        """Render, compare with the photo [H, W, 3], and add this view's share to the sums."""
        counted = torch.ones(photo.shape[:2], dtype=torch.bool) if mask is None else mask
        errors, alpha = self._errors(photo, background)
        errors, alpha = errors * counted[..., None], alpha * counted
        residual = errors.abs().amax(2)
        e, a = residual.double(), alpha.double()
        sums.energy += torch.stack(
            [t.double().square().sum() for t in (errors, e)] + [e.mul(a).sum(), a.square().sum()]
        )
        bins = (residual[counted] * BINS).long().clamp(max=BINS - 1)
        sums.histogram += torch.bincount(bins, minlength=BINS)

        means = self.splats.means
        planes = torch.stack([torch.ones_like(alpha), residual, alpha], dim=2)
        exposure, error, row_sum, squares = self._shares(planes, counted).unbind(1)
        d = directions(means, self.camera).cpu().double()
        phi = basis(d, sums.degree)
        row, column = torch.tril_indices(phi.shape[1], phi.shape[1])
        shares = [exposure[:, None], exposure[:, None] * d, error[:, None]]
        sums.support += torch.cat(shares, dim=1)
        sums.moments += torch.stack([error, row_sum], dim=1)[:, :, None] * phi[:, None]
        sums.blocks += row_sum[:, None] * phi[:, row] * phi[:, column]
        sums.squares += squares

    def _shares(self, planes: Tensor, counted: Tensor) -> Tensor:
        """Sums of w times three planes, and of w^2 over the counted pixels, float64 [N, 4]."""
        squares = torch.zeros(len(self.splats), dtype=torch.float64)
        for found in self._listed(counted):
            squares.index_add_(0, found.gaussians.cpu(), found.weights.cpu().double() ** 2)
        sums = self.scatter(planes.to(self.splats.means)).cpu().double()
        return torch.cat([sums, squares[:, None]], dim=1)

    def _errors(self, photo: Tensor, background: Rgb) -> tuple[Tensor, Tensor]:
        """Rendered minus photographed colours, [H, W, 3], and opacity, [H, W], on the CPU."""
        colours = self.colours()
        values = torch.cat([colours, colours.new_ones(len(colours), 1)], dim=1)
        image = self.composite(values).cpu()
        shown, alpha = image[..., :3], image[..., 3]
        shown = shown + (1 - alpha)[..., None] * shown.new_tensor(background)
        return shown.clamp(0, 1) - photo, alpha

    def _listed(self, mask: Tensor) -> Iterator[Contributors]:
        """Every weight of the pixels in a bool mask [H, W], a few thousand pixels at a time."""
        for pixels in mask.nonzero().split(PIXELS_AT_ONCE):
            yield self.contributors(pixels)
