# SPDX-License-Identifier: Apache-2.0
"""The input of a baseline, and the protocol it implements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Protocol

from torch import Tensor

from splatcert.camera import Camera
from splatcert.field.fitted_scene import FittedScene
from splatcert.raster.render import Backend
from splatcert.scene.pixels import reduced_size
from splatcert.scene.roles import TrainingView
from splatcert.splats.gaussians import Splats
from splatcert_bench.baselines.visibility_sums import VisibilitySums, add_up_visibility

Reading = Literal["gaussian", "residual"]
"""What a map is without calibration: a standard deviation, or the residual."""


class Baseline(Protocol):
    """An uncertainty map for any camera."""

    reading: ClassVar[Reading | None]
    """None if the map has no unit."""

    def map(self, camera: Camera) -> Tensor:
        """Positive and finite, larger where more error is expected, [H, W]."""
        ...


@dataclass(frozen=True, eq=False)
class Members:
    """Models of the same capture that differ only by their seed."""

    splats: Sequence[Splats]
    long_side: int | None = None
    """Longest side of their training photos, if smaller than the camera's."""

    def camera(self, camera: Camera) -> Camera:
        """The same camera at the members' resolution."""
        size = camera.width, camera.height
        if self.long_side is None or self.long_side >= max(size):
            return camera
        return camera.resized(*reduced_size(size, self.long_side / max(size)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A scene's model and everything fitted on its training views; it holds no held-out label."""

    scene: FittedScene
    """Splats, residual field, support and training cameras."""
    training: Sequence[TrainingView]
    """Views whose photos may be used."""
    members: Members | None = None
    """Members of an ensemble, if one was trained."""
    full_members: Members | None = None
    """Members of a second one, of the main model's own size and length."""
    backend: Backend = "cpu"

    @cached_property
    def visibility(self) -> VisibilitySums:
        """Directions from which each Gaussian was visible, summed once for all concentrations."""
        cameras = [view.camera for view in self.training]
        return add_up_visibility(self.scene.splats, cameras, self.backend)
