# SPDX-License-Identifier: Apache-2.0
"""The flag of a camera: its strangeness is above that of almost all calibration views.

A new view that is exchangeable with the m calibration views exceeds their k-th smallest
strangeness with probability at most (m + 1 - k) / (m + 1): the rate of false alarms is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from splatcert.conformal.boxes import Flag
from splatcert.conformal.ranks import order_statistic
from splatcert.strangeness.measures import COMPONENTS, Array, Sight, StrangenessError, Units
from splatcert.strangeness.poses import TrainingPoses

FALSE_ALARMS = Fraction(1, 20)
"""Largest rate of false alarms, where there are enough calibration views for it."""


@dataclass(frozen=True, kw_only=True)
class StrangenessLimit:
    """The strangeness above which a camera is flagged, and the units it is measured in."""

    units: Units
    views: int
    """m, the number of calibration views."""
    rank: int
    """k; a camera is flagged above the k-th smallest strangeness of the calibration views."""
    limit: float

    def __post_init__(self) -> None:
        if not (1 <= self.rank <= self.views and math.isfinite(self.limit)):
            raise StrangenessError(
                f"the limit must be finite and its rank 1 to {self.views}, got {self.limit} and "
                f"{self.rank}"
            )

    @classmethod
    def of(
        cls, training: Sequence[Sight], calibration: Sequence[Sight], poses: TrainingPoses
    ) -> StrangenessLimit:
        """The limit: units from training views, rank among calibration views."""
        units, rank = Units.of(training, poses), cls.rank_for(len(calibration))
        limit = order_statistic(units.scores(calibration, poses), rank)
        return cls(units=units, views=len(calibration), rank=rank, limit=limit)

    @staticmethod
    def rank_for(views: int) -> int:
        """The rank with the largest rate of false alarms up to 5%, or else the smallest rate."""
        return views + 1 - max(1, math.floor((views + 1) * FALSE_ALARMS))

    @property
    def rate(self) -> Fraction:
        """Largest probability that a view exchangeable with the calibration views is flagged."""
        return Fraction(self.views + 1 - self.rank, self.views + 1)

    def check(self, sight: Sight, poses: TrainingPoses) -> Flag:
        """The flag of one camera, with every component above the limit in words."""
        components = self.units.components(sight, poses)
        above = np.flatnonzero(components > self.limit)
        order = above[np.argsort(-components[above], kind="stable")]
        reasons = tuple(self._reason(int(index), sight, poses) for index in order)
        return Flag(not reasons, reasons, self.rate)

    def allowed(self) -> Array:
        """The largest value of each component that is not flagged, in its own quantity, [7]."""
        return np.array(self.units.medians) + self.limit * np.array(self.units.units)

    def _reason(self, index: int, sight: Sight, poses: TrainingPoses) -> str:
        value, most = float(self.units.raw(sight, poses)[index]), float(self.allowed()[index])
        name, camera = COMPONENTS[index].name, sight.camera
        if name == "pose":
            near = poses.nearest(camera)
            return (
                f"is {near.distance:.2f} scene extents and {math.degrees(near.angle):.0f} degrees "
                "from the nearest training camera"
            )
        if name == "lens":
            return (
                f"has a field of view {math.exp(value):.2f} times narrower or wider than that of "
                f"any training camera (limit {math.exp(most):.2f})"
            )
        if name == "pixels":
            return (
                f"has {camera.width} x {camera.height} pixels, {math.exp(value):.2f} times more "
                f"or fewer than a training photo (limit {math.exp(most):.2f})"
            )
        if name == "factor":
            return (
                f"has view factor {sight.factor:#.3g}, {math.exp(value):.2f} times above or below "
                f"the median training view (limit {math.exp(most):.2f})"
            )
        return f"{SHOWS[name]} in {100 * value:.0f}% of its pixels (limit {100 * most:.0f}%)"


SHOWS = {
    "holes": "shows holes in the model",
    "unseen": "shows surfaces that no training photo shows",
    "oblique": "shows surfaces from over 90 degrees off the directions of training",
}
"""What a camera does whose share of such pixels is too large."""
