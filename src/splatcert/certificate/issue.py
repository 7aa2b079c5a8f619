# SPDX-License-Identifier: Apache-2.0
"""Assembles a certificate's record from the finished records of its parts, without tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from fractions import Fraction

from splatcert import __version__
from splatcert.certificate.content.promise import PromiseRecord
from splatcert.certificate.content.record import (
    CalibrationRecord,
    Center,
    CountedPixels,
    FieldRecord,
    Guarantee,
    LabelRecord,
    ModelRecord,
    PhotoHistory,
    QueryRecord,
    Record,
    RendererRecord,
    ScaleRecord,
    SceneRecord,
    TrainingRecord,
)
from splatcert.certificate.diagnostics import (
    Levels,
    estimate_by_splits,
    evenness_test,
)
from splatcert.certificate.hashes import Mark, photo_mark, place_mark
from splatcert.certificate.sights import strangeness_limit
from splatcert.config import CertifyConfig
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.views_file import SceneViews, ViewTable


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The results of phase 4."""

    levels: Levels
    promise: PromiseRecord
    q: float
    views: tuple[CalibrationRecord, ...]
    labels: LabelRecord
    """Who used labels, and in which order."""
    history: PhotoHistory | None
    """Earlier calibrations on the same photos."""


def issue(
    found: Calibration,
    config: CertifyConfig,
    *,
    betas: tuple[Fraction, ...],
    scene: SceneRecord,
    model: ModelRecord,
    renderer: RendererRecord,
    field: FieldRecord,
    scale: ScaleRecord,
    center: Center,
    training: tuple[TrainingRecord, ...],
    queries: Iterable[QueryRecord],
) -> tuple[Record, SceneViews]:
    """The record that follows from the results of the phases, and the numbers of every view."""
    (alpha, beta), calibration, promise = found.levels, found.views, found.promise
    labelled = {view.name for view in calibration}
    unlabelled = tuple(query for query in queries if query.name not in labelled)
    views = SceneViews(
        scene=scene.name,
        schema=FEATURE_NAMES,
        betas=betas,
        training=ViewTable.of(training, len(betas)),
        held_out=ViewTable.of(
            sorted((*calibration, *unlabelled), key=lambda view: view.name), len(betas)
        ),
        hashes={"splats": model.splats} | view_marks(training, calibration),
    )
    cameras = {view.name: view.camera for view in (*training, *calibration, *unlabelled)}
    counted = counted_pixels(views, calibration)
    record = Record(
        splatcert=__version__,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        guarantee=guarantee_of(found.q, len(calibration), found.levels, counted, scale, promise),
        promise=promise,
        config=replace(config, alpha=str(alpha), beta=str(beta)),
        scale=scale,
        center=center,
        model=model,
        renderer=renderer,
        scene=scene,
        field=field,
        labels=found.labels,
        history=found.history,
        training=training,
        calibration=calibration,
        unlabelled=unlabelled,
        support=None,
        strangeness=strangeness_limit(scale, training, calibration, views, scene.extent),
        evenness=evenness_test(
            promise.scores({view.name: view.score for view in calibration}), cameras, config.seed
        ),
        splits=estimate_by_splits(
            views,
            {view.name: view.factor for view in calibration},
            found.levels,
            scale.shape,
            splits=config.splits,
            seed=config.seed,
        )
        if promise.is_plain
        else None,
        files={},
        seal="",
    )
    return record, views


def counted_pixels(views: SceneViews, calibration: Sequence[CalibrationRecord]) -> CountedPixels:
    """Which pixels the scores of these views are about."""
    return CountedPixels.of(views, {view.name: view.camera for view in calibration})


def guarantee_of(
    q: float,
    views: int,
    levels: Levels,
    counted: CountedPixels,
    scale: ScaleRecord,
    promise: PromiseRecord,
) -> Guarantee:
    """The guarantee of a threshold calibrated on this number of views, in numbers and words."""
    alpha, beta = levels
    about = {"masked": counted.masked_views > 0, "batch_only": scale.batch_only}
    return Guarantee(
        alpha=alpha,
        beta=beta,
        views=views,
        rank=promise.rank(views, alpha),
        threshold=q,
        counted=counted,
        statement=promise.statement(alpha, beta, views, **about),
    )


def view_marks(
    training: Sequence[TrainingRecord], calibration: Sequence[CalibrationRecord]
) -> dict[str, str]:
    """Marks of all labels that were used, by role and name.

    A predictor learned from these numbers is refused by certificates that calibrate on the
    same photographs.
    """
    marks = {}
    for role, views in (("training", training), ("held-out", calibration)):
        for view in views:
            mark = Mark(photo_mark(view.image, view.file), place_mark(view.camera))
            marks[f"{role} {view.name}"] = str(mark)
    return marks
