# SPDX-License-Identifier: Apache-2.0
"""The study of one model: phases 2 and 3 from its certificate, then every map on every label.

Scales come first: the whole batch is rendered and hashed before any held-out photograph is
opened. Nothing is chosen here: scores are stored at every shrinkage and concentration, and
tables choose among them on source scenes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatcert import __version__
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.hashes import joint_hash
from splatcert.certificate.sights import calibration_sights
from splatcert.conformal.levels import parse_level
from splatcert.conformal.splits import calibration_size
from splatcert.deploy import load_certificate
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.scene.roles import EvaluationView
from splatcert.scene.scene import Scene
from splatcert.splats.files import load_splats
from splatcert.storage.whole import output_folder
from splatcert_bench.baselines.baseline import Fitted, Members
from splatcert_bench.baselines.ensemble import Ensemble
from splatcert_bench.baselines.gsu import ResidualMap
from splatcert_bench.baselines.named import maker_of
from splatcert_bench.run.entries import ENSEMBLE, FULL_ENSEMBLE, BenchError
from splatcert_bench.run.layout import Model
from splatcert_bench.run.settings import at_ridge
from splatcert_bench.studies.access import save_study_ledger
from splatcert_bench.studies.batch import (
    FIELD,
    MODEL,
    Batch,
    around_ensemble_mean,
    query_batch,
    timed_cameras,
)
from splatcert_bench.studies.checks import packing, visibility_facts
from splatcert_bench.studies.collection import PREFERRED, SHOWN, page_order, spread
from splatcert_bench.studies.counts import RatioCounts, ViewPicture
from splatcert_bench.studies.scores import Label, Scored, score_batch
from splatcert_bench.studies.study import SHAPE, Study
from splatcert_bench.studies.study_file import save_study

ENSEMBLES = (ENSEMBLE, FULL_ENSEMBLE)
PICTURED = {"easiest": 0.0, "median": 0.5, "hardest": 1.0}
"""Views shown in figures, by their position in the order of oracle factors."""


def fitted_model(
    model: Model, scene: Scene, ridge: float | None = None
) -> tuple[Certificate, Fitted]:
    """The certificate of a model, and everything fitted on its training views."""
    splats = load_splats(model.run / "splats.ply")
    certificate = load_certificate(model.certificate_at(ridge), splats)
    backend = model.bench.config.backend
    return certificate, Fitted(certificate.fitted, scene.training, backend=backend)


def members_of(model: Model) -> dict[str, Members]:
    """The ensembles, which only a scene's main model has, by their name in `Fitted`."""
    entries = {ENSEMBLE: "members", FULL_ENSEMBLE: "full_members"}
    found = {}
    for one in model.bench.ensembles(model.scene) if model.is_main else ():
        splats = [load_splats(run / "splats.ply") for run in one.runs]
        found[entries[one.kind]] = Members(splats, one.side or None)
    return found


def make_study(model: Model) -> None:
    """Score every map on every held-out view and write studies without predictions."""
    scene = model.bench.load(model.scene)
    refuse_few(scene, model)
    certificate, fitted = fitted_model(model, scene)
    fitted = replace(fitted, **members_of(model))
    lacking = {FIELD, *(ENSEMBLES if not model.is_main else ())}
    lacking |= {*ENSEMBLES} - {one.kind for one in model.bench.ensembles(model.scene)}
    methods = [name for name in model.bench.config.study.methods if name not in lacking]
    beside = model.bench.file.parent
    baselines = {name: maker_of(name, beside)(fitted) for name in methods}
    for ridge in model.ridges:
        if ridge is not None:
            baselines[at_ridge(FIELD, ridge)] = ResidualMap(fitted_model(model, scene, ridge)[1])
    batches = [query_batch(scene, fitted, baselines)]
    if isinstance(ensemble := baselines.get(ENSEMBLE), Ensemble):
        batches.append(around_ensemble_mean(scene, batches[0], ensemble))
    facts = label_free_facts(model, scene, fitted)
    fixed = {batch.centre: batch.hash() for batch in batches}
    before = len(scene.held_out.ledger.entries)

    labelled = scene.held_out.reveal("evaluation", scene.held_out.with_photo, by="bench study")
    facts |= {"labels.before": float(before), "labels.after": float(len(labelled))}
    output_folder(model.raw_study, inside=model.bench.out)
    output_folder(model.bench.out / "studies")
    save_study_ledger(scene.held_out.ledger.entries, before, model.study_ledger)
    for batch in batches:
        is_main = model.is_main and batch is batches[0]
        scored = score_batch(batch, labelled, betas_of(model), count=is_main)
        study = assemble(model, certificate, scored, batch, facts)
        study = replace(study, hashes={**study.hashes, "scales": fixed[batch.centre]})
        save_study(study, model.raw_study / f"{study.key}.npz")
        if is_main:
            counts = RatioCounts(study.key, scored.counts, scored.tenths)
            counts.save(model.bench.out / "studies" / f"{study.key}.ratios.npz")
            save_pictures(model, study, batch, labelled)


