# SPDX-License-Identifier: Apache-2.0
"""The folders of a bench, and the names of its models.

OUT/bench.json                  the settings, with nothing left open
OUT/scenes/NAME/capture         photographs of a synthetic scene
OUT/scenes/NAME/VARIANT/        a model's run, its certificates, its study before predictors,
                                what was measured on its deployed scales, times
OUT/scenes/NAME/member_NN       runs of the ensemble
OUT/scenes/NAME/full_NN         runs of a second ensemble, of the main model's size and length
OUT/scenes/NAME/fold_NN         runs of the fold models
OUT/pools/POOL/TARGET.json      predictors, and guides as TARGET.guide.json
OUT/studies/KEY.npz             complete studies, from which tables are computed; guided
                                scales, ratios and pictures beside them
OUT/results.json, tables ...    results
OUT/jobs/NAME.json              records of finished jobs
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from splatcert.config import FieldConfig, TrainConfig
from splatcert.scene.load import load_scene
from splatcert.scene.scene import Scene
from splatcert.storage.schema import read_json
from splatcert_bench.run.ensembles import EnsembleRuns
from splatcert_bench.run.entries import (
    ENSEMBLE,
    FULL_ENSEMBLE,
    EnsembleKind,
    SceneEntry,
)
from splatcert_bench.run.settings import BenchConfig, ridge_of


@dataclass(frozen=True)
class Bench:
    """A bench and its paths; small, and the same on every machine that shares the disk."""

    config: BenchConfig
    out: Path
    data: Path
    """Folder that paths of captures are relative to."""
    file: Path
    """The TOML file; paths of models are relative to it."""

    def entry(self, scene: str) -> SceneEntry:
        """A scene of the list."""
        return next(entry for entry in self.config.scene if entry.name == scene)

    def models(self) -> list[Model]:
        """Every model that is certified and studied: one per scene and variant."""
        return [
            Model(self, entry.name, variant)
            for entry in self.config.scene
            for variant in self.variants(entry.name)
        ]

    def variants(self, scene: str) -> dict[str, dict[str, Any]]:
        """How the models of a scene are trained, by name: options that differ from `[train]`.

        The main model comes first; it is called by its density rule.
        """
        found: dict[str, dict[str, Any]] = {self.main_variant: {}}
        for rule in self.entry(scene).densities:
            found.setdefault(rule, {"density": rule})
        listed = [one for one in self.config.variant if scene in one.scenes]
        return found | {one.name: one.changes() for one in listed}

    @property
    def main_variant(self) -> str:
        """Name of main models."""
        return self.config.train.density

    def main(self, scene: str) -> Model:
        """The main model of a scene."""
        return Model(self, scene, self.main_variant)

    def folder(self, scene: str) -> Path:
        """The folder of a scene."""
        return self.out / "scenes" / scene

    def capture(self, scene: str) -> Path:
        """The folder of a scene's photographs."""
        entry = self.entry(scene)
        return self.folder(scene) / "capture" if entry.path is None else self.data / entry.path

    def load(
        self, scene: str, *, members: bool = False, without: tuple[str, ...] | None = None
    ) -> Scene:
        """Load a scene, at the members' resolution if asked, with the given views held out."""
        side = self.member_side if members else self.config.capture.resolution
        return load_scene(
            self.capture(scene),
            holdout=self.config.capture.holdout if without is None else without,
            images=self.entry(scene).images,
            resolution=side or None,
        )

    @property
    def member_side(self) -> int:
        """Longest side of the members' photographs; 0 means full size."""
        return self.config.members.resolution or self.config.capture.resolution

    def member_config(self, seed: int) -> TrainConfig:
        """How a member is trained."""
        members = self.config.members
        return replace(
            self.config.train,
            iterations=members.iterations,
            coarse_to_fine=members.coarse_to_fine,
            max_gaussians=members.max_gaussians or self.config.train.max_gaussians,
            seed=seed,
        )

    def ensembles(self, scene: str) -> list[EnsembleRuns]:
        """The ensembles of a scene's main model."""
        kinds: tuple[EnsembleKind, ...] = (ENSEMBLE, FULL_ENSEMBLE)
        return [one for kind in kinds if (one := EnsembleRuns(self, scene, kind)).count]

    def fold(self, scene: str, index: int) -> Path:
        """Run folder of a fold model."""
        return self.folder(scene) / f"fold_{index:02d}"

    def predictor(self, pool: str, target: str) -> Path:
        """File of the predictor learned for a target scene."""
        return self.out / "pools" / pool / f"{target}.json"

    def field(self, pool: str) -> FieldConfig:
        """How the residual fields of a pool's sources are fitted."""
        ridge = ridge_of(pool)
        return replace(self.config.field, ridge=self.config.field.ridge if ridge is None else ridge)

    def ledger(self, pool: str) -> Path:
        """File of the labels that a pool's predictors learned from."""
        return self.out / "pools" / pool / "ledger.json"

    def guide_ledger(self, pool: str) -> Path:
        """File of the labels that a pool's guides learned from."""
        return self.out / "pools" / pool / "guide-ledger.json"

    def guide(self, pool: str, target: str) -> Path:
        """File of the guide learned for a target scene."""
        return self.out / "pools" / pool / f"{target}.guide.json"


