# SPDX-License-Identifier: Apache-2.0
"""The jobs of a bench in an order in which they can run, each with its inputs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from splatcert.storage.schema import to_plain
from splatcert_bench.jobs.guided_jobs import guide_tasks, guided_scores, guides_of
from splatcert_bench.jobs.model_jobs import (
    captures,
    certify,
    certify_jobs,
    member_jobs,
    members,
    train,
)
from splatcert_bench.run.entries import ENSEMBLE
from splatcert_bench.run.evaluation import evaluate
from splatcert_bench.run.fingerprint import Task
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.run.settings import (
    FOLD_POOLS,
    MAIN_POOL,
    OUT_OF_FOLD,
    PAPER,
    at_ridge,
    ridge_of,
)
from splatcert_bench.run.stages import measure_deployed, time_model
from splatcert_bench.studies import counts
from splatcert_bench.studies.batch import ENSEMBLE_MEAN, MODEL
from splatcert_bench.studies.make_study import make_study, picture_files
from splatcert_bench.studies.predictions import add_predictions, learn_pool
from splatcert_bench.studies.study_file import VERSION


def tasks_of(bench: Bench, skipped: Collection[str] = ()) -> list[Task]:
    """Every job, listed after the jobs it depends on.

    Without the jobs in `skipped`, which a later instalment runs: tables are then made from the
    studies that are there, and studies have the predictions of the pools that are learned.
    """
    tasks = [task for task in _tasks_about_models(bench) if task.name not in skipped]
    studied = [model for model in bench.models() if f"{model.label}/study" not in skipped]
    tasks += [_predict(model, skipped) for model in studied]
    return [*tasks, _evaluate(bench, studied, skipped)] if studied else tasks


def _tasks_about_models(bench: Bench) -> list[Task]:
    """All jobs but those that gather their results."""
    tasks: list[Task] = []
    for entry in bench.config.scene:
        tasks += captures(bench, entry.name)
    models = bench.models()
    mains = [model for model in models if model.is_main]
    others = [model for model in models if not model.is_main]
    # Main models first: everything else depends on them, and they take longest.
    tasks += [train(model) for model in mains]
    tasks += [certify(model, ridge) for model in mains for ridge in model.ridges]
    for entry in bench.config.scene:
        tasks += members(bench, entry.name)
    tasks += [train(model) for model in others if model.member is None]
    tasks += [certify(model, ridge) for model in others for ridge in model.ridges]
    tasks += [_study(model) for model in models]
    tasks += [_learn(bench, pool) for pool in bench.config.pools()]
    tasks += guide_tasks(bench)
    for model in models:
        tasks += guided_scores(model, _centres(model), member_jobs(model))
    tasks += [task for model in models for task in _audit(model)]
    return tasks + [_times(model) for model in models]


def _centres(model: Model) -> list[str]:
    """The centres of the boxes in the studies of a model."""
    config = model.bench.config
    with_ensemble = model.is_main and config.members.count and ENSEMBLE in config.study.methods
    return [MODEL, ENSEMBLE_MEAN] if with_ensemble else [MODEL]


def _study_files(model: Model, folder: Path) -> tuple[Path, ...]:
    return tuple(folder / f"{model.study_key(centre)}.npz" for centre in _centres(model))


def _beside_studies(model: Model) -> tuple[Path, ...]:
    """Ratios of a main model's study, and the views that figures show."""
    ratios = model.bench.out / "studies" / f"{model.study_key(MODEL)}.ratios.npz"
    return (ratios, *picture_files(model)) if model.is_main else ()


def _study(model: Model) -> Task:
    config = model.bench.config
    return Task(
        name=f"{model.label}/study",
        stage="study",
        function=make_study,
        arguments=(model,),
        settings={
            "version": [VERSION, counts.VERSION],
            "methods": list(config.study.methods),
            "betas": list(config.study.betas),
            "timed_views": config.study.timed_views,
            "profile": config.profile,
            "family": model.bench.entry(model.scene).family,
            "members": [[one.kind, one.count] for one in model.bench.ensembles(model.scene)],
        },
        outputs=(
            *_study_files(model, model.raw_study),
            model.study_ledger,
            *_beside_studies(model),
        ),
        bulky=tuple(picture_files(model)),  # a photograph shows in its residuals
        after=(*certify_jobs(model), *member_jobs(model)),
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
        is_light=True,
    )


def _audit(model: Model) -> list[Task]:
    """The job that measures the deployed scales: not those of fold models, which come late."""
    pools = [pool for pool in model.pools if pool not in FOLD_POOLS]
    if not pools:
        return []
    return [
        Task(
            name=f"{model.label}/audit",
            stage="audit",
            function=measure_deployed,
            arguments=(model, pools),
            settings={
                "version": VERSION,
                "pools": pools,
                "betas": list(model.bench.config.study.betas),
            },
            outputs=(model.audit, model.audit_ledger),
            after=(*certify_jobs(model), *(f"learn/{pool}" for pool in pools)),
        )
    ]


def _predict(model: Model, skipped: Collection[str]) -> Task:
    pools = [pool for pool in model.pools if f"learn/{pool}" not in skipped]
    audits = [task for task in _audit(model) if task.name not in skipped]
    measured = [pool for task in audits for pool in task.settings["pools"]]
    guided = MAIN_POOL in guides_of(model) and f"{model.label}/guided" not in skipped
    read = (f"{model.label}/study", *certify_jobs(model), *(task.name for task in audits))
    read += (f"{model.label}/guided", f"guide/{MAIN_POOL}") if guided else ()
    return Task(
        name=f"{model.label}/predict",
        stage="predict",
        function=add_predictions,
        arguments=(model, pools, measured, guided),
        settings={"pools": pools, "measured": measured, "guided": guided},
        outputs=_study_files(model, model.bench.out / "studies"),
        after=(*read, *(f"learn/{pool}" for pool in pools)),
        is_light=True,
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
        dated=(model.times,),
        after=(*certify_jobs(model)[:1], *member_jobs(model)),
    )


def _evaluate(bench: Bench, studied: list[Model], skipped: Collection[str]) -> Task:
    jobs = [f"{model.label}/{kind}" for model in studied for kind in ("predict", "times")]
    jobs += [f"{model.label}/guided" for model in studied if guides_of(model)]
    # Costs of training and certifying are in their records.
    jobs += [name for model in studied for name in (*member_jobs(model), *certify_jobs(model))]
    left_out = {"skipped": sorted(skipped)} if skipped else {}
    return Task(
        name="evaluate",
        stage="evaluate",
        function=evaluate,
        arguments=(bench, frozenset(skipped)),
        settings={"evaluate": to_plain(bench.config.evaluate), "profile": bench.config.profile}
        | left_out,
        outputs=(bench.out / "results.json", bench.out / "times.json"),
        dated=(bench.out / "times.json",),
        after=tuple(name for name in jobs if name not in skipped),
        is_light=True,
        reads_times=True,
    )
