# SPDX-License-Identifier: Apache-2.0
"""What a baseline is made from, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Protocol

from torch import Tensor

from splatcert.camera import Camera
from splatcert.field.fitted_scene import Observed
from splatcert.raster.render import Backend
from splatcert.scene.pixels import reduced_size
from splatcert.scene.roles import TrainingView
from splatcert.splats.gaussians import Splats
from splatcert_bench.baselines.visibility_sums import VisibilitySums, add_up_visibility

Reading = Literal["gaussian", "residual"]
"""What a map claims to be when it is taken at its word: a deviation, or the residual."""


class Baseline(Protocol):
    """An uncertainty map for any camera."""

    reading: ClassVar[Reading | None]
    """None where the map has no unit of its own."""

    def map(self, camera: Camera) -> Tensor:
        """Positive and finite, larger where more error is expected, [H, W]."""
        ...


@dataclass(frozen=True, eq=False)
class Members:
    """Models of the same capture that differ by their seed."""

    splats: Sequence[Splats]
    long_side: int | None = None
    """Long side of the photos they were trained on, where that is less than the camera's."""

    def camera(self, camera: Camera) -> Camera:
        """The same camera at the members' resolution."""
        size = camera.width, camera.height
        if self.long_side is None or self.long_side >= max(size):
            return camera
        return camera.resized(*reduced_size(size, self.long_side / max(size)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A scene's model and all that its training views gave; no held-out label is in it."""

    observed: Observed
    """Splats, residual field, support and training cameras."""
    training: Sequence[TrainingView]
    """Views whose photos may be used."""
    members: Members | None = None
    """Of an ensemble, if one was trained."""
    backend: Backend = "cpu"

    @cached_property
    def visibility(self) -> VisibilitySums:
        """From where each Gaussian could be seen, added up once for all concentrations."""
        cameras = [view.camera for view in self.training]
        return add_up_visibility(self.observed.splats, cameras, self.backend)
