# SPDX-License-Identifier: Apache-2.0
"""Are the cameras I ask about like those calibrated on? A two-sample permutation test.

It compares descriptors and poses of query cameras with those of the calibration views and uses
no label. If both groups are exchangeable, its p-value is below 5% at most 5% of the time. It
can point out a difference; it never certifies that there is none. Frames of a path are not
independent of each other, so a path usually differs from separate views, and should.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.conformal.permutation import rank_sum_test
from splatcert.difficulty.descriptor import FEATURES
from splatcert.difficulty.holdout_check import camera_features
from splatcert.strangeness.poses import TrainingPoses

Array = NDArray[np.float64]
DIFFERENT = 0.05
"""P-values below it are pointed out."""
FEWEST = 4
"""Cameras of either group below which nothing can be said."""
PERMUTATIONS = 2_000
NEAREST = {
    "nearest pose": "distance and rotation to the nearest training camera",
    "lens": "field of view",
    "pixels": "number of pixels",
}
"""Features of a camera relative to the training cameras."""
MEANINGS = {feature.name: feature.meaning for feature in FEATURES} | NEAREST
DIGITS = 9
"""Decimals that count: smaller differences are rounding."""


@dataclass(frozen=True, kw_only=True)
class CameraComparison:
    """The outcome: one p-value that allows for all features having been tried."""

    p_value: float
    feature: str
    """The feature that differs most."""
    larger: bool
    """Whether it is larger for the query cameras."""
    queries: int
    calibration: int

    @property
    def differs(self) -> bool:
        """Whether the cameras differ more than chance explains."""
        return self.p_value < DIFFERENT

    @property
    def words(self) -> str:
        """The finding, and what follows where the cameras differ."""
        if not self.differs:
            return (
                f"no sign of a difference between these {self.queries} cameras and the "
                f"{self.calibration} calibration views (p = {self.p_value:.2g})"
            )
        side = "larger" if self.larger else "smaller"
        return (
            f"these {self.queries} cameras differ from the {self.calibration} calibration views "
            f"(p = {self.p_value:.2g}), most in {MEANINGS.get(self.feature, self.feature)}, which "
            f"is {side}. Coverage may be lower than promised"
        )

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {
            "p_value": self.p_value,
            "differs": self.differs,
            "differs_most_in": self.feature,
            "words": self.words,
        }


def compare_cameras(
    queries: Sequence[Camera],
    calibration: Sequence[Camera],
    training: Sequence[Camera],
    descriptors: tuple[Array, Array],
    *,
    extent: float,
    seed: int = 0,
) -> CameraComparison | None:
    """Compare query cameras with calibration views; None where there is nothing to compare.

    `descriptors` holds one row per query camera, [n, 24], and per calibration view, [m, 24].
    """
    if min(len(queries), len(calibration)) < FEWEST:
        return None
    both, poses = (*queries, *calibration), TrainingPoses(training, extent)
    near = [poses.nearest(camera) for camera in both]
    described = np.vstack(descriptors)
    features = {feature.name: described[:, k] for k, feature in enumerate(FEATURES)}
    features |= dict(
        zip(NEAREST, np.array([(n.pose, n.lens, n.pixels) for n in near]).T, strict=True)
    )
    placed = camera_features(both, training)
    features |= {name: values[: len(both)] for name, values in placed.items()}
    rounded = {name: np.round(values, DIGITS) for name, values in features.items()}
    varying = {name: values for name, values in rounded.items() if np.ptp(values) > 0}
    if not varying:
        return None
    table = np.stack(list(varying.values()), axis=1)
    found = rank_sum_test(table, len(queries), permutations=PERMUTATIONS, seed=seed)
    most = int(np.abs(found.z).argmax())
    return CameraComparison(
        p_value=found.p_value,
        feature=list(varying)[most],
        larger=bool(found.z[most] > 0),
        queries=len(queries),
        calibration=len(calibration),
    )
