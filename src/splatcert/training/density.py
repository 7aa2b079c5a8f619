# SPDX-License-Identifier: Apache-2.0
"""What both density rules share: statistics, growing, and the hard limit.

A rule decides which Gaussians grow and which go; how they are cloned and split is the
same in all of them (Kerbl et al. 2023).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from splatcert._native import PreparedView
from splatcert.config import TrainConfig
from splatcert.raster.reference import rotations
from splatcert.training.table import GaussianTable

SPLIT_INTO = 2
SPLIT_SHRINK = 1.6
RESET_OPACITY = 0.01
RESET_EVERY = 3_000
GRADIENT = 2e-4
"""Pull on the projected centre, in units of half the image, from which a Gaussian may grow."""
FAINT = 0.005
WIDE_PIXELS = 20
WIDE_WORLD = 0.1
"""Of the extent: beyond it, or that many pixels, a Gaussian is too wide to stay."""
LEAST_SETTLING = 100


@dataclass
class DensityStats:
    """Sums over the steps since Gaussians last changed, per Gaussian."""

    gradient: Tensor
    """Length of the gradient to the projected centre, in units of half the image, [N]."""
    absolute: Tensor
    """The same of the pixels' absolute gradients, [N]."""
    seen: Tensor
    """Steps in which it was drawn, [N]."""
    radius: Tensor
    """Largest radius in pixels, [N]."""

    @classmethod
    def empty(cls, count: int) -> DensityStats:
        """Nothing seen yet."""
        return cls(*(torch.zeros(count) for _ in range(4)))

    def add(self, view: PreparedView, means2d: Tensor, absolute: Tensor) -> None:
        """One step: what the Gaussians this view draws got as pixel gradients, [N, 2]."""
        view.tally(means2d, absolute, self.gradient, self.absolute, self.seen, self.radius)

    def mean_gradient(self) -> Tensor:
        """Per step in which it was drawn, [N]."""
        return self.gradient / self.seen.clamp(min=1)

    def mean_absolute(self) -> Tensor:
        """Per step in which it was drawn, [N]."""
        return self.absolute / self.seen.clamp(min=1)


@dataclass(frozen=True)
class ViewScores:
    """What a few training views say about each Gaussian (FastGS, multi-view consistency)."""

    importance: Tensor
    """Badly rendered pixels it takes part in, per view, [N]."""
    blame: Tensor
    """The same weighted by the views' losses, scaled to [0, 1], [N]."""


@dataclass(frozen=True)
class DensityContext:
    """What a rule may look at besides the table and its statistics."""

    step: int
    extent: float
    pixels: int
    """Of a typical training view."""
    score_views: Callable[[], ViewScores]
    """Renders some training views; expensive, so only called when needed."""
    random: torch.Generator


class DensityRule(Protocol):
    """Adds and removes Gaussians between steps."""

    def wants_statistics(self, step: int) -> bool:
        """Whether gradients of this step will be used."""
        ...

    def apply(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> bool:
        """Change the table; true when rows were added or removed."""
        ...


class ScheduledDensity(ABC):
    """The schedule both rules share, scaled from 30,000 steps; a rule fills in `densify`."""

    def __init__(self, config: TrainConfig, *, every: int, reset_every: int) -> None:
        """Rounds of growth `every` so many of 30,000 steps; resets as often as the rule says."""
        self.limit = config.max_gaussians
        self.start, self.end = config.scaled(500), config.scaled(15_000)
        # Between two rounds new Gaussians must settle: gradients of unsettled ones say little,
        # and rounds that follow too fast grow a crowd that overfits.
        self.every = max(10, min(LEAST_SETTLING, config.iterations // 12), config.scaled(every))
        self.reset_every = reset_every

    def wants_statistics(self, step: int) -> bool:
        """Until densification ends."""
        return step < self.end

    def apply(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> bool:
        """Densify on schedule, reset opacities now and then; true when rows changed."""
        due = self.start < context.step < self.end and context.step % self.every == 0
        if due:
            self.densify(table, stats, context)
        if context.step < self.end and context.step % self.reset_every == 0:
            table.clamp_opacities(RESET_OPACITY)
        return due

    @abstractmethod
    def densify(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> None:
        """Add and remove rows."""


def within_limit(wanted: Tensor, score: Tensor, room: int) -> Tensor:
    """The highest-scoring of the wanted rows, as many as there is room for, bool [N]."""
    if int(wanted.sum()) <= room:
        return wanted
    chosen = torch.where(wanted, score, -torch.inf).topk(max(0, room)).indices
    result = torch.zeros_like(wanted)
    result[chosen] = True
    return result & wanted


def grow(table: GaussianTable, clone: Tensor, split: Tensor, random: torch.Generator) -> Tensor:
    """Copy the cloned rows, replace the split ones by two smaller samples of themselves.

    Returns which rows of the grown table are new, bool [N'].
    """
    new_clones = table.rows(clone)
    halves = table.rows(split)
    halves = {name: t.repeat_interleave(SPLIT_INTO, dim=0) for name, t in halves.items()}
    offsets = halves["log_scales"].exp() * torch.randn(halves["log_scales"].shape, generator=random)
    turned = (rotations(halves["quats"]) @ offsets[..., None])[..., 0]
    halves["means"] = halves["means"] + turned
    halves["log_scales"] = halves["log_scales"] - torch.tensor(SPLIT_SHRINK).log()
    table.keep(~split)
    old = len(table)
    table.append({name: torch.cat([new_clones[name], halves[name]]) for name in new_clones})
    new = torch.zeros(len(table), dtype=torch.bool)
    new[old:] = True
    return new
