# SPDX-License-Identifier: Apache-2.0
"""A query: picture, residual field and descriptor of one camera, in one rendering pass.

Colour and seven auxiliary scalars are composited together. Channels share their weights and
are summed independently, so packing them changes no bit of any (sec. Rendering cost). The
mathematics is written out here in torch, for every back end; on the `cpu` back end native
kernels do the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from splatcert.camera import Camera
from splatcert.conformal.ranks import ceil_rank, order_statistics
from splatcert.difficulty.descriptor import EPSILON0, CameraGeometry, DescriptorError, assemble
from splatcert.difficulty.factor import shrink
from splatcert.field.fit import ResidualField
from splatcert.field.operator import harmonics
from splatcert.field.support import Support
from splatcert.raster.native import NativeView, Rendered, render_query, summarise_maps
from splatcert.raster.render import Backend, open_view
from splatcert.raster.view import View
from splatcert.splats.gaussians import Splats

CHANNELS = (
    "red", "green", "blue", "one", "depth", "log exposure", "support angle", "spread",
    "residual field", "residual summary",
)  # fmt: skip
"""What is composited, in order."""
LEAST_ALPHA = 1e-6
"""Maps are sums of weight times value over max(alpha, this)."""
LUMINANCE = (0.299, 0.587, 0.114)
"""Of colours as they are displayed (Rec. 601)."""
PERCENTILES = (Fraction(1, 10), Fraction(1, 2))


@dataclass(frozen=True, eq=False)
class Query:
    """What one camera shows, and what that says about its difficulty."""

    center: Tensor
    """Picture on the background, clamped to [0, 1], [H, W, 3]."""
    field: Tensor
    """b = max(A C, epsilon0), [H, W]."""
    field_mean: float
    """Mean of the field over all pixels."""
    descriptor: NDArray[np.float64]
    """z_v, [24]."""

    def shape(self, lambda_b: Fraction | float) -> Tensor:
        """b~ = (1 - lambda_b) + lambda_b * b / mean(b), [H, W] (eq:shrinkage).

        As `scale.shape` has it, with the mean known.
        """
        return shrink(self.field, self.field_mean, lambda_b)


@dataclass(frozen=True, eq=False)
class Observed:
    """Everything a query needs of a scene; nothing of it comes from held-out labels."""

    splats: Splats
    field: ResidualField
    support: Support
    geometry: CameraGeometry
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    excluded: NDArray[np.bool_] | None = None
    """Training cameras that the geometry leaves out, [T]."""

    def __post_init__(self) -> None:
        count = len(self.splats)
        for name, rows in (("field", self.field.coefficients), ("support", self.support.exposure)):
            if len(rows) != count:
                raise DescriptorError(
                    f"the {name} has {len(rows)} Gaussians, the splats have {count}.\n"
                    "  They belong to different models."
                )

    def out_of_fold(self, support: Support, excluded: NDArray[np.bool_]) -> Observed:
        """The same scene as the other folds saw it: their support, their cameras.

        The residual field stays: a training view's shape is that of its scene (alg:vscp).
        """
        return replace(self, support=support, excluded=excluded)

    def query(self, camera: Camera, *, backend: Backend = "cpu") -> Query:
        """Render and describe one camera."""
        view = open_view(self.splats, camera, backend)
        if isinstance(view, NativeView):
            rendered = render_query(view, self.traits, self.background, EPSILON0)
            statistics = summarise_maps(rendered.maps)
        else:
            rendered = finish(view.composite(pack(view, self)), self.background)
            statistics = summarise(rendered.maps)
        geometry = self.geometry.features(camera, self.excluded)
        return Query(
            center=rendered.center,
            field=rendered.field,
            field_mean=rendered.moments[2],
            descriptor=assemble(geometry, statistics, rendered.moments, self.geometry.extent),
        )

    @cached_property
    def traits(self) -> Tensor:
        """What no camera changes, for the native kernel, [N, 6 + K].

        Columns: log exposure, spread, residual summary, mean direction of training (three),
        coefficients of the field.
        """
        support = self.support
        columns = torch.stack(
            [support.log_exposure(), support.spread(), support.residual_summary()], dim=1
        )
        parts = [columns, normalize(support.direction, dim=1), self.field.coefficients]
        return torch.cat([part.to(device="cpu", dtype=torch.float32) for part in parts], dim=1)


def pack(view: View, observed: Observed) -> Tensor:
    """The table to composite, [N, 10], in the order of CHANNELS."""
    splats, support = observed.splats, observed.support
    colours, depths = view.colours(), view.depths()
    coefficients = observed.field.coefficients
    phi = harmonics(splats.means, view.camera, coefficients.shape[1])
    columns = [
        torch.ones_like(depths),
        depths,
        support.log_exposure(),
        support.angle(splats.means, view.camera),
        support.spread(),
        (coefficients.to(phi) * phi).sum(1),
        support.residual_summary(),
    ]
    return torch.cat([colours, torch.stack([c.to(depths) for c in columns], dim=1)], dim=1)


def finish(image: Tensor, background: tuple[float, float, float]) -> Rendered:
    """Picture, field and maps of a composited query, [H, W, 10]."""
    alpha = image[..., 3]
    center = image[..., :3] + (1 - alpha)[..., None] * image.new_tensor(background)
    center = center.clamp(0, 1)
    field = image[..., 8].clamp(min=EPSILON0)
    divided = image[..., 4:] / alpha.clamp(min=LEAST_ALPHA)[..., None]
    depth, exposure, angle, spread, _, residual = divided.unbind(-1)
    light = center @ center.new_tensor(LUMINANCE)
    moments = [
        float(depth.double().mean()),
        float(depth.double().std(correction=0)),
        float(field.double().mean()),
        float(residual.double().mean()),
    ]
    maps = torch.stack([alpha, light, exposure, angle, spread])
    return Rendered(center, field, maps, moments)


def summarise(maps: Tensor) -> list[float]:
    """Mean and percentiles of each map, [5, H, W]; of the luminance those of its slope."""
    alpha, light, *support = maps.double()
    described = [alpha, slope(light), *support]
    return [number for values in described for number in mean_and_percentiles(values)]


def slope(light: Tensor) -> Tensor:
    """Length of the gradient: central differences, one-sided at the border, [H, W]."""
    along = [
        torch.gradient(light, dim=dim)[0] if light.shape[dim] > 1 else torch.zeros_like(light)
        for dim in (0, 1)
    ]
    return torch.hypot(*along)


def mean_and_percentiles(values: Tensor) -> Sequence[float]:
    """Mean, and the order statistics of rank ceil(n q) at 10 and 50 per cent."""
    flat = values.detach().cpu().numpy().ravel()
    ranks = [ceil_rank(flat.size, level) for level in PERCENTILES]
    return float(flat.mean()), *map(float, order_statistics(flat, ranks))