def refuse_few(scene: Scene, model: Model) -> None:
    """Refuse scenes with fewer held-out photographs than a split requires."""
    count = len(scene.held_out.with_photo)
    needed = calibration_size(count) + 1
    if count < needed:
        raise BenchError(
            f"scene {model.scene} has {count} held-out photos; splits calibrate on {needed - 1} "
            "and test on the rest.\n  Remove the scene, or hold out more of its photos."
        )


def betas_of(model: Model) -> tuple[Fraction, ...]:
    """Pixel levels of a study, ascending."""
    return tuple(sorted({parse_level(b, "beta") for b in model.bench.config.study.betas}))


def label_free_facts(model: Model, scene: Scene, fitted: Fitted) -> dict[str, float]:
    """Facts about a model that require no held-out label."""
    cameras = timed_cameras(scene, model.bench.config.study.timed_views)
    gavis = any(name.startswith("gavis") for name in model.bench.config.study.methods)
    return {
        "training_views": float(len(scene.training)),
        "gaussians": float(len(fitted.scene.splats)),
        **packing(fitted, cameras),
        **(visibility_facts(scene, fitted) if gavis else {}),
    }


def assemble(
    model: Model, certificate: Certificate, scored: Scored, batch: Batch, facts: dict[str, float]
) -> Study:
    """The study, with its settings and the hashes of its inputs."""
    config, record, trained = model.bench.config, certificate.record, model.trained_with()
    calibration = record.calibration
    width, height = _size(batch)
    settings = {
        "profile": config.profile,
        "resolution": f"{width}x{height}",
        "recipe": str(trained["recipe"]),
        "iterations": str(trained["iterations"]),
        "seed": str(trained["seed"]),
        "members": str(config.members.count if model.is_main else 0),
        "full members": str(model.bench.entry(model.scene).full_members if model.is_main else 0),
        "member resolution": str(model.bench.member_side),
        "member iterations": str(config.members.iterations),
        "renderer": str(record.renderer.name),
        "splatcert": __version__,
    }
    return Study(
        scene=model.scene,
        family=model.bench.entry(model.scene).family,
        backbone=model.variant,
        centre=batch.centre,
        names=scored.names,
        betas=betas_of(model),
        pixels=scored.pixels,
        psnr=scored.psnr,
        field_means=scored.field_means,
        maps=scored.maps,
        predictions={},
        facts=facts,
        settings=settings,
        hashes={
            "splats": record.model.splats,
            "training photos": joint_hash(view.image for view in record.training),
            "held-out photos": joint_hash(view.image for view in calibration),
            "poses": joint_hash(view.pose for view in (*record.training, *calibration)),
        },
        centres=np.array([batch.views[name].camera.centre for name in scored.names]),
        strangeness=strangeness_of(certificate, scored.names),
    )


def strangeness_of(certificate: Certificate, names: Sequence[str]) -> NDArray[np.float64]:
    """How strange the certificate's flag finds each held-out camera, [V]."""
    calibration, limit = certificate.record.calibration, certificate.record.strangeness
    if limit is None:
        return np.empty(0)
    sights = calibration_sights(calibration, certificate.views)
    scores = limit.units.scores(sights, certificate.poses)
    found = dict(zip((view.name for view in calibration), scores, strict=True))
    return np.array([found[name] for name in names])


def _size(batch: Batch) -> tuple[int, int]:
    height, width, _ = next(iter(batch.views.values())).centre.shape
    return width, height


def save_pictures(
    model: Model, study: Study, batch: Batch, labelled: Sequence[EvaluationView]
) -> None:
    """Store the views that figures show, by their place in the order of oracle factors."""
    half = LAMBDA_GRID.index(Fraction(1, 2))
    oracle = study.map(SHAPE).scores[:, study.beta_index("1/10"), half]
    order = np.argsort(oracle, kind="stable")
    for path in picture_files(model):
        place = PICTURED[path.name.split(".")[-3]]
        view = labelled[int(order[round(place * (len(order) - 1))])]
        shown = batch.views[view.name]
        label = Label.of(view, shown.centre)
        residual = label.residual.astype(np.float32)
        if label.mask is not None:
            residual[~label.mask] = np.nan
        pixels = np.round(shown.centre.numpy() * 255).astype(np.uint8)
        field = shown.maps[FIELD].numpy()
        picture = ViewPicture(study.key, view.name, pixels, field, residual)
        picture.save(path)


def picture_files(model: Model) -> list[Path]:
    """Pictures of a scene that the figures show: chosen by the list of scenes, before any result.

    One scene has all three; a few others, of other families if possible, have their median view.
    """
    if not model.is_main:
        return []
    entries = [(entry.family, entry.name) for entry in model.bench.config.scene]
    first = min(entries, key=lambda entry: (entry[1] != PREFERRED, entry[1]))
    rest = [e for e in spread([first, *sorted(entries, key=page_order)], SHOWN + 1) if e != first]
    names = list(PICTURED) if model.scene == first[1] else ["median"]
    if model.scene not in [first[1], *(name for _, name in rest[: SHOWN - 1])]:
        return []
    folder, key = model.bench.out / "studies", model.study_key(MODEL)
    return [folder / f"{key}.{name}.picture.npz" for name in names]
