# SPDX-License-Identifier: Apache-2.0
"""What makes a camera strange: seven numbers that need no label, and their units.

Each is zero at the median of the training views and one at their 95th percentile, where a
training view is measured against the others. The largest of the seven is the camera's
strangeness. Units are fixed by training views alone, so calibration views and new views are
treated alike and the rank of a new view among the calibration views is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.conformal.ranks import ceil_rank, order_statistic
from splatcert.errors import InputError
from splatcert.strangeness.poses import TrainingPoses

Array = NDArray[np.float64]
HOLE, UNSEEN, OBLIQUE = 0.5, math.log(2.0), math.pi / 2
"""A pixel is a hole below this opacity; its surface is unseen below this log exposure, one pixel
in all training photos together; it is oblique beyond this angle to the directions of training."""
UPPER = Fraction(19, 20)
"""Percentile of the training views that is one unit."""


class StrangenessError(InputError):
    """Views from which no units can be made."""


class Component(NamedTuple):
    """One way in which a camera can be strange."""

    name: str
    meaning: str
    least: float
    """Smallest unit: differences below it do not count, even if training views have none."""


COMPONENTS = (
    Component("pose", "distance and rotation to the nearest training camera", 0.02),
    Component("lens", "log ratio of the field of view to the nearest training lens", math.log(1.1)),
    Component("pixels", "log ratio of the number of pixels to that of a photo", math.log(1.1)),
    Component("holes", "share of pixels with an opacity below 1/2", 0.02),
    Component("unseen", "share of pixels whose surfaces no training photo shows", 0.02),
    Component("oblique", "share of pixels seen over 90 degrees off the training directions", 0.02),
    Component("factor", "log ratio of the view factor to its training median", 0.05),
)
SHARES = 3
"""Components that are shares of pixels: holes, unseen, oblique."""


class Sight(NamedTuple):
    """What is known about one camera without a label."""

    camera: Camera
    shares: Array
    """Shares of pixels that are holes, unseen and oblique, [3]."""
    factor: float
    """a_v."""


@dataclass(frozen=True, kw_only=True)
class Units:
    """Median and unit of each component over the training views; a certificate stores them."""

    medians: tuple[float, ...]
    units: tuple[float, ...]
    log_factor: float
    """Median log factor of the training views."""

    def __post_init__(self) -> None:
        rows = (self.medians, self.units)
        if any(len(row) != len(COMPONENTS) for row in rows) or not np.isfinite(rows).all():
            raise StrangenessError(f"medians and units must be {len(COMPONENTS)} finite numbers")
        if min(self.units) <= 0 or not math.isfinite(self.log_factor):
            raise StrangenessError("units must be positive and the log factor finite")

    @classmethod
    def of(cls, training: Sequence[Sight], poses: TrainingPoses) -> Units:
        """Units of training views, each measured against the others."""
        if not training:
            raise StrangenessError("units require at least one training view")
        log_factor = float(np.median([math.log(sight.factor) for sight in training]))
        rows = np.array(
            [
                _measure(sight, poses, log_factor, without=index)
                for index, sight in enumerate(training)
            ]
        )
        medians = np.median(rows, axis=0)
        rank = ceil_rank(len(rows), UPPER)
        upper = np.array([order_statistic(column, rank) for column in rows.T])
        units = np.maximum(upper - medians, [component.least for component in COMPONENTS])
        return cls(
            medians=tuple(medians.tolist()), units=tuple(units.tolist()), log_factor=log_factor
        )

    def raw(self, sight: Sight, poses: TrainingPoses) -> Array:
        """The components of a camera, each in its own quantity, [7]."""
        return _measure(sight, poses, self.log_factor)

    def components(self, sight: Sight, poses: TrainingPoses) -> Array:
        """The components of a camera in units of the training views, [7]."""
        return (self.raw(sight, poses) - self.medians) / self.units

    def scores(self, sights: Iterable[Sight], poses: TrainingPoses) -> Array:
        """The strangeness of each camera, [n]."""
        return np.array([self.components(sight, poses).max() for sight in sights])


def _measure(
    sight: Sight, poses: TrainingPoses, log_factor: float, *, without: int | None = None
) -> Array:
    near = poses.nearest(sight.camera, without=without)
    departure = abs(math.log(sight.factor) - log_factor)
    return np.array([near.pose, near.lens, near.pixels, *sight.shares, departure])
