# SPDX-License-Identifier: Apache-2.0
"""The jobs of a bench in an order in which they can run, each with its inputs."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from splatcert.certificate.store import FIELD, MAIN, VIEWS
from splatcert.storage.schema import to_plain
from splatcert.storage.whole import file_hash
from splatcert_bench.run.entries import ENSEMBLE
from splatcert_bench.run.evaluation import evaluate
from splatcert_bench.run.fingerprint import Task
from splatcert_bench.run.guided_jobs import guide_tasks, guided_scores, guides_of
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.run.settings import OUT_OF_FOLD, PAPER, at_ridge, ridge_of
from splatcert_bench.run.stages import (
    certify_model,
    fold_targets,
    time_model,
    train_fold,
    train_member,
    train_model,
)
from splatcert_bench.studies.batch import ENSEMBLE_MEAN, MODEL
from splatcert_bench.studies.make_study import PICTURED, make_study
from splatcert_bench.studies.predictions import add_predictions, learn_pool
from splatcert_bench.studies.study_file import VERSION
from splatcert_bench.synthetic.capture import capture_files, make_capture


def tasks_of(bench: Bench) -> list[Task]:
    """Every job, listed after the jobs it depends on."""
    tasks: list[Task] = []
    for entry in bench.config.scene:
        tasks += _captures(bench, entry.name)
    models = bench.models()
    # Main models first: everything else depends on them, and they take longest.
    tasks += [_train(model) for model in models]
    tasks += [_certify(model, ridge) for model in models for ridge in model.ridges]
    for entry in bench.config.scene:
        tasks += _members(bench, entry.name)
    tasks += [_study(model) for model in models]
    tasks += [_learn(bench, pool) for pool in bench.config.pools()]
    tasks += guide_tasks(bench)
    for model in models:
        tasks += guided_scores(model, _centres(model), _member_jobs(model))
    tasks += [_predict(model) for model in models]
    tasks += [_times(model) for model in models]
    tasks.append(_evaluate(bench))
    return tasks


def _captures(bench: Bench, scene: str) -> list[Task]:
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


def _train(model: Model) -> Task:
    bench, settings = model.bench, _capture_settings(model.bench, model.scene)
    settings["resolution"] = bench.config.capture.resolution
    if model.given is not None:
        settings["given"] = file_hash(model.given / "splats.ply")
    else:
        settings["train"] = to_plain(model.config)
    return Task(
        name=f"{model.label}/train",
        stage="train" if model.given is None else "",
        function=train_model,
        arguments=(model,),
        settings=settings,
        outputs=_run_files(model.run),
        after=_after_capture(bench, model.scene),
    )


def _members(bench: Bench, scene: str) -> list[Task]:
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
                    outputs=_run_files(ensemble.run(index)),
                    after=_after_capture(bench, scene),
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
                outputs=_run_files(run),
                after=_after_capture(bench, scene),
            )
        )
    return [*tasks, _fold_targets(bench, scene)] if folds else tasks


def _run_files(run: Path) -> tuple[Path, ...]:
    return (run / "splats.ply", run / "train.json")


def _fold_targets(bench: Bench, scene: str) -> Task:
    model = Model(bench, scene, bench.config.train.density)
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


def _certify(model: Model, ridge: float | None) -> Task:
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
        after=(f"{model.label}/train",),
    )


def _certify_jobs(model: Model) -> tuple[str, ...]:
    return tuple(_certify(model, ridge).name for ridge in model.ridges)


def _member_jobs(model: Model) -> tuple[str, ...]:
    """Jobs that train the ensembles of a model."""
    if not model.is_main:
        return ()
    ensembles = model.bench.ensembles(model.scene)
    return tuple(one.job(index) for one in ensembles for index in one.trained)


def _centres(model: Model) -> list[str]:
    """The centres of the boxes in the studies of a model."""
    config = model.bench.config
    with_ensemble = model.is_main and config.members.count and ENSEMBLE in config.study.methods
    return [MODEL, ENSEMBLE_MEAN] if with_ensemble else [MODEL]


def _study_files(model: Model) -> list[str]:
    names = []
    for centre in _centres(model):
        key = model.study_key(centre)
        names += [f"{key}.npz", f"{key}.ratios.npz"]
    return names + [f"{model.study_key(MODEL)}.{which}.picture.npz" for which in PICTURED]


def _study(model: Model) -> Task:
    config = model.bench.config
    return Task(
        name=f"{model.label}/study",
        stage="study",
        function=make_study,
        arguments=(model,),
        settings={
            "version": VERSION,
            "methods": list(config.study.methods),
            "betas": list(config.study.betas),
            "timed_views": config.study.timed_views,
            "profile": config.profile,
            "family": model.bench.entry(model.scene).family,
            "members": [[one.kind, one.count] for one in model.bench.ensembles(model.scene)],
        },
        outputs=tuple(model.raw_study / name for name in _study_files(model)),
        after=(*_certify_jobs(model), *_member_jobs(model)),
    )


def _learn(bench: Bench, pool: str) -> Task:
    targets = bench.config.pools()[pool]
    sources = sorted({scene for names in targets.values() for scene in names})
    ridge = ridge_of(pool)
    waits = "certify" if ridge is None else at_ridge("certify", ridge)
    if pool in (OUT_OF_FOLD, PAPER):
        waits = "fold-targets"
    return Task(
        name=f"learn/{pool}",
        stage="learn",
        function=learn_pool,
        arguments=(bench, pool),
        settings={"targets": to_plain(targets), "learn": to_plain(bench.config.learning(pool))},
        outputs=(bench.ledger(pool), *(bench.predictor(pool, target) for target in targets)),
        after=tuple(f"{scene}/{waits}" for scene in sources),
    )


def _predict(model: Model) -> Task:
    bench, pools = model.bench, model.pools
    return Task(
        name=f"{model.label}/predict",
        stage="predict",
        function=add_predictions,
        arguments=(model,),
        settings={"pools": pools},
        outputs=tuple(bench.out / "studies" / name for name in _study_files(model)),
        after=(f"{model.label}/study", *(f"learn/{pool}" for pool in pools)),
    )


def _times(model: Model) -> Task:
    study = model.bench.config.study
    return Task(
        name=f"{model.label}/times",
        stage="times",
        function=time_model,
        arguments=(model,),
        settings={"timed_views": study.timed_views, "repeats": study.repeats},
        outputs=(model.times,),
        after=(f"{model.label}/study", *(f"guide/{pool}" for pool in guides_of(model))),
    )


def _evaluate(bench: Bench) -> Task:
    models = bench.models()
    jobs = [f"{model.label}/{kind}" for model in models for kind in ("predict", "times")]
    jobs += [f"{model.label}/guided" for model in models if guides_of(model)]
    return Task(
        name="evaluate",
        stage="evaluate",
        function=evaluate,
        arguments=(bench,),
        settings={"evaluate": to_plain(bench.config.evaluate), "profile": bench.config.profile},
        outputs=(bench.out / "results.json",),
        after=tuple(jobs),
    )
