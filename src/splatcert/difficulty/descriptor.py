# SPDX-License-Identifier: Apache-2.0
"""The descriptor z_v of a view: 24 named numbers in the paper's order that need no label.

Five describe where the camera is among the training cameras, eight the picture, nine how well
the visible Gaussians were observed, and two the training residuals. Their names are the
schema by which a predictor and a scene are matched.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.errors import InputError

NEIGHBOURS = 5
"""Number of training cameras in a camera's neighbourhood."""
DENSITY_REACH = 2.0
"""Radius of `g_dens`, in median distances of a training camera to its neighbours."""
EPSILON0 = 1e-3
"""Floor of the residual field, b = max(A C, epsilon0), and of the logarithms of field means."""


class DescriptorError(InputError):
    """A view that cannot be described."""


class SchemaError(InputError):
    """Features that differ from those this program computes."""


class Feature(NamedTuple):
    """One entry of the descriptor."""

    name: str
    meaning: str


FEATURES = (
    Feature("g_dnn", "distance to the nearest training camera, over the scene's extent"),
    Feature("g_dk", "mean distance to the five nearest training cameras, over the extent"),
    Feature("g_ang_min", "smallest angle between viewing axes, among those five, radians"),
    Feature("g_ang_k", "mean angle between viewing axes, over those five, radians"),
    Feature("g_dens", "log(1 + training cameras within twice the median 5-neighbour distance)"),
    Feature("r_alpha_mean", "mean accumulated opacity"),
    Feature("r_alpha_p10", "its 10th percentile"),
    Feature("r_alpha_p50", "its median"),
    Feature("r_grad_mean", "mean slope of the picture's luminance, per pixel"),
    Feature("r_grad_p10", "its 10th percentile"),
    Feature("r_grad_p50", "its median"),
    Feature("r_depth_mean", "mean depth, over the extent"),
    Feature("r_depth_cv", "standard deviation of depth over its mean"),
    Feature("sup_logE_mean", "mean log exposure log(1 + E) of what is seen"),
    Feature("sup_logE_p10", "its 10th percentile"),
    Feature("sup_logE_p50", "its median"),
    Feature("sup_ang_mean", "mean angle between this view and the directions of training, radians"),
    Feature("sup_ang_p10", "its 10th percentile"),
    Feature("sup_ang_p50", "its median"),
    Feature("sup_spread_mean", "mean spread 1 - |D| / E of the directions of training"),
    Feature("sup_spread_p10", "its 10th percentile"),
    Feature("sup_spread_p50", "its median"),
    Feature("f_gsu_logmean", "log of the mean residual field"),
    Feature("f_train_logmean", "log of the mean training residual of what is seen"),
)
FEATURE_NAMES = tuple(feature.name for feature in FEATURES)


def check_schema(found: Sequence[str], where: str) -> None:
    """Refuse features that differ from ours, naming the first that differs."""
    ours = FEATURE_NAMES
    for entry, (theirs, expected) in enumerate(zip(found, ours, strict=False), 1):
        if theirs != expected:
            raise SchemaError(
                f"{where}: feature {entry} is {theirs!r}, this program computes {expected!r}.\n"
                "  It was made by a different version; make it again with this one."
            )
    if len(found) != len(ours):
        missing, extra = ours[len(found) :], tuple(found[len(ours) :])
        what = f"{missing[0]!r} is missing" if missing else f"{extra[0]!r} is unknown here"
        raise SchemaError(
            f"{where}: it has {len(found)} features, this program computes {len(ours)}: {what}.\n"
            "  It was made by a different version; make it again with this one."
        )


class _Cameras(NamedTuple):
    """Some training cameras, prepared for the search of neighbours."""

    centres: NDArray[np.float64]
    """[T, 3]."""
    axes: NDArray[np.float64]
    """Unit viewing axes, [T, 3]."""
    reach: float
    """Distance within which cameras count as dense."""


