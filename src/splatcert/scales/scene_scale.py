# SPDX-License-Identifier: Apache-2.0
"""Scales that rest on the fitted scene: the residual field, its support, and one query per view.

All of ours do. They differ in two things only: which map stands behind the shape (`look`),
and how a view's factor follows from its query (`settle`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera, camera_hash
from splatcert.certificate.field_file import KEPT
from splatcert.certificate.hashes import freeze_hash, label_hash, map_hash, photo_file_hash
from splatcert.certificate.record import ScaleRecord
from splatcert.certificate.store import field_inputs
from splatcert.certificate.view_records import QueryRecord, TrainingRecord
from splatcert.difficulty.descriptor import CameraGeometry
from splatcert.field.fit import FieldFit, fit_field
from splatcert.field.fitted_scene import Observed, Query
from splatcert.field.store import kept_field, save_field
from splatcert.field.support import folds_of
from splatcert.progress import Progress, each, quiet
from splatcert.raster.render import Backend
from splatcert.scales.scale import ScaledView, TrainingSide
from splatcert.scales.scoring import measure
from splatcert.scene.roles import QueryView, TrainingView

STAGES = {"sweep": "rendering training views", "fit": "fitting the residual field"}


class Rule(Protocol):
    """How a view's factor follows from its query, once frozen."""

    @property
    def lambda_b(self) -> Fraction:
        """How far the shape departs from a constant."""
        ...

    @property
    def batch_only(self) -> bool:
        """Whether only views of the query batch are covered."""
        ...

    def factor_of(self, query: Query) -> float:
        """a_v."""
        ...

    def parameters(self) -> dict[str, Any]:
        """What a certificate stores of it, in plain values."""
        ...


class SceneScale(ABC):
    """A scale on top of the fitted scene."""

    name: str
    needs_photos: bool = False
    card: Mapping[str, Any] | None = None

    def look(self, scene: Observed, camera: Camera, backend: Backend) -> Query:
        """Picture, map behind the shape, and descriptor of one camera."""
        return scene.query(camera, backend=backend)

    @abstractmethod
    def settle(self, training: NDArray[np.float64], batch: NDArray[np.float64]) -> Rule:
        """The rule for descriptors of training views and of the query batch."""

    @abstractmethod
    def stored_rule(self, record: ScaleRecord) -> Rule:
        """The rule that a certificate stored."""

    def fit(
        self, side: TrainingSide, *, folder: Path | None = None, on: Progress = quiet
    ) -> FittedOnScene:
        """Phase 2: fit field and support, and describe every training view by the other folds."""
        seen = tuple(training_record(view) for view in side.views)
        fit = _fitted_field(side, seen, folder, on)
        cameras = side.views.cameras
        scene = fitted_scene(side.splats, fit, cameras, side.extent, side.background)
        training = self._study(side, seen, scene, fit, on)
        return FittedOnScene(self, side.backend, fit, scene, training)

    def thaw(self, record: ScaleRecord, scene: Observed, backend: Backend) -> FrozenOnScene:
        """The frozen scale of a stored certificate; its views are in the certificate's record."""
        return FrozenOnScene(self, backend, scene, self.stored_rule(record), {})

    def _study(
        self,
        side: TrainingSide,
        seen: Sequence[TrainingRecord],
        scene: Observed,
        fit: FieldFit,
        on: Progress,
    ) -> tuple[TrainingRecord, ...]:
        """Training views, each described by the cameras and the support of the other folds.

        The field is the scene's own, fitted to all of them. Their oracle factors are what other
        scenes may learn from (`splatcert learn`); certification does not use them.
        """
        folds = np.array(folds_of(side.views.names, len(fit.support)))
        elsewhere = [
            scene.out_of_fold(fit.support.without(fold), folds == fold)
            for fold in range(len(fit.support))
        ]
        described = []
        views = list(zip(seen, side.views, folds.tolist(), strict=True))
        for record, view, fold in each(views, "describing training views", on):
            query = self.look(elsewhere[fold], view.camera, side.backend)
            known: dict[str, Any] = {
                "descriptor": query.descriptor,
                "field_mean": query.field_mean,
            }
            if not view.has_mask or bool(view.mask().any()):
                known |= measure(view, query, side.betas)[0]._asdict()
            described.append(replace(record, **known))
        return tuple(described)


