# SPDX-License-Identifier: Apache-2.0
"""The scale protocol: fitted on training views, frozen on bare cameras, then used to predict.

Types control access to labels. A scale is fitted on a `TrainingSide`, which holds no held-out
view, and frozen on query views, which have no photograph: it cannot see a calibration label.
Scales differ in two things only: the map that determines the shape (`look`), and how a view's
factor follows from its query (`settle`). They share residual field, support and hashes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.camera import Camera, camera_hash
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.content.record import Center, Holes, ScaleRecord, SceneRecord
from splatcert.certificate.content.view_records import QueryRecord, TrainingRecord
from splatcert.certificate.hashes import freeze_hash, map_hash
from splatcert.certificate.issue import Calibration, issue
from splatcert.config import CertifyConfig
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.field.fit import FieldFit
from splatcert.field.fitted_scene import FittedScene, Query
from splatcert.field.store import arrays_of, field_record
from splatcert.progress import Progress, quiet
from splatcert.raster.abreast import Result, abreast
from splatcert.raster.render import Backend
from splatcert.scales.training_views import TrainingSide, fit_scene, study
from splatcert.scene.roles import QueryView, TrainingView

Array = NDArray[np.float64]
Photos = Sequence[TrainingView]
Seen = Sequence[TrainingRecord]


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledView(Query):
    """One camera with its frozen scale: picture, shape of mean one, and factor.

    Shape and factor stay separate: the score multiplies them in float64, the box in float32.
    """

    factor: float
    """a_v, the mean of the scale over the view."""
    lambda_b: Fraction
    """How far the shape departs from a constant."""

    @classmethod
    def of(cls, query: Query, factor: float, lambda_b: Fraction) -> ScaledView:
        """A query with its scale."""
        known = {entry.name: getattr(query, entry.name) for entry in fields(Query)}
        return cls(**known, factor=factor, lambda_b=lambda_b)

    def shape(self, lambda_b: Fraction | float | None = None, times: float = 1.0) -> Tensor:
        """b~ (eq:shrinkage) times a number, [H, W]. Default: at the scale's own shrinkage."""
        return super().shape(self.lambda_b if lambda_b is None else lambda_b, times)

    def scale(self) -> NDArray[np.float64]:
        """S = a b~ (eq:scale), float64 [H, W]."""
        return self.factor * self.shape().cpu().numpy().astype(np.float64)


