# SPDX-License-Identifier: Apache-2.0
"""A model with its residual field, support and cameras: everything a query requires."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.camera import Camera
from splatcert.certificate.content.record import Holes
from splatcert.difficulty.descriptor import EPSILON0, CameraGeometry, DescriptorError, assemble
from splatcert.field.fit import ResidualField
from splatcert.field.support import Support
from splatcert.raster.query_maps import QueryMaps, Traits, shrunk, widened
from splatcert.raster.render import Backend, open_view
from splatcert.raster.view import View
from splatcert.splats.gaussians import Splats
from splatcert.strangeness.measures import HOLE, OBLIQUE, UNSEEN


@dataclass(frozen=True, eq=False)
class Query:
    """The render of one camera, and the descriptor of its difficulty."""

    center: Tensor
    """Picture on the background, clamped to [0, 1], [H, W, 3]."""
    field: Tensor
    """b = max(A C, epsilon0), [H, W]; with wide holes, b + (1 - alpha) prior."""
    field_mean: float
    """Mean of the field over all pixels."""
    descriptor: NDArray[np.float64]
    """z_v, [24]."""
    shares: NDArray[np.float64]
    """Shares of pixels that training hardly showed: holes, unseen, oblique, [3]."""
    camera: Camera
    remark: str = ""
    """Why this camera lies outside what its scale was made for; empty if it does not."""

    def shape(self, lambda_b: Fraction | float, times: float = 1.0) -> Tensor:
        """b~ = (1 - lambda_b) + lambda_b * b / mean(b) (eq:shrinkage), times a number, [H, W].

        The same as `factor.shape`, with the mean already known.
        """
        return shrunk(self.field, self.field_mean, lambda_b, times)


@dataclass(frozen=True, eq=False)
class FittedScene:
    """Everything a query requires of a scene; none of it comes from held-out labels."""

    splats: Splats
    field: ResidualField
    support: Support
    geometry: CameraGeometry
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    excluded: NDArray[np.bool_] | None = None
    """Training cameras that the geometry leaves out, [T]."""
    opened: Mapping[Camera, View] = dataclasses.field(default_factory=dict)
    """Views that are open already."""

    def __post_init__(self) -> None:
        count = len(self.splats)
        for name, rows in (("field", self.field.coefficients), ("support", self.support.exposure)):
            if len(rows) != count:
                raise DescriptorError(
                    f"the {name} has {len(rows)} Gaussians, the splats have {count}.\n"
                    "  They belong to different models."
                )

    def out_of_fold(self, support: Support, excluded: NDArray[np.bool_]) -> FittedScene:
        """The same scene with only the support and the cameras of the other folds.

        The residual field stays: a training view's shape is that of its scene (alg:vscp).
        """
        return replace(self, support=support, excluded=excluded)

    def query(self, camera: Camera, *, backend: Backend = "cpu", holes: Holes = "paper") -> Query:
        """Render and describe one camera.

        Wide holes change the map alone. The descriptor is always that of the paper's b, which
        predictors have learned from.
        """
        view = self.opened.get(camera) or open_view(self.splats, camera, backend)
        return self.described(camera, view.query(self.traits, self.background, EPSILON0), holes)

    def described(self, camera: Camera, found: QueryMaps, holes: Holes = "paper") -> Query:
        """The query of a camera that has been rendered."""
        field, mean = found.field, found.moments[2]
        if holes == "wide":
            field, mean = widened(field, found.opacity, self.field.prior)
        geometry = self.geometry.features(camera, self.excluded)
        return Query(
            center=found.center,
            field=field,
            field_mean=mean,
            descriptor=assemble(geometry, found.statistics, found.moments, self.geometry.extent),
            shares=found.hardly_shown(HOLE, UNSEEN, OBLIQUE),
            camera=camera,
        )

    @cached_property
    def traits(self) -> Traits:
        """Values of each Gaussian that every query uses, whatever the camera."""
        support = self.support
        return Traits(
            log_exposure=support.log_exposure(),
            spread=support.spread(),
            residual_summary=support.residual_summary(),
            direction=support.direction,
            coefficients=self.field.coefficients,
        )
