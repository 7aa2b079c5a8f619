# SPDX-License-Identifier: Apache-2.0
"""Pixels at which two correct renderers may differ by a step."""

from __future__ import annotations

import torch
from torch import Tensor

from splatcert.raster.reference import (
    ALPHA_FLOOR,
    STOP_TRANSMITTANCE,
    ReferenceView,
    transmit,
)


def near_discontinuity(
    view: ReferenceView, tolerance: float, depth_tolerance: float = 1e-6
) -> Tensor:
    """Pixels where a rounding error may change the picture by a step, [H, W] bool.

    Along the ray, before it stops: an alpha within `tolerance` (relative) of its
    floor, a transmittance as near to the stop, or two neighbours whose depths differ
    by less than `depth_tolerance` (relative). Two correct back ends may differ there,
    so tests count these pixels instead of loosening their tolerance everywhere. Two capped
    Gaussians leave T 2e-5 below the stop: a wider tolerance counts those pixels too.
    """
    pixels, depths, found = view.pixels(), view.footprints.depths, []
    with torch.no_grad():
        for part in view.chunks():
            raw = view.footprints.alphas(pixels[part])
            alpha, before, after = transmit(raw)
            faint = (raw / ALPHA_FLOOR - 1).abs() < tolerance
            last = (after / STOP_TRANSMITTANCE - 1).abs() < tolerance
            shown = torch.where(alpha > 0, depths, -torch.inf)
            previous = torch.cat([torch.full_like(shown[:, :1], -torch.inf), shown], dim=1)
            gap = shown - previous[:, : shown.shape[1]].cummax(dim=1).values
            tied = (alpha > 0) & (gap < depth_tolerance * depths)
            found.append(((faint | last | tied) & (before > STOP_TRANSMITTANCE)).any(dim=1))
    return torch.cat(found).reshape(view.camera.height, view.camera.width)
