# SPDX-License-Identifier: Apache-2.0
"""The work of each job: train a model, certify it, measure its latency and its scales."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np

from splatcert.capture import Capture
from splatcert.certificate.store import VIEWS
from splatcert.config import CertifyConfig, TrainConfig
from splatcert.conformal.calibrate import CalibrationTooSmall, view_scores
from splatcert.conformal.maps import rgb_residual
from splatcert.difficulty.factor import LAMBDA_GRID, shape
from splatcert.difficulty.views_file import SceneViews
from splatcert.field.support import folds_of
from splatcert.pipeline import certify
from splatcert.raster.render import render
from splatcert.scales.paper import PaperScale
from splatcert.scales.scale import ScaledView
from splatcert.scene.scene import Scene
from splatcert.splats.files import load_splats
from splatcert.storage.schema import JsonError, read_json
from splatcert.storage.whole import write_text_whole
from splatcert.training.run import RunError, TrainingRun, request_of
from splatcert_bench.baselines.visibility_sums import add_up_visibility
from splatcert_bench.run.ensembles import EnsembleRuns
from splatcert_bench.run.entries import BenchError
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.studies.access import save_study_ledger
from splatcert_bench.studies.batch import timed_cameras
from splatcert_bench.studies.checks import measure_latency
from splatcert_bench.studies.make_study import betas_of, fitted_model, members_of
from splatcert_bench.studies.predictions import applied_predictors
from splatcert_bench.studies.scores import Label
from splatcert_bench.studies.study_file import save_audit


def train_model(model: Model) -> None:
    """Train the main model of a scene, or one that is trained in another way."""
    scene = model.bench.load(model.scene)
    if model.given is not None:
        refuse_other_views(model.given, scene, model)
        return
    train(model.run, scene, model.config)


def refuse_other_views(run: Path, scene: Scene, model: Model) -> None:
    """Refuse a run that was trained on other photographs than this bench would use."""
    try:
        stored = read_json(run / "train.json", "training record")["request"]
    except (JsonError, KeyError, TypeError):
        raise BenchError(
            f"{run} is not a run of splatcert train: it has no usable train.json.\n"
            "  A bench requires such runs; use splatcert certify for other models."
        ) from None
    wanted = request_of(scene, model.config)
    for key in ("held_out_views", "training_views", "sizes"):
        if stored.get(key) != wanted[key]:
            raise BenchError(
                f"{run} was trained on a different split or resolution of {model.scene}: "
                f"{key.replace('_', ' ')} differ.\n"
                "  Set capture.holdout and capture.resolution to its values, or train again."
            )
    if (rule := stored.get("config", {}).get("density")) != model.config.density:
        raise BenchError(
            f"{run} was trained with density rule {rule!r}, but the main models of a bench use "
            f"{model.config.density!r}.\n"
            "  Remove the model entry, and the bench trains this scene itself."
        )


def train_member(ensemble: EnsembleRuns, index: int) -> None:
    """Train a member of an ensemble."""
    train(ensemble.run(index), ensemble.load(), ensemble.config(index))


def train_fold(bench: Bench, scene: str, index: int) -> None:
    """Train a model without one fold of the training views."""
    loaded = bench.load(scene, members=True)
    folds = folds_of(loaded.training.names, bench.config.members.folds)
    left_out = [n for n, fold in zip(loaded.training.names, folds, strict=True) if fold == index]
    without = tuple(sorted([*loaded.held_out.names, *left_out]))
    train(
        bench.fold(scene, index),
        bench.load(scene, members=True, without=without),
        bench.member_config(bench.config.train.seed),
    )


def train(folder: Path, scene: Scene, config: TrainConfig) -> None:
    """Resume a run, or start over if its settings differ."""
    run = TrainingRun(folder, scene, config)
    try:
        with run.opened():
            pass
    except RunError:
        shutil.rmtree(folder)
    with run.opened():
        if not run.finished:
            run.train()


def certify_model(model: Model, ridge: float | None = None) -> None:
    """Certify a model without a predictor: field, support, descriptors, per-view numbers."""
    config = model.bench.config
    scene = model.bench.load(model.scene)
    capture = Capture(
        scene=scene,
        splats=load_splats(model.run / "splats.ply"),
        unseen_by="model",
        background=config.train.background,
    )
    field = config.field if ridge is None else replace(config.field, ridge=ridge)
    asked = CertifyConfig(field=field, splits=config.evaluate.splits)
    folder = model.certificate_at(ridge)
    with catch_warnings():
        simplefilter("ignore", CalibrationTooSmall)  # nobody relies on this certificate
        certificate = certify(
            capture,
            scale=PaperScale(holes="paper"),
            config=asked,
            backend=config.backend,
            folder=folder,
            remember=False,
        )
    certificate.save(folder)


def fold_targets(model: Model) -> None:
    """Compute targets of a scene's views with models that have not seen them.

    The shape comes from the deployed model, as it will be used; centre and residual come from
    the fold model, at its own resolution.
    """
    bench = model.bench
    small, scene = bench.load(model.scene, members=True), bench.load(model.scene)
    _, fitted = fitted_model(model, scene)
    views = SceneViews.load(model.certificate / VIEWS)
    folds = folds_of(small.training.names, bench.config.members.folds)
    oracle = np.array(views.training.oracle)
    background = bench.config.train.background
    for index in range(bench.config.members.folds):
        splats = load_splats(bench.fold(model.scene, index) / "splats.ply")
        for row, view in enumerate(small.training):
            if folds[row] != index:
                continue
            picture = render(splats, view.camera, background=background, backend=fitted.backend)
            residual = rgb_residual(
                view.image().cpu().numpy(), picture.rgb.clamp(0, 1).cpu().numpy()
            )
            field = fitted.scene.query(view.camera, backend=fitted.backend).field.cpu()
            mask = view.mask().cpu().numpy() if view.has_mask else None
            at = views.training.names.index(view.name)
            for column, weight in enumerate(LAMBDA_GRID):
                scale = shape(field, weight).numpy()
                oracle[at, :, column] = view_scores(residual, scale, views.betas, mask)
    replace(views, training=replace(views.training, oracle=oracle)).save(model.fold_views)


def measure_deployed(model: Model, pools: Sequence[str]) -> None:
    """Measure the deployed scale of each pool on its maps, to audit the paper's identities."""
    bench, scene = model.bench, model.bench.load(model.scene)
    backend, betas = bench.config.backend, betas_of(model)
    applied = applied_predictors(model, pools, scene.held_out.with_photo)
    ridges = dict.fromkeys(one.ridge for one in applied.values())
    fields = {ridge: fitted_model(model, scene, ridge)[1].scene for ridge in ridges}
    before = len(scene.held_out.ledger.entries)
    labelled = scene.held_out.reveal("evaluation", scene.held_out.with_photo, by="bench audit")
    save_study_ledger(scene.held_out.ledger.entries, before, model.audit_ledger)
    scores = {pool: np.empty((len(labelled), len(betas))) for pool in applied}
    means = {pool: np.empty(len(labelled)) for pool in applied}
    for row, view in enumerate(labelled):
        shown = {r: field.query(view.camera, backend=backend) for r, field in fields.items()}
        label = Label.of(view, next(iter(shown.values())).center.cpu()) if shown else None
        for pool, one in applied.items():
            query = shown[one.ridge]
            scale = ScaledView.of(query, one.rule.factor_of(query), one.rule.lambda_b).scale()
            assert label is not None  # all fields of a model have one render
            scores[pool][row] = view_scores(label.residual, scale, betas, label.mask)
            means[pool][row] = label.counted(scale).mean()
    save_audit({pool: (scores[pool], means[pool]) for pool in applied}, model.audit)


def time_model(model: Model) -> None:
    """Measure the latency of a query."""
    scene = model.bench.load(model.scene)
    _, fitted = fitted_model(model, scene)
    fitted = replace(fitted, **members_of(model))
    study = model.bench.config.study
    cameras = timed_cameras(scene, study.timed_views)
    facts = measure_latency(fitted, cameras, study.repeats)
    if any(name.startswith("gavis") for name in study.methods):
        started = time.perf_counter()
        add_up_visibility(fitted.scene.splats, scene.training.cameras, fitted.backend)
        facts["seconds.gavis"] = time.perf_counter() - started
    write_text_whole(model.times, json.dumps(facts, indent=1) + "\n")
