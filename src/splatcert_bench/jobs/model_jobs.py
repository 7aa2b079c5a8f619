# SPDX-License-Identifier: Apache-2.0
"""The jobs that give a scene its models: captures, trainings, fold targets and certificates."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict

from splatcert.certificate.store import FIELD, MAIN, VIEWS
from splatcert.storage.schema import to_plain
from splatcert.storage.whole import file_hash
from splatcert_bench.run.entries import ENSEMBLE
from splatcert_bench.run.fingerprint import Task
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.run.stages import (
    certify_model,
    fold_targets,
    train_fold,
    train_member,
    train_model,
)
from splatcert_bench.synthetic.capture import capture_files, make_capture


def captures(bench: Bench, scene: str) -> list[Task]:
    """The job that makes a synthetic scene."""
    if bench.entry(scene).made is None:
        return []
    return [
        Task(
            name=f"{scene}/capture",
            stage="capture",
            function=make_capture,
            arguments=(bench, scene),
            settings=_capture_settings(bench, scene),
            outputs=capture_files(bench, scene),
            bulky=capture_files(bench, scene),
        )
    ]


def _capture_settings(bench: Bench, scene: str) -> dict[str, Any]:
    """The settings that determine the pixels of a scene."""
    entry = bench.entry(scene)
    found: dict[str, Any] = {"holdout": bench.config.capture.holdout, "images": entry.images}
    if entry.made is not None:
        return found | {"made": entry.made, **asdict(bench.config.made)}
    return found | {"files": listing_hash(bench.capture(scene))}


def listing_hash(folder: Path) -> str:
    """Hash of all file names and sizes of a capture; reading the files would take minutes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{path.relative_to(folder).as_posix()} {path.stat().st_size}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _after_capture(bench: Bench, scene: str) -> tuple[str, ...]:
    return () if bench.entry(scene).made is None else (f"{scene}/capture",)


def train(model: Model) -> Task:
    """The job that trains a model, or checks one that was given."""
    bench, settings = model.bench, _capture_settings(model.bench, model.scene)
    settings["resolution"] = bench.config.capture.resolution
    if model.given is not None:
        settings["given"] = file_hash(model.given / "splats.ply")
    else:
        settings["train"] = to_plain(model.config)
    return Task(
        name=model.training_job,
        stage="train" if model.given is None else "",
        function=train_model,
        arguments=(model,),
        settings=settings,
        after=_after_capture(bench, model.scene),
        **_run_files(model.run),
    )


def members(bench: Bench, scene: str) -> list[Task]:
    """Members and fold models of a scene."""
    settings, tasks = _capture_settings(bench, scene), []
    for ensemble in bench.ensembles(scene):
        for index in ensemble.trained:
            tasks.append(
                Task(
                    name=ensemble.job(index),
                    stage="member" if ensemble.kind == ENSEMBLE else "full-member",
                    function=train_member,
                    arguments=(ensemble, index),
                    settings=settings
                    | {"resolution": ensemble.side, "train": to_plain(ensemble.config(index))},
                    after=_after_capture(bench, scene),
                    **_run_files(ensemble.run(index)),
                )
            )
    folds = bench.config.members.folds
    trained = to_plain(bench.member_config(bench.config.train.seed))
    for index in range(folds):
        run = bench.fold(scene, index)
        own = {"resolution": bench.member_side, "train": trained, "fold": [index, folds]}
        tasks.append(
            Task(
                name=f"{scene}/{run.name}",
                stage="fold",
                function=train_fold,
                arguments=(bench, scene, index),
                settings=settings | own,
                after=_after_capture(bench, scene),
                **_run_files(run),
            )
        )
    return [*tasks, _fold_targets(bench, scene)] if folds else tasks


class RunFiles(TypedDict):
    """The outputs of a training, by what becomes of them."""

    outputs: tuple[Path, ...]
    bulky: tuple[Path, ...]
    dated: tuple[Path, ...]


def _run_files(run: Path) -> RunFiles:
    """A model, which is not kept, and the record of its training, which has its times."""
    splats, record = run / "splats.ply", run / "train.json"
    return {"outputs": (splats, record), "bulky": (splats,), "dated": (record,)}


def _fold_targets(bench: Bench, scene: str) -> Task:
    model = bench.main(scene)
    folds = tuple(f"{scene}/{bench.fold(scene, k).name}" for k in range(bench.config.members.folds))
    return Task(
        name=f"{scene}/fold-targets",
        stage="fold-targets",
        function=fold_targets,
        arguments=(model,),
        settings={"folds": len(folds), "resolution": bench.member_side},
        outputs=(model.fold_views,),
        after=(f"{scene}/certify", *folds),
    )


def certify(model: Model, ridge: float | None) -> Task:
    """The job that certifies a model, with another ridge of its field if given."""
    config = model.bench.config
    folder = model.certificate_at(ridge)
    return Task(
        name=f"{model.label}/{folder.name.replace('certificate', 'certify')}",
        stage="certify",
        function=certify_model,
        arguments=(model, ridge),
        settings={
            "field": to_plain(config.field),
            "background": list(config.train.background),
            "backend": config.backend,
            "splits": config.evaluate.splits,
            **({} if ridge is None else {"ridge": ridge}),
        },
        outputs=tuple(folder / name for name in (MAIN, FIELD, VIEWS)),
        bulky=(folder / FIELD,),
        dated=(folder / MAIN,),
        after=(model.training_job,),
    )


def certify_jobs(model: Model) -> tuple[str, ...]:
    """Jobs that certify a model, the one with the ridge of `[field]` first."""
    return tuple(certify(model, ridge).name for ridge in model.ridges)


def member_jobs(model: Model) -> tuple[str, ...]:
    """Jobs that train the ensembles of a model."""
    if not model.is_main:
        return ()
    ensembles = model.bench.ensembles(model.scene)
    return tuple(one.job(index) for one in ensembles for index in one.trained)
