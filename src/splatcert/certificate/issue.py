# SPDX-License-Identifier: Apache-2.0
"""From finished records to a certificate's record: every entry, once. No tensor is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from fractions import Fraction

import numpy as np

from splatcert import __version__
from splatcert.certificate.diagnostics import (
    Levels,
    SupportLimits,
    estimate_by_splits,
    exchangeability_test,
)
from splatcert.certificate.field_file import FieldArrays
from splatcert.certificate.hashes import Mark, photo_mark, place_mark
from splatcert.certificate.record import (
    CalibrationRecord,
    CountedPixels,
    FieldRecord,
    Guarantee,
    LabelRecord,
    LabelUse,
    ModelRecord,
    QueryRecord,
    Record,
    RendererRecord,
    ScaleRecord,
    SceneRecord,
    TrainingRecord,
)
from splatcert.config import CertifyConfig
from splatcert.conformal.calibrate import state_guarantee
from splatcert.conformal.ranks import outer_rank
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.views_file import SceneViews, ViewTable


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the phases have found, in records."""

    levels: Levels
    threshold: float
    """q."""
    config: CertifyConfig
    scene: SceneRecord
    model: ModelRecord
    renderer: RendererRecord
    field: FieldRecord
    scale: ScaleRecord
    labels: LabelRecord
    training: tuple[TrainingRecord, ...]
    calibration: tuple[CalibrationRecord, ...]
    queries: tuple[QueryRecord, ...]
    """Every view of the batch as it was frozen."""
    betas: tuple[Fraction, ...]
    """Levels at which the scores of every view are kept."""

    @property
    def unlabelled(self) -> tuple[QueryRecord, ...]:
        """Held-out views without a photograph."""
        labelled = {view.name for view in self.calibration}
        return tuple(query for query in self.queries if query.name not in labelled)


def issue(found: Findings, field: FieldArrays) -> tuple[Record, FieldArrays, SceneViews]:
    """The record that follows, the field, and the numbers of every view."""
    alpha, beta = found.levels
    config, calibration = found.config, found.calibration
    views = scene_views(found)
    cameras = {
        view.name: view.camera for view in (*found.training, *calibration, *found.unlabelled)
    }
    record = Record(
        splatcert=__version__,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        guarantee=guarantee_of(
            found.threshold,
            len(calibration),
            found.levels,
            counted_pixels(views, calibration),
            found.scale,
        ),
        config=replace(config, alpha=str(alpha), beta=str(beta)),
        scale=found.scale,
        model=found.model,
        renderer=found.renderer,
        scene=found.scene,
        field=found.field,
        labels=found.labels,
        training=found.training,
        calibration=calibration,
        unlabelled=found.unlabelled,
        support=SupportLimits.of(
            np.array([view.descriptor for view in calibration]),
            [view.camera for view in calibration],
        ),
        exchangeability=exchangeability_test(
            {view.name: view.score for view in calibration}, cameras, config.seed
        ),
        splits=estimate_by_splits(
            views,
            {view.name: view.factor for view in calibration},
            found.levels,
            found.scale.shape,
            splits=config.splits,
            seed=config.seed,
        ),
        files={},
        seal="",
    )
    return record, field, views


def counted_pixels(views: SceneViews, calibration: Sequence[CalibrationRecord]) -> CountedPixels:
    """Which pixels the scores of these views are about."""
    return CountedPixels.of(views, {view.name: view.camera for view in calibration})


def guarantee_of(
    q: float, views: int, levels: Levels, counted: CountedPixels, scale: ScaleRecord
) -> Guarantee:
    """What a threshold that was calibrated on so many views promises, in numbers and words."""
    alpha, beta = levels
    about = {"masked": counted.masked_views > 0, "batch_only": scale.batch_only}
    return Guarantee(
        alpha=alpha,
        beta=beta,
        views=views,
        rank=outer_rank(views, alpha),
        threshold=q,
        counted=counted,
        statement=state_guarantee(alpha, beta, views, **about),
    )


def scene_views(found: Findings) -> SceneViews:
    """The per-view numbers that `learn` and every table are made from.

    Its hashes name the labels behind them, so that a predictor learned from them can be
    kept away from certificates that calibrate on the same photographs.
    """
    held_out = sorted((*found.calibration, *found.unlabelled), key=lambda view: view.name)
    marks = view_marks(found.training, found.calibration)
    return SceneViews(
        scene=found.scene.name,
        schema=FEATURE_NAMES,
        betas=found.betas,
        training=ViewTable.of(found.training, len(found.betas)),
        held_out=ViewTable.of(held_out, len(found.betas)),
        hashes={"splats": found.model.splats} | marks,
    )


def view_marks(
    training: Sequence[TrainingRecord], calibration: Sequence[CalibrationRecord]
) -> dict[str, str]:
    """Marks of all labels that were used, by role and name."""
    marks = {}
    for role, views in (("training", training), ("held-out", calibration)):
        for view in views:
            mark = Mark(photo_mark(view.image, view.file), place_mark(view.camera))
            marks[f"{role} {view.name}"] = str(mark)
    return marks


def label_record(frozen: str, used_before: int, ledger: Sequence[LabelUse]) -> LabelRecord:
    """When scales were fixed, and every use of held-out labels."""
    return LabelRecord(frozen=frozen, handed_out_before=used_before, ledger=tuple(ledger))
