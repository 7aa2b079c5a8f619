# SPDX-License-Identifier: Apache-2.0
"""Diagnostics that a certificate reports beside its guarantee; none enters the threshold.

The guarantee averages over views like the calibration views. The diagnostics say whether
difficulty is even across the capture, and estimate how much the scale saves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.conformal.boxes import Flag
from splatcert.conformal.permutation import PermutationTest, permutation_test
from splatcert.conformal.ranks import outer_rank, views_needed
from splatcert.conformal.splits import calibration_size, draw_splits, estimate, saving
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.views_file import SceneViews

Array = NDArray[np.float64]
UNEVEN = 0.05
"""P-value below which difficulty is said to differ across the capture."""
SIZE_SLACK = 1.1
"""Ratio of sizes that cropping and undistortion explain; beyond it the resolution differs."""


@dataclass(frozen=True, kw_only=True)
class SupportLimits:
    """The flag of schemas 2 and 3: the extremes of the calibration views.

    By exchangeability a view like the m calibration views lies beyond one of the first
    three with probability at most 3 / (m + 1). More flags mean that the views are different.
    """

    angle: float
    """Largest mean angle in radians between a view and the training directions of what it sees."""
    exposure: float
    """Smallest mean log exposure of what a camera sees."""
    distance: float
    """Largest distance to the nearest training camera, over the scene's extent."""
    pixels: tuple[int, int]
    """Fewest and most pixels of a view; the guarantee does not extend to other sizes."""

    @classmethod
    def of(cls, descriptors: Array, cameras: Sequence[Camera]) -> SupportLimits:
        """The extremes over views with these descriptors, one per row."""
        angle, exposure, distance = _measures(descriptors)
        pixels = [camera.width * camera.height for camera in cameras]
        return cls(
            angle=float(angle.max()),
            exposure=float(exposure.min()),
            distance=float(distance.max()),
            pixels=(min(pixels), max(pixels)),
        )

    def check(self, descriptor: Array, camera: Camera) -> Flag:
        """The flag of one camera."""
        angle, exposure, distance = (float(part[0]) for part in _measures(descriptor[None]))
        fewest, most = self.pixels
        reasons = []
        if not fewest / SIZE_SLACK <= camera.width * camera.height <= most * SIZE_SLACK:
            reasons.append(
                f"has {camera.width} x {camera.height} pixels (calibration views: {fewest:,} to "
                f"{most:,} in total)"
            )
        if angle > self.angle:
            reasons.append(
                f"sees surfaces {math.degrees(angle):.1f} degrees off the directions they were "
                f"photographed from (calibration views: at most {math.degrees(self.angle):.1f})"
            )
        if exposure < self.exposure:
            reasons.append(
                f"sees surfaces that training views hardly observed (log exposure "
                f"{exposure:.2f}, calibration views: at least {self.exposure:.2f})"
            )
        if distance > self.distance:
            reasons.append(
                f"is {distance:.3f} scene extents from the nearest training camera "
                f"(calibration views: at most {self.distance:.3f})"
            )
        return Flag(not reasons, tuple(reasons))


def _measures(descriptors: Array) -> tuple[Array, Array, Array]:
    columns = (FEATURE_NAMES.index(name) for name in ("sup_ang_mean", "sup_logE_mean", "g_dnn"))
    angle, exposure, distance = (descriptors[:, column] for column in columns)
    return angle, exposure, distance


def evenness_test(
    scores: Mapping[str, float], cameras: Mapping[str, Camera], seed: int
) -> PermutationTest:
    """Test the calibration scores against capture order and pose, with one p-value.

    Capture order is the order of the names of all views; `cameras` holds them all.
    """
    place = {name: index for index, name in enumerate(sorted(cameras))}
    chosen = [cameras[name] for name in scores]
    return permutation_test(
        list(scores.values()),
        {
            "capture order": [place[name] for name in scores],
            "camera position": np.array([camera.centre for camera in chosen]),
            "viewing direction": np.array([camera.forward for camera in chosen]),
        },
        seed=seed,
    )


@dataclass(frozen=True, kw_only=True)
class ScaleEstimate:
    """Performance of one scale over random splits of the held-out views."""

    coverage: float
    """Share of test views that reach their pixel coverage."""
    width: float
    """Mean half-width of test views."""
    saving: float
    """Share of the constant scale's width that is saved; NaN if a width is infinite."""


@dataclass(frozen=True, kw_only=True)
class SplitEstimates:
    """A diagnostic: the same views repeatedly split into calibration and test views.

    It estimates how much the scale saves. It is not the guarantee, which uses all calibration
    views and requires no estimate.
    """

    splits: int
    seed: int
    calibration_views: int
    """Calibration views per split, fewer than the certificate's own."""
    scales: dict[str, ScaleEstimate]
    """Estimates for the certified and the constant scale, each factor alone, and the oracle."""


CERTIFIED, CONSTANT = "a b~", "constant"
SMALLEST = 1e-12
"""Lower bound on oracle factors: a perfectly rendered view has zero, which is not a scale."""
Levels = tuple[Fraction, Fraction]
"""alpha and beta."""


def too_few_to_split(views: int, alpha: Fraction) -> str:
    """Why this number of calibration views is too small for splits; empty if it is not."""
    size = calibration_size(views)
    if size >= views:
        return f"{views} calibration views are too few to calibrate on {size} and test on the rest"
    if outer_rank(size, alpha) > size:
        return (
            f"a split calibrates on {size} of the {views} views, and alpha = {alpha} requires "
            f"{views_needed(alpha)} for a finite threshold"
        )
    return ""


def estimate_by_splits(
    views: SceneViews,
    factors: Mapping[str, float],
    guarantee: Levels,
    lambda_b: Fraction,
    *,
    splits: int,
    seed: int,
) -> SplitEstimates | None:
    """Coverage and width of scales over random splits; None if there are too few views.

    Only oracle factors are needed: a view's score under a factor a is a*_v / a_v (prop:oracle),
    and its mean half-width is q a_v. `factors` has the calibration views as keys.
    """
    alpha, beta = guarantee
    size = calibration_size(len(factors))
    if too_few_to_split(len(factors), alpha):
        return None
    rows = views.held_out.rows_of(factors)
    constant = views.oracle("held-out", beta, 0)[rows]
    shaped = views.oracle("held-out", beta, lambda_b)[rows]
    factor, one = np.array(list(factors.values())), np.ones(len(factors))
    pairs = {
        CERTIFIED: (shaped, factor),
        "a only": (constant, factor),
        "b~ only": (shaped, one),
        CONSTANT: (constant, one),
        "oracle a": (shaped, np.maximum(shaped, SMALLEST)),
    }
    drawn = draw_splits(len(factors), size, count=splits, seed=seed)
    found = {name: estimate(oracle, a, alpha, drawn) for name, (oracle, a) in pairs.items()}
    base = found[CONSTANT].mean_width
    estimates = {
        name: ScaleEstimate(
            coverage=one.coverage, width=one.mean_width, saving=saving(one.mean_width, base)
        )
        for name, one in found.items()
    }
    return SplitEstimates(splits=splits, seed=seed, calibration_views=size, scales=estimates)