@dataclass(frozen=True, eq=False)
class Rule:
    """How a view's factor follows from its query, once frozen."""

    lambda_b: Fraction
    """How far the shape departs from a constant."""
    factor_of: Callable[[Any], float]
    """a_v of a query, or of a training view by its record."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """The entries that a certificate stores, in plain values."""
    batch_only: bool = False
    """Whether only views of the query batch are covered."""
    bounds: tuple[float, float] | None = None
    """Range that predictions of a new view are clipped to."""


class Scale(ABC):
    """The width of boxes before calibration."""

    name: str
    """Name in certificate.json."""
    needs_photos: bool = False
    """Whether prediction requires the training photographs."""
    holes: Holes = "paper"
    """Boxes where the model shows nothing."""
    center: Center = "render"
    """What boxes lie around: the render, or a picture corrected by training photographs."""
    card: Mapping[str, Any] | None = None
    """Card of the predictor, with the scenes it was learned from; None without one."""

    def look(self, scene: FittedScene, camera: Camera, backend: Backend) -> Query:
        """Picture, map that determines the shape, and descriptor of one camera."""
        return scene.query(camera, backend=backend, holes=self.holes)

    def prepared(
        self, views: Photos, scene: FittedScene, backend: Backend, on: Progress = quiet
    ) -> Scale:
        """The same scale, ready to look; one that needs photographs takes them here."""
        return self

    @abstractmethod
    def settle(self, training: Seen, batch: Array) -> Rule:
        """The rule, from training views and descriptors of the query batch, without its labels."""

    @abstractmethod
    def stored_rule(self, record: ScaleRecord) -> Rule:
        """The rule stored in a certificate."""

    def fit(
        self, side: TrainingSide, *, folder: Path | None = None, on: Progress = quiet
    ) -> FittedScale:
        """Phase 2: uses training photographs only; `folder` stores expensive results."""
        seen, fit, scene = fit_scene(side, folder, on)
        ready = self.prepared(side.views, scene, side.backend, on)
        training = study(ready.look, side, seen, fit, scene, on)
        closed = replace(fit, opened={})
        return FittedScale(ready, side.backend, closed, scene, training)

    def thaw(self, record: ScaleRecord, scene: FittedScene, backend: Backend) -> FrozenScale:
        """The frozen scale stored in a certificate, with its model."""
        return FrozenScale(self, backend, scene, self.stored_rule(record), {})


@dataclass(frozen=True, eq=False)
class FittedScale:
    """A scale fitted to training views."""

    scale: Scale
    backend: Backend
    fit: FieldFit
    """Residual field and support."""
    scene: FittedScene
    """The model with everything derived from its training views."""
    training: tuple[TrainingRecord, ...]
    """The training views, each described by the other folds."""

    def under(self, scale: Scale) -> FittedScale | None:
        """The same fit under another scale; None if that one looks at views in its own way."""
        alike = type(scale).look is type(self.scale).look is Scale.look
        return replace(self, scale=scale) if alike else None

    def training_scores(self, rule: Rule, at: int) -> list[float]:
        """Scores of the training photos under a rule, at the betas' index `at`.

        Each is described by the other folds; views without a label have none.
        """
        shape = LAMBDA_GRID.index(rule.lambda_b)
        return [
            float(view.oracle[at, shape]) / rule.factor_of(view)
            for view in self.training
            if view.oracle is not None
        ]

    def freeze(self, batch: Sequence[QueryView], *, on: Progress = quiet) -> FrozenScale:
        """Phase 3: describe every view of the batch from its camera, without its photo."""

        def look(view: QueryView) -> tuple[Query, str]:
            return _kept(self.scale.look(self.scene, view.camera, self.backend))

        looks = abreast(
            look, batch, [view.camera for view in batch], "describing held-out views", on
        )
        described = np.array([query.descriptor for query, _ in looks])
        rule = self.scale.settle(self.training, described)
        queries = {
            view.name: QueryRecord(
                name=view.name,
                camera=view.camera,
                pose=camera_hash(view.camera),
                field=digest,
                factor=rule.factor_of(query),
                descriptor=query.descriptor,
                field_mean=query.field_mean,
                shares=query.shares,
            )
            for view, (query, digest) in zip(batch, looks, strict=True)
        }
        return FrozenScale(self.scale, self.backend, self.scene, rule, queries)


@dataclass(frozen=True, eq=False)
class FrozenScale:
    """A scale that no longer changes."""

    scale: Scale
    backend: Backend
    scene: FittedScene
    rule: Rule
    queries: Mapping[str, QueryRecord]

    @property
    def hash(self) -> str:
        """One hash over the rule and every view's factor and shape."""
        return freeze_hash(self.record(), self.queries.values())

    def __call__(self, camera: Camera) -> ScaledView:
        """The scale of one camera, independent of other queries."""
        query = self.scale.look(self.scene, camera, self.backend)
        return ScaledView.of(query, self.rule.factor_of(query), self.rule.lambda_b)

    def each(self, cameras: Sequence[Camera], work: Callable[[Camera], Result]) -> list[Result]:
        """What `work` makes of each camera, several at a time."""
        return abreast(work, cameras, cameras)

    def record(self) -> ScaleRecord:
        """The record that a certificate stores."""
        return ScaleRecord(
            name=self.scale.name,
            needs_photos=self.scale.needs_photos,
            shape=self.rule.lambda_b,
            holes=self.scale.holes,
            batch_only=self.rule.batch_only,
            bounds=self.rule.bounds,
            parameters=self.rule.parameters,
        )


def issued(
    found: Calibration,
    config: CertifyConfig,
    scene: SceneRecord,
    side: TrainingSide,
    fitted: FittedScale,
    frozen: FrozenScale,
) -> Certificate:
    """The certificate that follows from the results of the phases."""
    unit = getattr(frozen.scale, "unit", "deployed")
    record, views = issue(
        found,
        replace(config, background=side.background, unit=unit),
        betas=side.betas,
        scene=scene,
        model=side.model,
        renderer=side.renderer,
        field=field_record(fitted.fit),
        scale=frozen.record(),
        center=frozen.scale.center,
        training=fitted.training,
        queries=frozen.queries.values(),
    )
    return Certificate(record, arrays_of(fitted.fit), views, frozen)


def _kept(query: Query) -> tuple[Query, str]:
    """A query without its maps, to save memory, and a hash of the map."""
    digest = map_hash(query.field)
    empty = query.field.new_empty(0)
    return replace(query, center=empty, field=empty), digest
