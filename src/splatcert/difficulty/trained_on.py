# SPDX-License-Identifier: Apache-2.0
"""Do the calibration photos look trained on? A rank test on how well the model fits them.

A model fits the photos it was trained on better than new ones. How well it fits a photo also
depends on what the photo shows, so each residual is compared with the value that the views
nearest in pose suggest (kriging of the log residual over position and viewing direction).

Null hypothesis: the model was trained on the calibration photos as on the others, so that every
choice of calibration views is equally likely. Unseen photos have larger residuals, and the test
rejects. Photos that were trained on pass as unseen with probability at most `LEVEL`; how often
unseen photos look trained on depends on the capture, and can only be measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from splatcert.camera import Camera, extent_of
from splatcert.conformal.permutation import centred_ranks, relabellings
from splatcert.difficulty.holdout_check import PERMUTATIONS
from splatcert.difficulty.views_file import SceneViews

Array = NDArray[np.float64]
LEVEL = 0.05
"""Probability with which photos that were trained on may pass as unseen."""
BETA = Fraction(1, 10)
"""A view's residual is its quantile at 1 - BETA over the pixels."""
FEWEST = 8
"""Calibration or training views below which nothing can be said."""
MOST = 20_000
"""Views above which nothing is tested: the search takes time quadratic in copies of one pose."""
NEIGHBOURS = 24
"""Views nearest in pose from which a residual is predicted."""
REACH = 2.0
"""Length of the Gaussian kernel, in median distances of a view to its fourth neighbour."""
NUGGET = 0.03
"""Variance of a residual that pose does not explain, as a share of the rest."""
SMALLEST = 1e-5
"""Smaller residuals are rounding: a step of an 8-bit photo is 400 times larger."""
CHUNK = 4096
CAUSES = (
    "If they were kept out of training, the model generalises well, or there are too few of them "
    "to tell."
)


@dataclass(frozen=True, kw_only=True)
class TrainedOnCheck:
    """The outcome: p-value of the hypothesis that the calibration photos were trained on."""

    p_value: float
    calibration: int
    training: int
    permutations: int = PERMUTATIONS
    seed: int = 0

    @property
    def flagged(self) -> bool:
        """Whether the calibration photos look trained on: the hypothesis is not rejected."""
        return self.p_value >= LEVEL

    @property
    def finding(self) -> str:
        """What the test found, in words."""
        if self.flagged:
            return (
                "The calibration photos may have been trained on: the model fits them as well as "
                f"other photos from similar poses (p = {self.p_value:.2g})."
            )
        return (
            "The model fits calibration photos worse than other photos from similar poses, as "
            f"expected of photos it has not seen (p = {self.p_value:.2g})."
        )

    @property
    def words(self) -> str:
        """The finding; where photos look trained on, also the consequence and other causes."""
        consequence = "If the model was trained on them, boxes are too narrow."
        return f"{self.finding} {consequence} {CAUSES}" if self.flagged else self.finding

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {
            "p_value": self.p_value,
            "flagged": self.flagged,
            "words": self.words,
            "permutations": self.permutations,
            "seed": self.seed,
        }


def check_trained_on(
    calibration: Sequence[Any], training: Sequence[Any], views: SceneViews
) -> TrainedOnCheck | None:
    """Compare a certificate's calibration and training records; None if nobody can say.

    The flat shape gives plain residuals between photo and render, without field or fold.
    """
    if BETA not in views.betas:
        return None
    rows = views.held_out.rows_of(view.name for view in calibration)
    held_out = views.oracle("held-out", BETA, 0)[rows]
    residuals = np.concatenate([held_out, views.oracle("training", BETA, 0)])
    cameras = [view.camera for view in (*calibration, *training)]
    return compare_residuals(cameras, residuals, len(calibration))


def compare_residuals(
    cameras: Sequence[Camera], residuals: Array, calibration: int, *, seed: int = 0
) -> TrainedOnCheck | None:
    """The test on one residual per view; the first `calibration` views calibrate.

    Views whose residual is unknown (NaN) are left out.
    """
    known = ~np.isnan(residuals)
    m, n = int(known[:calibration].sum()), int(known.sum())
    if min(m, n - m) < FEWEST or n > MOST:
        return None
    places = _poses([camera for camera, usable in zip(cameras, known, strict=True) if usable])
    beyond = beyond_neighbours(np.log(np.clip(residuals[known], SMALLEST, 1.0)), places)
    if beyond is None:
        return None
    ranks = centred_ranks(beyond).astype(np.float64)  # sums of integers, exact below 2^53
    found = ranks[:m].sum()
    drawn = relabellings(m, n, PERMUTATIONS, seed)
    as_large = sum(int((labels @ ranks >= found).sum()) for labels in drawn)
    return TrainedOnCheck(
        p_value=(1 + as_large) / (1 + PERMUTATIONS),
        calibration=m,
        training=n - m,
        seed=seed,
    )


def _poses(cameras: Sequence[Camera]) -> Array:
    """Position in scene extents, and viewing direction, [n, 6]."""
    centres = np.array([camera.centre for camera in cameras])
    forward = np.array([camera.forward for camera in cameras])
    extent = extent_of(cameras)
    offsets = centres - centres.mean(axis=0)
    return np.concatenate([offsets / extent if extent > 0 else 0 * offsets, forward], axis=1)


def beyond_neighbours(values: Array, places: Array) -> Array | None:
    """Each value minus its prediction from the nearest places, [n]; None if all are one place.

    Ordinary kriging, blind to which views calibrate, so that under the null hypothesis every
    view is treated alike.
    """
    count = min(NEIGHBOURS, len(values) - 1)
    distance, nearest = map(np.asarray, KDTree(places).query(places, k=count + 1))
    itself = nearest == np.arange(len(values))[:, None]
    itself[~itself.any(axis=1), -1] = True  # more copies of one pose than neighbours asked for
    nearest = nearest[~itself].reshape(-1, count)
    distance = distance[~itself].reshape(-1, count)
    unit = REACH * float(np.median(distance[:, min(3, count - 1)]))
    if not unit > 0:
        return None
    parts = [slice(start, start + CHUNK) for start in range(0, len(values), CHUNK)]
    predicted = [
        _kriged(values[nearest[p]], places[nearest[p]] / unit, distance[p] / unit) for p in parts
    ]
    return values - np.concatenate(predicted)


def _kriged(values: Array, places: Array, distance: Array) -> Array:
    """Predictions from values [n, k] at places [n, k, d] this far away [n, k]."""
    apart = ((places[:, :, None] - places[:, None]) ** 2).sum(axis=-1)
    kernel = np.exp(-apart / 2) + NUGGET * np.eye(values.shape[1])
    both = np.stack([values, np.ones_like(values)], axis=-1)
    weighted, ones = np.moveaxis(np.linalg.solve(kernel, both), -1, 0)
    mean = weighted.sum(axis=1) / ones.sum(axis=1)
    return mean + (np.exp(-(distance**2) / 2) * (weighted - mean[:, None] * ones)).sum(axis=1)
