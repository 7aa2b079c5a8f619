# SPDX-License-Identifier: Apache-2.0
"""Scales without any learning: a constant, and a user's own uncertainty map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.certificate.record import ScaleRecord
from splatcert.errors import InputError
from splatcert.field.fitted_scene import Observed, Query
from splatcert.raster.render import Backend
from splatcert.scales.scale import Rule, Scale

SMALLEST = 1e-12


class OwnMapError(InputError):
    """An uncertainty map that cannot be a scale."""


@dataclass(frozen=True)
class ConstantRule:
    """Shape one, factor one."""

    lambda_b = Fraction(0)
    batch_only = False

    def factor_of(self, query: Query) -> float:
        """a_v: every view alike."""
        return 1.0

    def parameters(self) -> dict[str, Any]:
        """Nothing to store."""
        return {}


@dataclass(frozen=True, eq=False)
class Constant(Scale):
    """The same half-width at every pixel of every view."""

    name: str = "constant"

    def settle(self, training: NDArray[np.float64], batch: NDArray[np.float64]) -> Rule:
        """The constant rule."""
        return ConstantRule()

    def stored_rule(self, record: ScaleRecord) -> Rule:
        """The constant rule again."""
        return ConstantRule()


@dataclass(frozen=True)
class MapRule:
    """The map itself: its shape unshrunk, its mean over the view as the factor."""

    lambda_b = Fraction(1)
    batch_only = False

    def factor_of(self, query: Query) -> float:
        """a_v: the mean of the map."""
        return query.field_mean

    def parameters(self) -> dict[str, Any]:
        """Nothing to store: the map is the owner's, and is given again."""
        return {}


@dataclass(frozen=True, eq=False)
class OwnMap(Scale):
    """An uncertainty map of your own: camera in, positive [H, W] out.

    The map must not depend on held-out photographs, nor on which cameras are asked. It is not
    stored: give it again to `load_certificate`, which checks it on the calibration views.
    """

    name: str
    map: Callable[[Camera], Any]

    def __post_init__(self) -> None:
        if not self.name or self.name in ("paper", "constant", "guided"):
            raise OwnMapError(f"a map of your own needs a name of its own, got {self.name!r}")

    def look(self, scene: Observed, camera: Camera, backend: Backend) -> Query:
        """The query with this map in place of the residual field."""
        query = super().look(scene, camera, backend)
        found = self.map(camera)
        values = found if isinstance(found, torch.Tensor) else torch.from_numpy(np.asarray(found))
        values = values.detach().to(query.field)
        if values.shape != query.field.shape:
            raise OwnMapError(
                f"the map {self.name} has shape {list(values.shape)}, its camera has "
                f"{camera.height} x {camera.width} pixels"
            )
        least = float(values.min())
        if not (least > SMALLEST and bool(values.isfinite().all())):
            raise OwnMapError(
                f"the map {self.name} must be positive and finite, its least value is {least}.\n"
                "  Add a small floor, such as 1e-3."
            )
        return replace(query, field=values, field_mean=float(values.double().mean()))

    def settle(self, training: NDArray[np.float64], batch: NDArray[np.float64]) -> Rule:
        """Nothing to settle."""
        return MapRule()

    def stored_rule(self, record: ScaleRecord) -> Rule:
        """Nothing was stored."""
        return MapRule()
