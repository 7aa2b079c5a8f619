# SPDX-License-Identifier: Apache-2.0
"""From what the phases have found to a certificate: every entry of its record, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from typing import Any, cast

import numpy as np

from splatcert import __version__
from splatcert.camera import CameraRecord, camera_hash
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.diagnostics import (
    Levels,
    SupportLimits,
    doubt_exchangeability,
    estimate_by_splits,
)
from splatcert.certificate.freeze import FrozenScales
from splatcert.certificate.hashes import Mark, label_hash, photo_file_hash, photo_mark, place_mark
from splatcert.certificate.measure import ViewGroup
from splatcert.certificate.record import (
    CalibrationRecord,
    CountedPixels,
    FieldRecord,
    Guarantee,
    HandOver,
    HeldOutBy,
    LabelRecord,
    LoadRecord,
    Record,
    ScaleRecord,
    SceneRecord,
    TrainingRecord,
)
from splatcert.certificate.request import Request
from splatcert.conformal.calibrate import state_guarantee, threshold_of
from splatcert.conformal.ranks import outer_rank
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.views_file import SceneViews
from splatcert.field.fit import FieldFit
from splatcert.scene.roles import CalibrationView, LabelLedger, TrainingView
from splatcert.scene.scene import Scene


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """What the phases have found."""

    seen: tuple[TrainingRecord, ...]
    """Training views with the hashes of their labels."""
    fit: FieldFit
    training: ViewGroup
    held_out: ViewGroup
    scales: FrozenScales
    calibration: Sequence[CalibrationView]


def issue(request: Request, found: Findings) -> Certificate:
    """The certificate that follows."""
    alpha, beta, config, scene = request.alpha, request.beta, request.config, request.scene
    calibrated = found.held_out.chosen([view.name for view in found.calibration])
    scores = {name: calibrated.measured[name].score for name in calibrated.names}
    scale = found.scales.rule.record()
    records = calibration_records(found)
    views = scene_views(request, found, records)
    record = Record(
        splatcert=__version__,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        guarantee=guarantee_of(
            list(scores.values()), (alpha, beta), counted_pixels(views, records), scale
        ),
        config=replace(config, alpha=str(alpha), beta=str(beta)),
        scale=scale,
        model=request.model,
        renderer=request.renderer,
        scene=scene_record(scene),
        field=field_record(found.fit),
        labels=label_record(found.scales, scene.held_out.ledger),
        training=found.seen,
        calibration=records,
        unlabelled=tuple(q for name, q in found.scales.queries.items() if name not in scores),
        support=SupportLimits.of(calibrated.descriptors, calibrated.cameras),
        exchangeability=doubt_exchangeability(scores, scene.cameras, config.seed),
        splits=estimate_by_splits(
            views,
            {one.name: one.factor for one in records},
            (alpha, beta),
            scale.lambda_b,
            splits=config.splits,
            seed=config.seed,
        ),
        files={},
        seal="",
    )
    return Certificate(record, found.fit, views, request.splats)


def counted_pixels(views: SceneViews, calibration: Sequence[CalibrationRecord]) -> CountedPixels:
    """Which pixels the scores of these views are about."""
    return CountedPixels.of(views, {view.name: view.camera.camera() for view in calibration})


def guarantee_of(
    scores: Sequence[float], levels: Levels, counted: CountedPixels, scale: ScaleRecord
) -> Guarantee:
    """eq:outer-quantile, and its meaning in words."""
    alpha, beta = levels
    about = {"masked": counted.masked_views > 0, "batch_only": scale.batch_only}
    return Guarantee(
        alpha=alpha,
        beta=beta,
        views=len(scores),
        rank=outer_rank(len(scores), alpha),
        threshold=threshold_of(np.array(scores), alpha),
        counted=counted,
        statement=state_guarantee(alpha, beta, len(scores), **about),
    )


def training_record(view: TrainingView) -> TrainingRecord:
    """A training view with the hashes of its label."""
    return TrainingRecord(
        name=view.name,
        camera=CameraRecord.of(view.camera),
        pose=camera_hash(view.camera),
        image=label_hash(view),
        file=photo_file_hash(view),
    )


def calibration_records(found: Findings) -> tuple[CalibrationRecord, ...]:
    """The frozen queries of the calibration views, with what their labels gave."""
    records = []
    for view in found.calibration:
        query = found.scales.queries[view.name]
        frozen = {entry.name: getattr(query, entry.name) for entry in fields(query)}
        score = found.held_out.measured[view.name].score
        hashes = {"image": label_hash(view), "file": photo_file_hash(view)}
        records.append(CalibrationRecord(**frozen, **hashes, score=score))
    return tuple(records)


def scene_record(scene: Scene) -> SceneRecord:
    """The capture in few words."""
    sizes = Counter(f"{c.width}x{c.height}" for c in scene.cameras.values())
    return SceneRecord(
        name=scene.path.name,
        format=scene.format,
        split=str(scene.details.get("split", "as given")),
        held_out_by=cast("HeldOutBy", scene.details.get("held_out_by", "user")),
        sizes=dict(sorted(sizes.items())),
        extent=scene.extent,
        loaded=None if scene.format == "memory" else load_record(scene.details),
    )


def load_record(details: Mapping[str, Any]) -> LoadRecord:
    """The options that `load_scene` was given, as far as they decide about pixels."""
    resolution, masks = details.get("resolution"), details.get("masks asked for")
    return LoadRecord(
        images=details.get("images"),
        resolution=None if resolution is None else str(resolution),
        background=details.get("background"),
        masks="off" if masks is False else masks,
    )


def field_record(fit: FieldFit) -> FieldRecord:
    """How the fit ended."""
    trace = fit.field.trace
    return FieldRecord(
        prior=float(fit.field.prior),
        ridge=float(fit.field.ridge),
        steps=trace.steps,
        converged=trace.converged,
        ending=trace.sentence(),
        residual=float(trace.true_residual),
        training_psnr=float(np.nanmean(fit.psnr)),
    )


def label_record(scales: FrozenScales, ledger: LabelLedger) -> LabelRecord:
    """When scales were fixed and labels handed out."""
    entries = tuple(
        HandOver(order=e.order, purpose=e.purpose, by=e.by, views=e.views) for e in ledger.entries
    )
    return LabelRecord(
        frozen=scales.hash, handed_out_before=scales.handed_out_before, ledger=entries
    )


def scene_views(
    request: Request, found: Findings, calibration: Sequence[CalibrationRecord]
) -> SceneViews:
    """The per-view numbers that `learn` and every table are made from.

    Its hashes name the labels behind them, so that a predictor learned from them can be
    kept away from certificates that calibrate on the same photographs.
    """
    hashes = {"splats": request.model.splats} | view_marks(found.seen, calibration)
    return SceneViews(
        scene=request.scene.path.name,
        schema=FEATURE_NAMES,
        betas=request.betas,
        training=found.training.table(request.betas),
        held_out=found.held_out.table(request.betas),
        hashes=hashes,
    )


def view_marks(
    training: Sequence[TrainingRecord], calibration: Sequence[CalibrationRecord]
) -> dict[str, str]:
    """Marks of all labels that were used, by role and name."""
    marks = {}
    for role, views in (("training", training), ("held-out", calibration)):
        for view in views:
            place = place_mark(view.camera.camera())
            marks[f"{role} {view.name}"] = str(Mark(photo_mark(view.image, view.file), place))
    return marks
