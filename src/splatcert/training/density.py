# SPDX-License-Identifier: Apache-2.0
"""Code that both density rules share: statistics, growth, and the hard limit.

A rule decides which Gaussians grow and which are removed; how they are cloned and split is
the same for all rules (Kerbl et al. 2023).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Protocol

import torch
from torch import Tensor

from splatcert._native import PreparedView
from splatcert.config import TrainConfig
from splatcert.raster.reference import rotations
from splatcert.training.portable import exp
from splatcert.training.table import GaussianTable

SPLIT_INTO = 2
SPLIT_SHRINK = 1.6
RESET_OPACITY = 0.01
RESET_EVERY = 3_000
GRADIENT = 2e-4
"""Gradient of the projected centre, in units of half the image, above which a Gaussian may grow."""
FAINT = 0.005
WIDE_PIXELS = 20
WIDE_WORLD = 0.1
"""Share of the extent beyond which, or beyond WIDE_PIXELS, a Gaussian is removed as too wide."""
LEAST_SETTLING = 100


@dataclass
class DensityStats:
    """Sums over the steps since Gaussians last changed, per Gaussian."""

    gradient: Tensor
    """Length of the gradient to the projected centre, in units of half the image, [N]."""
    absolute: Tensor
    """The same for the pixels' absolute gradients, [N]."""
    seen: Tensor
    """Number of steps in which it was drawn, [N]."""
    radius: Tensor
    """Largest radius in pixels, [N]."""

    @classmethod
    def empty(cls, count: int) -> DensityStats:
        """Statistics before the first step."""
        return cls(*(torch.zeros(count) for _ in range(4)))

    def add(self, view: PreparedView, means2d: Tensor, absolute: Tensor) -> None:
        """Add the pixel gradients [N, 2] of the Gaussians that this view draws, for one step."""
        view.tally(means2d, absolute, self.gradient, self.absolute, self.seen, self.radius)

    def of(self, rows: Tensor) -> DensityStats:
        """The statistics of the rows that a bool mask [N] selects."""
        return DensityStats(
            *(t[rows] for t in (self.gradient, self.absolute, self.seen, self.radius))
        )

    def mean_gradient(self) -> Tensor:
        """Mean gradient length over the steps in which it was drawn, [N]."""
        return self.gradient / self.seen.clamp(min=1)

    def mean_absolute(self) -> Tensor:
        """Mean absolute gradient over the steps in which it was drawn, [N]."""
        return self.absolute / self.seen.clamp(min=1)


@dataclass(frozen=True)
class ViewScores:
    """Scores of each Gaussian from a few training views (FastGS, multi-view consistency)."""

    importance: Tensor
    """Number of badly rendered pixels it contributes to, per view, [N]."""
    blame: Tensor
    """The same number weighted by the views' losses, scaled to [0, 1], [N]."""


@dataclass(frozen=True)
class DensityContext:
    """Inputs of a rule besides the table and its statistics."""

    step: int
    extent: float
    pixels: int
    """Number of pixels of a typical training view."""
    score_views: Callable[[], ViewScores]
    """Renders some training views; expensive, so called only when needed."""
    random: torch.Generator


class DensityRule(Protocol):
    """Adds and removes Gaussians between steps."""

    def wants_statistics(self, step: int) -> bool:
        """Whether gradients of this step will be used."""
        ...

    def apply(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> bool:
        """Change the table; True if rows were added or removed."""
        ...


class ScheduledDensity(ABC):
    """The schedule both rules share, scaled from 30,000 steps; a rule implements `densify`."""

    def __init__(self, config: TrainConfig, *, every: int, reset_every: int) -> None:
        """`every` is the number of steps between growth rounds in a run of 30,000 steps."""
        self.limit = config.max_gaussians
        self.start, self.end = config.scaled(500), config.scaled(15_000)
        # New Gaussians must settle between two rounds: their first gradients carry little
        # information, and rounds in quick succession add too many Gaussians and overfit.
        self.every = max(10, min(LEAST_SETTLING, config.iterations // 12), config.scaled(every))
        self.reset_every = reset_every

    def wants_statistics(self, step: int) -> bool:
        """True until densification ends."""
        return step < self.end

    def apply(self, table: GaussianTable, stats: DensityStats, context: DensityContext) -> bool:
        """Densify and reset opacities on schedule; True if rows were added or removed."""
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
    """Copy the cloned rows; replace each split row with two smaller samples of itself.

    Returns which rows of the grown table are new, bool [N'].
    """
    new_clones = table.rows(clone)
    halves = table.rows(split)
    halves = {name: t.repeat_interleave(SPLIT_INTO, dim=0) for name, t in halves.items()}
    offsets = exp(halves["log_scales"]) * torch.randn(halves["log_scales"].shape, generator=random)
    turned = (rotations(halves["quats"]) @ offsets[..., None])[..., 0]
    halves["means"] = halves["means"] + turned
    halves["log_scales"] = halves["log_scales"] - log(SPLIT_SHRINK)
    table.keep(~split)
    old = len(table)
    table.append({name: torch.cat([new_clones[name], halves[name]]) for name in new_clones})
    new = torch.zeros(len(table), dtype=torch.bool)
    new[old:] = True
    return new
