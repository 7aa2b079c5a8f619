# SPDX-License-Identifier: Apache-2.0
"""Scales without a predictor: a constant, and a user's own uncertainty map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import RLock
from typing import Any

import numpy as np
import torch

from splatcert.camera import Camera
from splatcert.certificate.content.record import ScaleRecord
from splatcert.errors import InputError
from splatcert.field.fitted_scene import FittedScene, Query
from splatcert.raster.render import Backend
from splatcert.scales.scale import Rule, Scale

SMALLEST = 1e-12
ONE_AT_A_TIME = RLock()
"""Views are looked at by several threads; code of others need not be prepared for that."""


class OwnMapError(InputError):
    """An uncertainty map that cannot be a scale."""


@dataclass(frozen=True, eq=False)
class Constant(Scale):
    """The same half-width at every pixel of every view."""

    name: str = "constant"

    def settle(self, training: object, batch: object) -> Rule:
        """The rule with shape one and factor one."""
        return Rule(Fraction(0), lambda query: 1.0)

    def stored_rule(self, record: ScaleRecord) -> Rule:
        """The same rule."""
        return Rule(Fraction(0), lambda query: 1.0)


@dataclass(frozen=True, eq=False)
class OwnMap(Scale):
    """An uncertainty map of your own: a function from a camera to a positive map [H, W].

    The map must not depend on held-out photographs, nor on other queries. It is not stored:
    pass it again to `load_certificate`, which checks it on a calibration view.
    """

    name: str
    map: Callable[[Camera], Any]

    def __post_init__(self) -> None:
        if not self.name or self.name in ("paper", "constant", "guided"):
            raise OwnMapError(f"your own map must have a name of its own, got {self.name!r}")

    def look(self, scene: FittedScene, camera: Camera, backend: Backend) -> Query:
        """The query with this map in place of the residual field."""
        query = super().look(scene, camera, backend)
        with ONE_AT_A_TIME:
            found = self.map(camera)
        values = found if isinstance(found, torch.Tensor) else torch.from_numpy(np.asarray(found))
        values = values.detach().to(query.field)
        if values.shape != query.field.shape:
            raise OwnMapError(
                f"the map {self.name} has shape {list(values.shape)}, but its camera has "
                f"{camera.height} x {camera.width} pixels"
            )
        least = float(values.min())
        if not (least > SMALLEST and bool(values.isfinite().all())):
            raise OwnMapError(
                f"the map {self.name} must be positive and finite; its smallest value is {least}.\n"
                "  Add a small floor, such as 1e-3."
            )
        return replace(query, field=values, field_mean=float(values.double().mean()))

    def settle(self, training: object, batch: object) -> Rule:
        """The map itself: its shape without shrinkage, its mean over the view as the factor."""
        return Rule(Fraction(1), lambda query: query.field_mean)

    def stored_rule(self, record: ScaleRecord) -> Rule:
        """The same rule; the map itself is not stored and must be passed again."""
        return Rule(Fraction(1), lambda query: query.field_mean)