@dataclass(frozen=True)
class Model:
    """One scene trained in one way: what is certified and studied."""

    bench: Bench
    scene: str
    variant: str
    """Name of the way it is trained; the density rule for main models."""

    @property
    def is_main(self) -> bool:
        """Whether it is the scene's main model, the one with an ensemble and used as a source."""
        return self.variant == self.bench.main_variant

    @property
    def label(self) -> str:
        """Name used in job names."""
        return self.scene if self.is_main else f"{self.scene}+{self.variant}"

    @property
    def folder(self) -> Path:
        """Folder of its files."""
        return self.bench.folder(self.scene) / self.variant

    @property
    def given(self) -> Path | None:
        """A finished run given by the user, if any."""
        model = self.bench.entry(self.scene).model
        if model is None or not self.is_main:
            return None
        return self.bench.file.parent / model

    @property
    def run(self) -> Path:
        """The training run."""
        if self.member is not None:
            return EnsembleRuns(self.bench, self.scene, FULL_ENSEMBLE).run(self.member)
        return self.given or self.folder / "run"

    @property
    def member(self) -> int | None:
        """The member of the full ensemble that is this very model, if there is one."""
        if self.is_main:
            return None
        full = EnsembleRuns(self.bench, self.scene, FULL_ENSEMBLE)
        return next((k for k in full.trained if full.config(k) == self.config), None)

    @property
    def training_job(self) -> str:
        """Name of the job that trains it."""
        if self.member is not None:
            return EnsembleRuns(self.bench, self.scene, FULL_ENSEMBLE).job(self.member)
        return f"{self.label}/train"

    @property
    def config(self) -> TrainConfig:
        """How it is trained."""
        return replace(self.bench.config.train, **self.bench.variants(self.scene)[self.variant])

    def trained_with(self) -> dict[str, Any]:
        """Settings that the run was really trained with; a given one may have had its own."""
        return read_json(self.run / "train.json", "training record")["request"]["config"]

    @property
    def certificate(self) -> Path:
        """Field, support, descriptors and per-view numbers, as a certificate."""
        return self.folder / "certificate"

    def certificate_at(self, ridge: float | None) -> Path:
        """The same with another ridge of the field."""
        return self.certificate if ridge is None else self.folder / f"certificate@{ridge:g}"

    @property
    def ridges(self) -> tuple[float | None, ...]:
        """Ridges of its fields, the one of `[field]` first; further ones for main models only."""
        return (None, *(self.bench.config.study.ridges if self.is_main else ()))

    @property
    def pools(self) -> list[str]:
        """The pools with a predictor for it."""
        rows = self.bench.config.pools()
        return [p for p in rows if self.scene in rows[p] and ridge_of(p) in self.ridges]

    @property
    def guide_source(self) -> Path:
        """Pixels that guides of other scenes learn from."""
        return self.folder / "guide-source.npz"

    @property
    def raw_study(self) -> Path:
        """Folder of studies without predictions."""
        return self.folder / "study"

    @property
    def times(self) -> Path:
        """File of its measured latency."""
        return self.folder / "times.json"

    @property
    def guided_times(self) -> Path:
        """File of the measured latency of the guided scale."""
        return self.folder / "guided-times.json"

    @property
    def audit(self) -> Path:
        """Scores and means of the deployed scales, measured on their maps."""
        return self.folder / "audit.npz"

    @property
    def audit_ledger(self) -> Path:
        """Held-out labels that the audit used."""
        return self.folder / "audit-ledger.json"

    @property
    def guided_ledger(self) -> Path:
        """Held-out labels that scoring the guided scale used."""
        return self.folder / "guided-ledger.json"

    @property
    def study_ledger(self) -> Path:
        """Held-out labels that the study used."""
        return self.raw_study / "ledger.json"

    @property
    def fold_views(self) -> Path:
        """Per-view numbers with out-of-fold targets."""
        return self.folder / "out-of-fold.npz"

    def study_key(self, centre: str) -> str:
        """Name of a study."""
        return f"{self.scene}-{self.variant}-{centre}"
