# SPDX-License-Identifier: Apache-2.0
"""What one view gives: a description without its label, and scores with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as entry
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.certificate.hashes import tensor_hash
from splatcert.certificate.rule import ScaleRule
from splatcert.conformal.calibrate import view_score, view_scores
from splatcert.conformal.maps import MapError, rgb_residual
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.difficulty.views_file import ViewTable
from splatcert.field.fitted_scene import Query
from splatcert.scene.roles import LabelledView

Array = NDArray[np.float64]

BETAS = tuple(Fraction(n, 100) for n in (1, 2, 5, 10, 15, 20, 30))
"""Pixel levels at which every view's scores are kept, beside the one asked for."""


@dataclass(frozen=True, eq=False)
class Description:
    """A view as it is known without its label."""

    name: str
    camera: Camera
    descriptor: Array
    """z_v, [24]."""
    field_mean: float
    field: str
    """Hash of the rendered residual field."""

    @classmethod
    def of(cls, name: str, camera: Camera, query: Query) -> Description:
        """What is kept of a query when its maps are let go."""
        field = tensor_hash(query.field)
        return cls(name, camera, query.descriptor, query.field_mean, field)


@dataclass(frozen=True, eq=False)
class Measurement:
    """What a view's label says of its render."""

    oracle: Array
    """a*_v (eq:oracle-factor) at each beta and each shrinkage of the shape."""
    pixels: int
    """Pixels that count."""
    psnr: float
    score: float
    """R_v (eq:view-score) under a rule, NaN where none was given."""


def measure(
    view: LabelledView,
    query: Query,
    betas: Sequence[Fraction],
    scored: tuple[ScaleRule, Fraction] | None = None,
) -> Measurement:
    """Compare a photograph with its render; scored by a rule and a beta if they are given."""
    image, center = view.image().cpu().numpy(), query.center.cpu().numpy()
    mask = view.mask().cpu().numpy() if view.has_mask else None
    residual, score = rgb_residual(image, center), float("nan")
    shapes = [query.shape(lambda_b).cpu().numpy() for lambda_b in LAMBDA_GRID]
    try:
        columns = [view_scores(residual, shape, betas, mask) for shape in shapes]
        if scored is not None:
            rule, beta = scored
            score = view_score(residual, rule.scale(query), beta, mask)
    except MapError as error:
        raise MapError(f"view {view.name!r}: {error}") from None
    difference = image - center if mask is None else image[mask] - center[mask]
    squared = float(np.square(difference).mean(dtype=np.float64))
    psnr = -10 * float(np.log10(max(squared, 1e-12)))
    return Measurement(np.stack(columns, axis=1), difference.size // 3, psnr, score)


@dataclass(frozen=True, eq=False)
class ViewGroup:
    """Views in order of their names, with measurements of those whose labels were used."""

    described: tuple[Description, ...]
    measured: Mapping[str, Measurement] = entry(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(view.name for view in self.described)

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """Cameras in order."""
        return tuple(view.camera for view in self.described)

    @property
    def descriptors(self) -> Array:
        """Rows in order, [n, 24]."""
        return np.array([view.descriptor for view in self.described])

    def chosen(self, names: Sequence[str]) -> ViewGroup:
        """Only these views."""
        kept = set(names)
        return ViewGroup(tuple(v for v in self.described if v.name in kept), self.measured)

    def table(self, betas: Sequence[Fraction]) -> ViewTable:
        """Rows of a `views.npz`; NaN where a label would be needed and was not used."""
        unknown = np.full((len(betas), len(LAMBDA_GRID)), np.nan)
        rows = [
            self.measured.get(
                view.name,
                Measurement(unknown, view.camera.width * view.camera.height, np.nan, np.nan),
            )
            for view in self.described
        ]
        return ViewTable(
            names=self.names,
            descriptors=self.descriptors,
            oracle=np.array([row.oracle for row in rows]),
            field_means=np.array([view.field_mean for view in self.described]),
            pixels=np.array([row.pixels for row in rows]),
            psnr=np.array([row.psnr for row in rows]),
        )
