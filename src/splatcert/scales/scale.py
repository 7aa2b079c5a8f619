# SPDX-License-Identifier: Apache-2.0
"""What a scale is: fitted on training views, frozen on bare cameras, then camera in, map out.

Label access stays a type. A scale is fitted on a `TrainingSide`, which holds no held-out view,
and frozen on query views, which have no photograph. Whatever it does in between, it cannot
have seen a calibration label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.camera import Camera
from splatcert.certificate.record import ModelRecord, RendererRecord, ScaleRecord
from splatcert.certificate.view_records import QueryRecord, TrainingRecord
from splatcert.config import FieldConfig
from splatcert.field.fit import FieldFit
from splatcert.field.fitted_scene import Observed, Query
from splatcert.progress import Progress, quiet
from splatcert.raster.render import Backend
from splatcert.scene.roles import QueryView
from splatcert.scene.scene import TrainingViews
from splatcert.splats.gaussians import Splats


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingSide:
    """All that a scale may be fitted on; no held-out view is in it."""

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
    """Levels at which oracle factors of training views are kept."""


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


class FrozenScale(Protocol):
    """A scale that nothing changes any more."""

    @property
    def queries(self) -> Mapping[str, QueryRecord]:
        """Every view of the batch as it was frozen, by name, in order."""
        ...

    @property
    def hash(self) -> str:
        """One hash over the scale and all of the batch."""
        ...

    @property
    def scene(self) -> Observed:
        """The model with all that its training views tell of it."""
        ...

    def __call__(self, camera: Camera) -> ScaledView:
        """The scale of one camera; the same whatever else is asked."""
        ...

    def record(self) -> ScaleRecord:
        """What a certificate stores."""
        ...


class FittedScale(Protocol):
    """A scale fitted to training views."""

    @property
    def training(self) -> tuple[TrainingRecord, ...]:
        """The training views, each described by the other folds."""
        ...

    @property
    def fit(self) -> FieldFit:
        """Residual field and support."""
        ...

    def freeze(self, batch: Sequence[QueryView], *, on: Progress = quiet) -> FrozenScale:
        """Phase 3: render every view of the batch once, fix its factor, hash all of it."""
        ...


class Scale(Protocol):
    """How wide boxes are before calibration."""

    @property
    def name(self) -> str:
        """What certificate.json calls it."""
        ...

    @property
    def needs_photos(self) -> bool:
        """Whether prediction asks the training photographs, which must then be at hand."""
        ...

    @property
    def card(self) -> Mapping[str, Any] | None:
        """What it was learned from elsewhere, as a predictor's card says it; None for nothing."""
        ...

    def fit(
        self, side: TrainingSide, *, folder: Path | None = None, on: Progress = quiet
    ) -> FittedScale:
        """Phase 2: training photographs only; `folder` keeps what is costly."""
        ...

    def thaw(self, record: ScaleRecord, scene: Observed, backend: Backend) -> FrozenScale:
        """The frozen scale that a certificate stored, with its model."""
        ...
