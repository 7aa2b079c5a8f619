# SPDX-License-Identifier: Apache-2.0
"""Settings of a bench: scenes, pools and the options of every stage."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import get_args

from splatcert.camera import MAX_SIDE
from splatcert.config import (
    LARGEST_COUNT,
    LARGEST_SEED,
    Backend,
    FieldConfig,
    LearnConfig,
    TrainConfig,
)
from splatcert.conformal.levels import parse_level
from splatcert.scales.scoring import BETAS
from splatcert_bench.run.entries import (
    BenchError,
    Density,
    PoolEntry,
    SceneEntry,
    VariantEntry,
    require_ensemble,
    require_range,
)

MAIN_DENSITY: Density = "fastgs"
MAIN_POOL = "pool"
"""The pool of the main results: all other scenes."""
ONE_MODEL, OUT_OF_FOLD, PAPER = "one-model", "out-of-fold", "paper"
"""Pools that exist with fold models: two ways to compute targets, and the paper's recipe."""
FOLD_POOLS = (ONE_MODEL, OUT_OF_FOLD, PAPER)
LARGEST_MADE = 4_096
"""Largest side of a synthetic photograph."""


def at_ridge(pool: str, ridge: float) -> str:
    """Name of a pool whose fields have another ridge."""
    return f"{pool}@{ridge:g}"


def ridge_of(pool: str) -> float | None:
    """The ridge in the name of a pool; None for that of `[field]`."""
    ridge = pool.partition("@")[2]
    return float(ridge) if ridge else None


@dataclass(frozen=True, kw_only=True)
class CaptureSettings:
    """How captures are read."""

    resolution: int = 640
    """Longest side in pixels; 0 means full size."""
    holdout: int = 8
    """Hold out every n-th photograph, in order of name."""

    def __post_init__(self) -> None:
        require_range("capture.resolution", self.resolution, 0, MAX_SIDE)
        require_range("capture.holdout", self.holdout, 2, LARGEST_COUNT)


@dataclass(frozen=True, kw_only=True)
class MemberSettings:
    """Settings of the ensemble that differ from the main model."""

    count: int = 5
    """Number of members; 0 means no ensemble."""
    resolution: int = 320
    """Longest side of their photographs; 0 means the main model's."""
    iterations: int = 2_100
    """Training steps of a member."""
    coarse_to_fine: bool = False
    """Start with smaller photographs: a third of the time at a small loss of quality."""
    max_gaussians: int = 50_000
    """Largest number of Gaussians of a member; 0 means the main model's limit."""
    folds: int = 0
    """Number of fold models for the out-of-fold target, of the members' size; 0 means none."""

    def __post_init__(self) -> None:
        require_ensemble("members.count", self.count)
        require_range("members.resolution", self.resolution, 0, MAX_SIDE)
        require_ensemble("members.folds", self.folds)
        if self.iterations < 1 or self.max_gaussians < 0:
            raise BenchError("members.iterations must be positive, members.max_gaussians 0 or more")


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """Measurements on the held-out views."""

    methods: tuple[str, ...] = (
        *("gsu", "holes", "gavis-1", "gavis-4", "gavis-16", "gavis-64", "ensemble"),
        "ensemble-full",
    )
    """Maps to compare; name one of your own as module:Class."""
    betas: tuple[str, ...] = ("1/20", "1/10", "1/5", "3/10", "2/5", "1/2")
    """Pixel levels beta at which scores are stored."""
    ridges: tuple[float, ...] = (0.01, 0.1, 10.0)
    """Further ridges of the residual field that source scenes choose from; none if empty."""
    guided: bool = True
    """Whether to learn guides and score the guided scale."""
    timed_views: int = 3
    """Number of held-out views whose latency is measured."""
    repeats: int = 7
    """Number of timings of each, taken in turn."""

    def __post_init__(self) -> None:
        for beta in self.betas:
            parse_level(beta, "beta")
        if "1/10" not in self.betas:
            raise BenchError("study.betas must contain 1/10, at which everything is compared")
        if len({f"{r:g}" for r in self.ridges}) < len(self.ridges) or min((1.0, *self.ridges)) <= 0:
            raise BenchError("study.ridges must be different positive numbers")
        require_range("study.timed_views", self.timed_views, 1, LARGEST_COUNT)
        require_range("study.repeats", self.repeats, 1, LARGEST_COUNT)


@dataclass(frozen=True, kw_only=True)
class EvaluateSettings:
    """Settings of the tables."""

    splits: int = 200
    """Number of random calibration/test splits per scene."""
    native_splits: int = 100
    """Number of splits in the comparison of calibrated and uncalibrated maps."""
    bootstrap: int = 10_000
    """Number of bootstrap resamples of the scenes."""
    seed: int = 0
    """Random seed for splits and resamples."""

    def __post_init__(self) -> None:
        for name in ("splits", "native_splits", "bootstrap"):
            require_range(f"evaluate.{name}", getattr(self, name), 1, LARGEST_COUNT)
        require_range("evaluate.seed", self.seed, 0, LARGEST_SEED)


