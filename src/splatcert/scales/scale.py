# SPDX-License-Identifier: Apache-2.0
"""What a scale is: fitted on training views, frozen on bare cameras, then camera in, map out.

Label access stays a type. A scale is fitted on a `TrainingSide`, which holds no held-out view,
and frozen on query views, which have no photograph: it cannot have seen a calibration label.
Scales differ in two things only: which map stands behind the shape (`look`), and how a view's
factor follows from its query (`settle`). All else is common: residual field, support, hashes.
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
from splatcert.certificate.hashes import freeze_hash, map_hash
from splatcert.certificate.record import ScaleRecord
from splatcert.certificate.view_records import QueryRecord, TrainingRecord
from splatcert.field.fit import FieldFit
from splatcert.field.fitted_scene import FittedScene, Query
from splatcert.progress import Progress, each, quiet
from splatcert.raster.render import Backend
from splatcert.scales.training_views import TrainingSide, fit_scene, study
from splatcert.scene.roles import QueryView

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledView(Query):
    """One camera under a frozen scale: picture, shape of mean one, and factor.

    Shape and factor stay apart: the score multiplies them in float64, the box in float32.
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

    def shape(self, lambda_b: Fraction | float | None = None) -> Tensor:
        """b~ (eq:shrinkage) at the scale's own shrinkage, or at another, [H, W]."""
        return super().shape(self.lambda_b if lambda_b is None else lambda_b)

    def scale(self) -> NDArray[np.float64]:
        """S = a b~ (eq:scale), float64 [H, W]."""
        return self.factor * self.shape().cpu().numpy().astype(np.float64)


@dataclass(frozen=True, eq=False)
class Rule:
    """How a view's factor follows from its query, once frozen."""

    lambda_b: Fraction
    """How far the shape departs from a constant."""
    factor_of: Callable[[Query], float]
    """a_v."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """What a certificate stores of it, in plain values."""
    batch_only: bool = False
    """Whether only views of the query batch are covered."""


class Scale(ABC):
    """How wide boxes are before calibration."""

    name: str
    """What certificate.json calls it."""
    needs_photos: bool = False
    """Whether prediction asks the training photographs, which must then be at hand."""
    card: Mapping[str, Any] | None = None
    """What it was learned from elsewhere, as a predictor's card says it; None for nothing."""

    def look(self, scene: FittedScene, camera: Camera, backend: Backend) -> Query:
        """Picture, map behind the shape, and descriptor of one camera."""
        return scene.query(camera, backend=backend)

    @abstractmethod
    def settle(self, training: Array, batch: Array) -> Rule:
        """The rule for descriptors of training views and of the query batch, no label seen."""

    @abstractmethod
    def stored_rule(self, record: ScaleRecord) -> Rule:
        """The rule that a certificate stored."""

    def fit(
        self, side: TrainingSide, *, folder: Path | None = None, on: Progress = quiet
    ) -> FittedScale:
        """Phase 2: training photographs only; `folder` keeps what is costly."""
        seen, fit, scene = fit_scene(side, folder, on)
        return FittedScale(
            self, side.backend, fit, scene, study(self.look, side, seen, fit, scene, on)
        )

    def thaw(self, record: ScaleRecord, scene: FittedScene, backend: Backend) -> FrozenScale:
        """The frozen scale that a certificate stored, with its model."""
        return FrozenScale(self, backend, scene, self.stored_rule(record), {})


@dataclass(frozen=True, eq=False)
class FittedScale:
    """A scale fitted to training views."""

    scale: Scale
    backend: Backend
    fit: FieldFit
    """Residual field and support."""
    scene: FittedScene
    """The model with all that its training views tell of it."""
    training: tuple[TrainingRecord, ...]
    """The training views, each described by the other folds."""

    def freeze(self, batch: Sequence[QueryView], *, on: Progress = quiet) -> FrozenScale:
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
        return FrozenScale(self.scale, self.backend, self.scene, rule, queries)


@dataclass(frozen=True, eq=False)
class FrozenScale:
    """A scale that nothing changes any more."""

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
            parameters=self.rule.parameters,
        )


def require_frozen(scaled: ScaledView, frozen: QueryRecord) -> ScaledView:
    """The view itself, once it is known to be the one whose scale was fixed.

    Maps of a whole batch would not fit into memory, so a view is rendered again for its
    score. The renderer is deterministic; anything else is a fault of ours.
    """
    if (map_hash(scaled.field), scaled.factor) != (frozen.field, frozen.factor):
        raise RuntimeError(f"the scale of view {frozen.name!r} has changed since it was frozen")
    return scaled


def _kept(query: Query) -> tuple[Query, str]:
    """What is kept of a query when its maps are let go: the numbers, and a hash of the map."""
    digest = map_hash(query.field)
    empty = query.field.new_empty(0)
    return replace(query, center=empty, field=empty), digest
