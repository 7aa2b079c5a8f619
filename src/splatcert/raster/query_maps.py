# SPDX-License-Identifier: Apache-2.0
"""A query in plain torch: what is composited, and what becomes of it.

Colour and seven auxiliary scalars are composited together. Channels share their weights and
are summed independently, so packing them changes no bit of any (sec. Rendering cost). Native
kernels compute the same on the `cpu` back end, and the widths that follow on every one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from splatcert import _native
from splatcert.camera import Camera
from splatcert.conformal.ranks import ceil_rank, order_statistics
from splatcert.difficulty.factor import shrinkage
from splatcert.raster.native_autograd import plain_floats
from splatcert.splats.harmonics import directions

CHANNELS = (
    "red", "green", "blue", "one", "depth", "log exposure", "support angle", "spread",
    "residual field", "residual summary",
)  # fmt: skip
"""What is composited, in order."""
MAPS = ("opacity", "luminance", "log exposure", "support angle", "spread")
"""What `QueryMaps.maps` holds, in order."""
LEAST_ALPHA = 1e-6
"""Maps are sums of weight times value over max(alpha, this)."""
LUMINANCE = (0.299, 0.587, 0.114)
"""Weights of displayed colours (Rec. 601)."""
PERCENTILES = (Fraction(1, 10), Fraction(1, 2))


@dataclass(frozen=True, eq=False)
class Traits:
    """What each Gaussian carries into a query, whatever the camera."""

    log_exposure: Tensor
    """log(1 + E), [N]."""
    spread: Tensor
    """1 - |D| / E, [N]."""
    residual_summary: Tensor
    """Mean training residual of its pixels, [N]."""
    direction: Tensor
    """D, the weighted sum of directions to the training cameras, not normalised, [N, 3]."""
    coefficients: Tensor
    """Harmonics of the residual field, [N, K]."""

    @cached_property
    def table(self) -> Tensor:
        """All traits side by side for the native kernels, with unit directions, [N, 6 + K]."""
        columns = torch.stack([self.log_exposure, self.spread, self.residual_summary], dim=1)
        parts = [columns, normalize(self.direction, dim=1), self.coefficients]
        return torch.cat([part.to(device="cpu", dtype=torch.float32) for part in parts], dim=1)


@dataclass(frozen=True, eq=False)
class QueryMaps:
    """What one pass renders of a camera, with the statistics of its maps."""

    center: Tensor
    """Picture on the background, clamped to [0, 1], [H, W, 3]."""
    field: Tensor
    """Residual field, not below its floor, [H, W]."""
    maps: Tensor
    """Opacity, luminance, log exposure, support angle, spread, [5, H, W]."""
    depth: Tensor
    """Camera z of what is seen, [H, W]."""
    moments: list[float]
    """Mean and deviation of depth, means of field and residual summary."""
    statistics: list[float]
    """Mean, 10th and 50th percentile of each map; for the luminance, of its slope."""

    @property
    def opacity(self) -> Tensor:
        """Alpha, [H, W]."""
        return self.maps[MAPS.index("opacity")]

    def hardly_shown(self, alpha: float, exposure: float, angle: float) -> NDArray[np.float64]:
        """Shares of pixels below an opacity, below a log exposure, beyond an angle, [3]."""
        maps = plain_floats(self.maps)
        return np.array(_native.shares_hardly_shown(maps, alpha, exposure, angle))


def support_angle(direction: Tensor, means: Tensor, camera: Camera) -> Tensor:
    """Angle between the direction to a camera and the mean direction seen, [N].

    By the arc tangent, because the arc cosine loses half the digits of small angles. The angle
    is pi, the largest there is, where no view saw the Gaussian.
    """
    d = directions(means, camera).to(direction)
    along = (d * direction).sum(1)
    across = torch.linalg.cross(d, direction).norm(dim=1)
    unknown = (along == 0) & (across == 0)
    return torch.where(unknown, pi, torch.atan2(across, along))


def finish(image: Tensor, background: tuple[float, float, float], floor: float) -> QueryMaps:
    """Picture, field and maps from the composited channels, [H, W, 10]."""
    alpha = image[..., 3]
    center = image[..., :3] + (1 - alpha)[..., None] * image.new_tensor(background)
    center = center.clamp(0, 1)
    field = image[..., 8].clamp(min=floor)
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
    return QueryMaps(center, field, maps, depth, moments, summarise(maps))


def summarise(maps: Tensor) -> list[float]:
    """Mean and percentiles of each map, [5, H, W]; for the luminance, of its slope."""
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


def mean_and_percentiles(values: Tensor) -> tuple[float, float, float]:
    """Mean, and the order statistics of rank ceil(n q) at 10 and 50 per cent."""
    flat = values.detach().cpu().numpy().ravel()
    low, middle = order_statistics(flat, [ceil_rank(flat.size, level) for level in PERCENTILES])
    return float(flat.mean()), float(low), float(middle)


def widened(
    field: Tensor,
    opacity: Tensor,
    prior: float,
    times: float = 1.0,
    plus: float = 0.0,
    *,
    squared: bool = False,
) -> tuple[Tensor, float]:
    """A map, times a number and plus one, that is wide where the model shows nothing; its mean.

    b + (1 - alpha) prior, or b + (1 - alpha)^2 prior, in one sweep by the kernels' threads, as is
    `shrunk`: torch's threads would go on spinning on the cores that the next view needs.
    """
    wide = _native.empty(list(field.shape))
    maps = plain_floats(field), plain_floats(opacity)
    mean = _native.widen(*maps, times, plus, prior, squared, wide)
    return wide.to(field), mean


def shrunk(field: Tensor, unit: float, weight: Fraction | float, times: float = 1.0) -> Tensor:
    """`shrink` of a map, times a number, in one sweep."""
    kept, out = shrinkage(unit, weight), _native.empty(list(field.shape))
    _native.shrink(plain_floats(field), unit, kept, 1 - kept, times, out)
    return out.to(field)