@dataclass(frozen=True, eq=False)
class FittedOnScene:
    """A scale fitted to training views."""

    scale: SceneScale
    backend: Backend
    fit: FieldFit
    scene: Observed
    training: tuple[TrainingRecord, ...]

    def freeze(self, batch: Sequence[QueryView], *, on: Progress = quiet) -> FrozenOnScene:
        """Phase 3: every view of the batch as a query: a camera, and no way to its photo."""
        looks = [
            (view, _kept(self.scale.look(self.scene, view.camera, self.backend)))
            for view in each(batch, "describing held-out views", on)
        ]
        rule = self.scale.settle(
            np.array([view.descriptor for view in self.training]),
            np.array([query.descriptor for _, (query, _) in looks]),
        )
        queries = {
            view.name: QueryRecord(
                name=view.name,
                camera=view.camera,
                pose=camera_hash(view.camera),
                field=digest,
                factor=rule.factor_of(query),
                descriptor=query.descriptor,
                field_mean=query.field_mean,
            )
            for view, (query, digest) in looks
        }
        return FrozenOnScene(self.scale, self.backend, self.scene, rule, queries)


@dataclass(frozen=True, eq=False)
class FrozenOnScene:
    """A scale that nothing changes any more."""

    scale: SceneScale
    backend: Backend
    scene: Observed
    rule: Rule
    queries: Mapping[str, QueryRecord]

    @property
    def hash(self) -> str:
        """One hash over the rule and every view's factor and shape."""
        return freeze_hash(self.record(), self.queries.values())

    def __call__(self, camera: Camera) -> ScaledView:
        """The scale of one camera; the same whatever else is asked."""
        query = self.scale.look(self.scene, camera, self.backend)
        return ScaledView.of(query, self.rule.factor_of(query), self.rule.lambda_b)

    def record(self) -> ScaleRecord:
        """What a certificate stores."""
        return ScaleRecord(
            name=self.scale.name,
            needs_photos=self.scale.needs_photos,
            shape=self.rule.lambda_b,
            batch_only=self.rule.batch_only,
            parameters=self.rule.parameters(),
        )


def fitted_scene(
    splats: Any,
    fit: FieldFit,
    cameras: Sequence[Camera],
    extent: float,
    background: tuple[float, float, float],
) -> Observed:
    """The model with all that its training views, at these cameras, tell of it."""
    geometry = CameraGeometry(cameras, extent)
    return Observed(splats, fit.field, fit.support.total, geometry, background)


def require_frozen(scaled: ScaledView, frozen: QueryRecord) -> ScaledView:
    """The view itself, once it is known to be the one whose scale was fixed.

    Maps of a whole batch would not fit into memory, so a view is rendered again for its
    score. The renderer is deterministic; anything else is a fault of ours.
    """
    if (map_hash(scaled.field), scaled.factor) != (frozen.field, frozen.factor):
        raise RuntimeError(f"the scale of view {frozen.name!r} has changed since it was frozen")
    return scaled


def training_record(view: TrainingView) -> TrainingRecord:
    """A training view with the hashes of its label."""
    return TrainingRecord(
        name=view.name,
        camera=view.camera,
        pose=camera_hash(view.camera),
        image=label_hash(view),
        file=photo_file_hash(view),
    )


def _kept(query: Query) -> tuple[Query, str]:
    """What is kept of a query when its maps are let go: the numbers, and a hash of the map."""
    digest = map_hash(query.field)
    empty = query.field.new_empty(0)
    return replace(query, center=empty, field=empty), digest


def _fitted_field(
    side: TrainingSide, seen: Sequence[TrainingRecord], folder: Path | None, on: Progress
) -> FieldFit:
    """The field of these splats and training views: from the folder if it is there."""
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
        folder.mkdir(parents=True, exist_ok=True)
        save_field(folder / KEPT, fit, inputs=inputs)
    return fit
