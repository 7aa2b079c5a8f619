# SPDX-License-Identifier: Apache-2.0
"""The frozen rule of the guided scale: from the mean scale of a view and its camera to a.

Training views are asked as if they were new, each without its own photograph. What they needed
beyond their mean scale, smoothed over cameras, is what the scale misses in this part of the
capture. It uses training photographs only, so every view is treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.difficulty.guided.guide import Guide
from splatcert.difficulty.predictor import LOG_BOUND
from splatcert.storage.schema import from_plain, to_plain

Array = NDArray[np.float64]
REACH = 0.3
"""Width of the smoothing, in distances of cameras over their median plus radians."""
PULL = 0.5
"""Weight of zero beside the training views."""
LEAST = 1e-9


@dataclass(frozen=True, kw_only=True)
class GuidedParameters:
    """The entries of a guided scale that a certificate stores."""

    guide: Guide
    needed: tuple[float, ...]
    """Log of what each training view needed beyond its mean scale, centred."""


@dataclass(frozen=True, eq=False)
class GuidedRule:
    """The mapping from a view to its factor, frozen for one capture."""

    guide: Guide
    needed: Array
    """[T]."""
    cameras: Sequence[Camera]
    """The training cameras, [T]."""

    @classmethod
    def freeze(
        cls, guide: Guide, cameras: Sequence[Camera], means: Array, oracle: Array
    ) -> GuidedRule:
        """The rule from mean scales [T] and oracle factors [T] of training views.

        A view without an oracle factor, which has no counted pixel, needed what was expected.
        """
        known = np.isfinite(oracle) & (oracle > 0)
        beyond = np.log(np.where(known, oracle, 1.0)) - guide.power * np.log(means)
        centre = beyond[known].mean() if known.any() else 0.0
        return cls(guide, np.where(known, beyond - centre, 0.0), tuple(cameras))

    @classmethod
    def of(cls, parameters: dict[str, Any], cameras: Sequence[Camera]) -> GuidedRule:
        """The rule stored in a certificate."""
        known = from_plain(GuidedParameters, parameters, "scale")
        return cls(known.guide, np.array(known.needed), tuple(cameras))

    def parameters(self) -> dict[str, Any]:
        """The rule as plain values, for a certificate."""
        return to_plain(GuidedParameters(guide=self.guide, needed=tuple(self.needed.tolist())))

    def factor(self, mean: float, camera: Camera, leave: int | None = None) -> float:
        """The factor of a view with this mean scale; training view `leave` does not count."""
        late = self.late(camera, leave)
        log_factor = self.guide.power * np.log(mean) + self.guide.late * late
        return float(np.exp(np.clip(log_factor, -LOG_BOUND, LOG_BOUND)))

    def factors(self, means: Array, cameras: Sequence[Camera]) -> Array:
        """The factors of several views, [n]."""
        pairs = zip(means.tolist(), cameras, strict=True)
        return np.array([self.factor(mean, camera) for mean, camera in pairs])

    def late(self, camera: Camera, leave: int | None = None) -> float:
        """What training views near a camera needed beyond their mean scale."""
        centres, axes, unit = self._geometry
        apart = np.linalg.norm(centres - camera.centre, axis=1) / unit
        apart = apart + np.arccos((axes @ camera.forward).clip(-1.0, 1.0))
        weight = np.exp(-0.5 * (apart / REACH) ** 2)
        if leave is not None:
            weight[leave] = 0.0
        return float((weight * self.needed).sum() / (weight.sum() + PULL))

    @cached_property
    def _geometry(self) -> tuple[Array, Array, float]:
        centres = np.array([camera.centre for camera in self.cameras])
        axes = np.array([camera.forward for camera in self.cameras])
        apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)
        return centres, axes, max(float(np.median(apart)), LEAST)
