# SPDX-License-Identifier: Apache-2.0
"""The density rule of FastGS (Ren et al. 2026): grow and prune by multi-view consistency.

A Gaussian grows only if several views agree that the pixels it contributes to are badly
rendered (VCD), and is removed if it keeps contributing to such pixels (VCP).
"""

from __future__ import annotations

import torch
from torch import Tensor

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
from splatcert.training.portable import exponential
from splatcert.training.table import GaussianTable

ABSOLUTE_GRADIENT = 1.2e-3
DENSE = 0.001
"""Share of the extent above which Gaussians are split; smaller ones are cloned."""
IMPORTANCE = 5.0
"""Badly rendered pixels per view and megapixel above which a Gaussian may grow."""
MOST_OPACITY = 0.8
FINAL_FAINT = 0.1
FINAL_BLAME = 0.9
FINAL_PRUNES = (18_000, 21_000, 24_000, 27_000)
LEAST_RECOVERY = 500


class FastGSDensity(ScheduledDensity):
    """View-consistent densification and pruning."""

    def __init__(self, config: TrainConfig) -> None:
        spacing = config.scaled(RESET_EVERY)
        super().__init__(
            config,
            every=500,
            # Opacities take a few hundred steps to recover, so a short run has no resets.
            reset_every=spacing if spacing >= LEAST_RECOVERY else config.iterations,
        )
        self.final_prunes = {config.scaled(step) for step in FINAL_PRUNES}

    def apply(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> bool:
        """Follow the shared schedule, then the final prunes."""
        changed = super().apply(table, stats, context)
        if context.step in self.final_prunes:
            scores = context.score_views()
            table.keep((table.opacities() >= FINAL_FAINT) & (scores.blame <= FINAL_BLAME))
            changed = True
        return changed

    def densify(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> None:
        """Grow where views agree, prune by blame, and clamp opacities."""
        scores = context.score_views()
        agreed = scores.importance > IMPORTANCE * context.pixels / 1e6
        large = table.largest_scales() > DENSE * context.extent
        gradient, absolute = stats.mean_gradient(), stats.mean_absolute()
        clone = agreed & ~large & (gradient >= GRADIENT)
        split = agreed & large & (absolute >= ABSOLUTE_GRADIENT)
        room = self.limit - len(table)
        wanted = within_limit(clone | split, gradient + absolute, room)
        clone, split = clone & wanted, split & wanted
        new = grow(table, clone, split, context.random)

        on_screen, blame = torch.zeros(len(table)), torch.zeros(len(table))
        on_screen[~new], blame[~new] = stats.radius[~split], scores.blame[~split]
        candidates = table.opacities() < FAINT
        if context.step > self.reset_every:
            candidates |= on_screen > WIDE_PIXELS
            candidates |= table.largest_scales() > WIDE_WORLD * context.extent
        gone = self._drawn_by_blame(candidates, blame, new, context.random)
        table.keep(~gone)
        table.clamp_opacities(MOST_OPACITY)

    @staticmethod
    def _drawn_by_blame(
        candidates: Tensor, blame: Tensor, new: Tensor, random: torch.Generator
    ) -> Tensor:
        """Draw half as many rows as there are candidates, by blame; drawn candidates are pruned."""
        budget = int(candidates.sum()) // 2
        weight = torch.where(new, 0.0, 1 / (1e-6 + 1 - blame))
        budget = min(budget, int((weight > 0).sum()))
        gone = torch.zeros_like(candidates)
        if budget:
            # Exponential races sample without replacement, with no limit on the count.
            race = exponential(len(weight), random) / weight
            gone[race.topk(budget, largest=False).indices] = True
        return gone & candidates


VANILLA_DENSE = 0.01
"""Share of the extent above which Gaussians are split; smaller ones are cloned."""


class VanillaDensity(ScheduledDensity):
    """Grow where the gradient of the projected centre is large; drop the faint and the huge."""

    def __init__(self, config: TrainConfig) -> None:
        # After a reset, opacities take as many steps to recover in a short run as in a long one,
        # and wide Gaussians are removed from then on. A run whose growth ends early has none: at
        # 7,000 steps of truck, resets every 700 steps cost 2.7 dB, a single one at 3,000 0.7 dB.
        spacing = max(RESET_EVERY, config.scaled(RESET_EVERY))
        enough = 2 * spacing <= config.scaled(15_000)
        super().__init__(config, every=100, reset_every=spacing if enough else config.iterations)

    def densify(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> None:
        """Clone and split by gradient, then prune."""
        score = stats.mean_gradient()
        wanted = within_limit(score >= GRADIENT, score, self.limit - len(table))
        large = table.largest_scales() > VANILLA_DENSE * context.extent
        radius = stats.radius
        split = wanted & large
        new = grow(table, wanted & ~large, split, context.random)
        gone = table.opacities() < FAINT
        if context.step > self.reset_every:
            on_screen = new.new_zeros(len(table))
            on_screen[~new] = radius[~split] > WIDE_PIXELS
            gone |= on_screen | (table.largest_scales() > WIDE_WORLD * context.extent)
        table.keep(~gone)