@dataclass(frozen=True, kw_only=True)
class MadeSettings:
    """Size of synthetic scenes."""

    views: int = 39
    width: int = 48
    height: int = 32
    gaussians: int = 1_500

    def __post_init__(self) -> None:
        require_range("made.views", self.views, 2, 1_000)
        require_range("made.width", self.width, 1, LARGEST_MADE)
        require_range("made.height", self.height, 1, LARGEST_MADE)
        require_range("made.gaussians", self.gaussians, 1, LARGEST_COUNT)


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """Complete settings of a bench."""

    profile: str
    scene: tuple[SceneEntry, ...]
    pool: tuple[PoolEntry, ...] = ()
    variant: tuple[VariantEntry, ...] = ()
    backend: Backend = "cpu"
    """Renderer for everything except training, which always runs on the CPU."""
    capture: CaptureSettings = dataclasses.field(default_factory=CaptureSettings)
    train: TrainConfig = dataclasses.field(default_factory=TrainConfig)
    members: MemberSettings = dataclasses.field(default_factory=MemberSettings)
    field: FieldConfig = dataclasses.field(default_factory=FieldConfig)
    learn: LearnConfig = dataclasses.field(default_factory=LearnConfig)
    study: StudySettings = dataclasses.field(default_factory=StudySettings)
    evaluate: EvaluateSettings = dataclasses.field(default_factory=EvaluateSettings)
    made: MadeSettings = dataclasses.field(default_factory=MadeSettings)

    def __post_init__(self) -> None:
        if not self.scene:
            raise BenchError("a bench needs at least one [[scene]]")
        for kind, entries in (
            ("scene", self.scene),
            ("pool", self.pool),
            ("variant", self.variant),
        ):
            names = Counter(entry.name for entry in entries)
            if twice := [name for name, count in names.items() if count > 1]:
                raise BenchError(f"two entries [[{kind}]] are called {twice[0]!r}")
        if self.train.density != MAIN_DENSITY:
            raise BenchError(
                f"train.density must be {MAIN_DENSITY}, as in the paper's main tables; to add "
                f'another rule, give scenes densities = ["{self.train.density}"]'
            )
        if parse_level(self.learn.beta, "learn.beta") not in BETAS:
            listed = ", ".join(map(str, BETAS))
            raise BenchError(f"learn.beta must be one of {listed}, got {self.learn.beta}")
        if any(entry.full_members for entry in self.scene) and self.member_is_main():
            raise BenchError(
                "full_members adds nothing: [members] already have the main model's size and length"
            )
        if self.field.ridge in self.study.ridges:
            raise BenchError(f"study.ridges repeats field.ridge, {self.field.ridge:g}")
        known = {entry.name for entry in self.scene}
        for entry in self.variant:
            if entry.name in get_args(Density):
                raise BenchError(
                    f"a variant cannot be called {entry.name}: give scenes "
                    f'densities = ["{entry.name}"]'
                )
            if unknown := [n for n in entry.scenes if n not in known]:
                raise BenchError(
                    f"variant {entry.name} names {unknown[0]!r}, which is not a scene of this bench"
                )
        for entry in self.pool:
            if unknown := [n for n in (*entry.sources, *entry.targets) if n not in known]:
                raise BenchError(
                    f"pool {entry.name} names {unknown[0]!r}, which is not a scene of this bench"
                )

    def pools(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Sources of every target, by pool.

        Two pools always exist, unless the file redefines them: `pool` leaves out one scene at a
        time, `strict` the whole family of the target. With fold models, `one-model` and
        `out-of-fold` are `pool` learned from training views, with targets from the deployed
        model and from models that have not seen the view; `paper` is the latter with penalties
        chosen by rank. `pool@R` is `pool` on fields of ridge R. Targets without sources are
        dropped.
        """
        family = {entry.name: entry.family for entry in self.scene}
        names = tuple(family)
        found = {
            MAIN_POOL: {t: tuple(s for s in names if s != t) for t in names},
            "strict": {t: tuple(s for s in names if family[s] != family[t]) for t in names},
        }
        for entry in self.pool:
            targets = entry.targets or tuple(n for n in names if n not in entry.sources)
            found[entry.name] = {t: tuple(s for s in entry.sources if s != t) for t in targets}
        if self.members.folds:
            found |= {pool: found["pool"] for pool in FOLD_POOLS if pool not in found}
        found |= {at_ridge("pool", ridge): found["pool"] for ridge in self.study.ridges}
        chosen = {
            pool: {target: sources for target, sources in rows.items() if sources}
            for pool, rows in found.items()
        }
        return {pool: rows for pool, rows in chosen.items() if rows}

    def guide_pools(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """The pools whose guides are learned: those that differ by their sources alone."""
        if not self.study.guided:
            return {}
        return {
            pool: rows
            for pool, rows in self.pools().items()
            if pool not in FOLD_POOLS
            and ridge_of(pool) is None
            and self.learning(pool) == self.learn
        }

    def learning(self, pool: str) -> LearnConfig:
        """How the predictors of a pool are learned."""
        entry = next((entry for entry in self.pool if entry.name == pool), None)
        own = {name: getattr(entry, name, None) for name in ("views", "prior", "penalty")}
        if entry is None and pool in FOLD_POOLS:
            own["views"] = "training"
        if entry is None and pool == PAPER:
            own |= {"prior": "flat", "penalty": "rank"}
        return dataclasses.replace(self.learn, **{k: v for k, v in own.items() if v is not None})

    def member_is_main(self) -> bool:
        """Whether members have the size of the main model, so that it is one of them."""
        same = self.members.resolution in (0, self.capture.resolution)
        return same and self.members.iterations == self.train.iterations
