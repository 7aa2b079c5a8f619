# SPDX-License-Identifier: Apache-2.0
"""The density rule of 3D Gaussian Splatting (Kerbl et al., SIGGRAPH 2023)."""

from __future__ import annotations

from splatcert.config import TrainConfig
from splatcert.train.density import DensityContext, DensityStats, grow, within_limit
from splatcert.train.table import GaussianTable

GRADIENT = 2e-4
DENSE = 0.01
"""Of the extent: larger Gaussians are split, smaller ones cloned."""
FAINT = 0.005
WIDE_PIXELS = 20
WIDE_WORLD = 0.1
RESET_OPACITY = 0.01


class VanillaDensity:
    """Grow where the projected centre is pulled hard, drop the faint and the huge."""

    def __init__(self, config: TrainConfig) -> None:
        self.limit = config.max_gaussians
        self.start, self.end = config.scaled(500), config.scaled(15_000)
        self.every = max(10, config.scaled(100))
        self.reset_every = max(500, config.scaled(3_000))

    def wants_statistics(self, step: int) -> bool:
        """Until densification ends."""
        return step < self.end

    def apply(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> bool:
        """Clone and split on schedule, then prune; reset opacities now and then."""
        step = context.step
        changed = False
        if self.start < step < self.end and step % self.every == 0:
            self._densify(table, stats, context)
            changed = True
        if step < self.end and step % self.reset_every == 0:
            table.clamp_opacities(RESET_OPACITY)
        return changed

    def _densify(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> None:
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
