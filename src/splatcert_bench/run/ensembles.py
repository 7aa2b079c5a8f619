# SPDX-License-Identifier: Apache-2.0
"""The ensembles of a scene: where their models are, and how they are trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from splatcert.config import TrainConfig
from splatcert.scene.scene import Scene
from splatcert_bench.run.entries import ENSEMBLE, FULL_ENSEMBLE, EnsembleKind

if TYPE_CHECKING:
    from splatcert_bench.run.layout import Bench


@dataclass(frozen=True)
class EnsembleRuns:
    """The models of an ensemble: their runs, and how they are trained."""

    bench: Bench
    scene: str
    kind: EnsembleKind

    @property
    def count(self) -> int:
        """Number of members."""
        entry, config = self.bench.entry(self.scene), self.bench.config
        return config.members.count if self.kind == ENSEMBLE else entry.full_members

    @property
    def has_main(self) -> bool:
        """Whether the main model is the first member, because all are like it."""
        return self.kind == FULL_ENSEMBLE or self.bench.config.member_is_main()

    @property
    def side(self) -> int:
        """Longest side of the members' photographs; 0 means full size."""
        return self.bench.config.capture.resolution if self.has_main else self.bench.member_side

    def load(self) -> Scene:
        """The scene at the members' resolution."""
        return self.bench.load(self.scene, members=not self.has_main)

    def run(self, index: int) -> Path:
        """Run folder of a member."""
        if index == 0 and self.has_main:
            return self.bench.main(self.scene).run
        stem = "member" if self.kind == ENSEMBLE else "full"
        return self.bench.folder(self.scene) / f"{stem}_{index:02d}"

    @property
    def runs(self) -> list[Path]:
        """Run folders of all members."""
        return [self.run(index) for index in range(self.count)]

    @property
    def trained(self) -> range:
        """Members that have a job of their own."""
        return range(1 if self.has_main else 0, self.count)

    def job(self, index: int) -> str:
        """Name of the job that trains a member."""
        return f"{self.scene}/{self.run(index).name}"

    def config(self, index: int) -> TrainConfig:
        """How a member is trained; its seed is its own."""
        seed = self.bench.config.train.seed + index
        if self.kind == FULL_ENSEMBLE:
            return replace(self.bench.config.train, seed=seed)
        return self.bench.member_config(seed)
