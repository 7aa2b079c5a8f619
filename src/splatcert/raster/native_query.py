# SPDX-License-Identifier: Apache-2.0
"""Native kernels for a query: one sweep to picture, field and maps, one to their statistics.

What they compute is written out in plain torch in `splatcert.view.query`, against which they
are tested. Results have the same bits for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from splatcert import _native
from splatcert.raster.native import NativeView, plain_floats

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
