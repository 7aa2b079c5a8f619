# SPDX-License-Identifier: Apache-2.0
"""Phase 2, training views: field and support first, then each view described by the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from splatcert.camera import Camera, camera_hash
from splatcert.certificate.content.record import ModelRecord, RendererRecord
from splatcert.certificate.content.view_records import TrainingRecord
from splatcert.certificate.field_file import KEPT
from splatcert.certificate.hashes import label_hash, photo_file_hash
from splatcert.certificate.store import field_inputs
from splatcert.config import FieldConfig
from splatcert.difficulty.descriptor import CameraGeometry
from splatcert.field.fit import FieldFit, fit_field
from splatcert.field.fitted_scene import FittedScene, Query
from splatcert.field.store import kept_field, save_field
from splatcert.field.support import folds_of
from splatcert.progress import Progress
from splatcert.raster.abreast import abreast
from splatcert.raster.render import Backend
from splatcert.scales.scoring import measure
from splatcert.scene.roles import TrainingView
from splatcert.scene.scene import TrainingViews
from splatcert.splats.gaussians import Splats
from splatcert.storage.whole import output_folder

STAGES = {"sweep": "rendering training views", "fit": "fitting the residual field"}
Look = Callable[[FittedScene, Camera, Backend], Query]


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingSide:
    """All data that a scale may be fitted on; it contains no held-out view."""

    splats: Splats
    views: TrainingViews
    """Training views with their photographs."""
    extent: float
    """Unit of distances."""
    background: tuple[float, float, float]
    backend: Backend
    field: FieldConfig
    model: ModelRecord
    renderer: RendererRecord
    betas: tuple[Fraction, ...]
    """Levels at which oracle factors of training views are stored."""


def fit_scene(
    side: TrainingSide, folder: Path | None, on: Progress
) -> tuple[tuple[TrainingRecord, ...], FieldFit, FittedScene]:
    """Records of the training views' labels, the field fitted to them, and the fitted scene."""
    seen = tuple(
        abreast(training_record, side.views, side.views.cameras, "reading training photos", on)
    )
    fit = _fitted_field(side, seen, folder, on)
    scene = fitted_scene(side.splats, fit, side.views.cameras, side.extent, side.background)
    return seen, fit, scene


def study(
    look: Look,
    side: TrainingSide,
    seen: Sequence[TrainingRecord],
    fit: FieldFit,
    scene: FittedScene,
    on: Progress,
) -> tuple[TrainingRecord, ...]:
    """Training views, each described by the cameras and the support of the other folds.

    The field is the scene's own, fitted to all of them. Predictors for other scenes may learn
    from their oracle factors (`splatcert learn`); certification does not use these.
    """
    folds = np.array(folds_of(side.views.names, len(fit.support)))
    opened = replace(scene, opened=fit.opened)
    elsewhere = [
        opened.out_of_fold(fit.support.without(fold), folds == fold)
        for fold in range(len(fit.support))
    ]

    def describe(known: tuple[TrainingRecord, TrainingView, int]) -> TrainingRecord:
        record, view, fold = known
        query = look(elsewhere[fold], view.camera, side.backend)
        found: dict[str, Any] = {
            "descriptor": query.descriptor,
            "field_mean": query.field_mean,
            "shares": query.shares,
        }
        if not view.has_mask or bool(view.mask().any()):
            found |= measure(view, query, side.betas)[0]._asdict()
        return replace(record, **found)

    views = list(zip(seen, side.views, folds.tolist(), strict=True))
    return tuple(abreast(describe, views, side.views.cameras, "describing training views", on))


def fitted_scene(
    splats: Splats,
    fit: FieldFit,
    cameras: Sequence[Camera],
    extent: float,
    background: tuple[float, float, float],
) -> FittedScene:
    """The model with everything derived from its training views at these cameras."""
    geometry = CameraGeometry(cameras, extent)
    return FittedScene(splats, fit.field, fit.support.total, geometry, background)


def training_record(view: TrainingView) -> TrainingRecord:
    """A training view with the hashes of its label."""
    return TrainingRecord(
        name=view.name,
        camera=view.camera,
        pose=camera_hash(view.camera),
        image=label_hash(view),
        file=photo_file_hash(view),
    )


def _fitted_field(
    side: TrainingSide, seen: Sequence[TrainingRecord], folder: Path | None, on: Progress
) -> FieldFit:
    """The field of these splats and training views, read from the folder if it is there."""
    inputs = field_inputs(side.model, seen, side.renderer, side.field)
    if kept := kept_field(folder, gaussians=len(side.splats), inputs=inputs):
        return kept
    fit = fit_field(
        side.splats,
        side.views,
        side.field,
        background=side.background,
        backend=side.backend,
        report=lambda doing, done, total: on(STAGES.get(doing, doing), done, total),
    )
    if folder is not None:
        output_folder(folder)
        save_field(folder / KEPT, fit, inputs=inputs)
    return fit
