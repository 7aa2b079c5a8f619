# SPDX-License-Identifier: Apache-2.0
"""What a multiplier covers on labelled views, counted in whole pixels and whole views."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from splatcert.conformal.levels import Level, parse_level
from splatcert.conformal.maps import MapError, Mask, ViewMaps, each_view
from splatcert.conformal.ranks import ceil_rank


@dataclass(frozen=True)
class Coverage:
    """Counts over labelled views. The guarantee is about views, not about pooled pixels."""

    views: int
    covered_views: int
    """Views with at least a fraction 1 - beta of their pixels inside (eq:view-event)."""
    pixels: int
    covered_pixels: int
    mean_half_width: float
    """Mean over views of a view's mean half-width, not clipped."""

    @property
    def view_coverage(self) -> float:
        """Share of views that reach their pixel coverage."""
        return self.covered_views / self.views

    @property
    def pixel_coverage(self) -> float:
        """Share of all pixels inside their boxes."""
        return self.covered_pixels / self.pixels


def measure_coverage(
    residuals: Iterable[ArrayLike],
    scales: Iterable[ArrayLike],
    multiplier: float,
    beta: Level,
    masks: Iterable[Mask | None] | None = None,
) -> Coverage:
    """Count what boxes of half-width multiplier * scale cover, one view at a time.

    Any multiplier will do: View-CP's threshold, the pooled one, or a native reading.
    """
    level = parse_level(beta, "beta")
    inside, pixels, covered, widths = 0, 0, 0, []
    for view in each_view(residuals, scales, masks):
        count = covered_pixels(view, multiplier)
        inside, pixels = inside + count, pixels + view.pixels
        covered += is_covered(count, view.pixels, level)
        widths.append(multiplier * float(view.scale.mean()))
    if not widths:
        raise MapError("no view was given: coverage of nothing is not a number")
    return Coverage(len(widths), covered, pixels, inside, sum(widths) / len(widths))


def covered_pixels(view: ViewMaps, multiplier: float) -> int:
    """Pixels of a view that lie inside their boxes."""
    return int(np.count_nonzero(view.ratios() <= multiplier))


def is_covered(inside: int, pixels: int, beta: Fraction) -> bool:
    """Whether a view with so many pixels inside is a success (eq:view-event)."""
    return inside >= ceil_rank(pixels, 1 - beta)