class CameraGeometry:
    """The training cameras, as the neighbours of a new one."""

    def __init__(self, cameras: Sequence[Camera], extent: float) -> None:
        centres = np.array([camera.centre for camera in cameras]).reshape(-1, 3)
        axes = np.array([camera.forward for camera in cameras]).reshape(-1, 3)
        if not len(centres):
            raise DescriptorError("there are no training cameras to describe a view by")
        if not (np.isfinite(extent) and extent > 0):
            raise DescriptorError(
                f"the scene's extent is {extent}: all training cameras are at one point.\n"
                "  The photographs must be taken from different places."
            )
        self.centres, self.axes, self.extent = centres, axes, float(extent)
        self._left: dict[bytes, _Cameras] = {}

    def __len__(self) -> int:
        return len(self.centres)

    def features(
        self, camera: Camera, exclude: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """The five g_ features of a camera, among the training cameras not in `exclude`, [5]."""
        centres, axes, reach = self._without(exclude)
        away = centres - camera.centre
        distances = np.sqrt(np.einsum("ij,ij->i", away, away))
        nearest = distances.argsort(kind="stable")[:NEIGHBOURS]
        near = distances[nearest]
        angles = np.arccos((axes[nearest] @ camera.forward).clip(-1.0, 1.0))
        return np.array(
            [
                near[0] / self.extent,
                near.mean() / self.extent,
                angles.min(),
                angles.mean(),
                np.log1p(np.count_nonzero(distances <= reach)),
            ]
        )

    def _without(self, exclude: NDArray[np.bool_] | None) -> _Cameras:
        """The remaining cameras with their own reach; computed once."""
        key = b"" if exclude is None else np.asarray(exclude, dtype=bool).tobytes()
        if key not in self._left:
            kept = ~np.asarray(np.zeros(len(self)) if exclude is None else exclude, dtype=bool)
            if kept.shape != (len(self),) or not kept.any():
                raise DescriptorError(
                    f"{int(kept.sum())} of {len(self)} training cameras are left, "
                    "too few to describe a view"
                )
            centres = self.centres[kept]
            self._left[key] = _Cameras(centres, self.axes[kept], _reach(centres))
        return self._left[key]


def _reach(centres: NDArray[np.float64]) -> float:
    """Twice the median, over cameras, of the mean distance to the five nearest others."""
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    others = np.sort(apart, axis=1)[:, 1 : NEIGHBOURS + 1]  # the first is the camera itself
    return DENSITY_REACH * float(np.median(others.mean(axis=1))) if others.size else 0.0


def assemble(
    geometry: Sequence[float] | NDArray[np.float64],
    statistics: Sequence[float],
    moments: Sequence[float],
    extent: float,
) -> NDArray[np.float64]:
    """The descriptor, [24], from the statistics of cameras and maps.

    `geometry` holds the five g_ features; `statistics` the mean, 10th and 50th percentile of
    opacity, slope, log exposure, angle and spread; `moments` the mean and deviation of depth
    and the means of residual field and residual summary.
    """
    picture, support = statistics[:6], statistics[6:]
    depth, deviation, field, residual = moments
    relative = deviation / depth if depth > 0 else 0.0
    fields = [log(max(mean, EPSILON0)) for mean in (field, residual)]
    values = [*geometry, *picture, depth / extent, relative, *support, *fields]
    descriptor = np.array(values, dtype=np.float64)
    if descriptor.shape != (len(FEATURES),):
        raise DescriptorError(f"a descriptor has {len(FEATURES)} entries, got {len(descriptor)}")
    bad = [FEATURE_NAMES[k] for k in np.flatnonzero(~np.isfinite(descriptor))]
    if bad:
        raise DescriptorError(
            f"{bad[0]} of a view is not finite, because a value of a Gaussian is not.\n"
            "  Check the model and its residual field."
        )
    return descriptor
