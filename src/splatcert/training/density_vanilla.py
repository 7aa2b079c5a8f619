# SPDX-License-Identifier: Apache-2.0
"""The density rule of 3D Gaussian Splatting (Kerbl et al., SIGGRAPH 2023)."""

from __future__ import annotations

from splatcert.config import TrainConfig
from splatcert.training.density import (
    FAINT,
    GRADIENT,
    RESET_EVERY,
    WIDE_PIXELS,
    WIDE_WORLD,
    DensityContext,
    DensityStats,
    ScheduledDensity,
    grow,
    within_limit,
)
from splatcert.training.table import GaussianTable

DENSE = 0.01
"""Of the extent: larger Gaussians are split, smaller ones cloned."""


class VanillaDensity(ScheduledDensity):
    """Grow where the projected centre is pulled hard, drop the faint and the huge."""

    def __init__(self, config: TrainConfig) -> None:
        # After a reset, opacities take as many steps to recover in a short run as in a long one,
        # and whatever is wide goes from then on. A run whose growth ends too soon has none: at
        # 7,000 steps of truck, resets every 700 steps cost 2.7 dB, a single one at 3,000 0.7 dB.
        spacing = max(RESET_EVERY, config.scaled(RESET_EVERY))
        enough = 2 * spacing <= config.scaled(15_000)
        super().__init__(config, every=100, reset_every=spacing if enough else config.iterations)

    def densify(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> None:
        """Clone and split by gradient, then prune."""
        score = stats.mean_gradient()
        wanted = within_limit(score >= GRADIENT, score, self.limit - len(table))
        large = table.largest_scales() > DENSE * context.extent
        radius = stats.radius
        split = wanted & large
        new = grow(table, wanted & ~large, split, context.random)
        gone = table.opacities() < FAINT
        if context.step > self.reset_every:
            on_screen = new.new_zeros(len(table))
            on_screen[~new] = radius[~split] > WIDE_PIXELS
            gone |= on_screen | (table.largest_scales() > WIDE_WORLD * context.extent)
        table.keep(~gone)
