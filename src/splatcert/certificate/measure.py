# SPDX-License-Identifier: Apache-2.0
"""What one view gives: a description without its label, and scores with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.provenance import label_hash, photo_file_hash, tensor_hash
from splatcert.certificate.rule import ScaleRule
from splatcert.conformal.calibrate import view_score, view_scores
from splatcert.conformal.maps import MapError, rgb_residual
from splatcert.evaluate.views import ViewTable
from splatcert.scale import LAMBDA_GRID, shape
from splatcert.scene.cameras import Camera
from splatcert.scene.roles import LabelledView
from splatcert.view.query import Query

Array = NDArray[np.float64]

BETAS = tuple(Fraction(n, 100) for n in (1, 2, 5, 10, 15, 20, 30))
"""Pixel levels for which every view's scores are kept, beside the one asked for."""


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


def describe(name: str, camera: Camera, query: Query) -> Description:
    """What is kept of a query when its maps are let go."""
    field_mean = float(query.field.cpu().numpy().mean(dtype=np.float64))
    return Description(name, camera, query.descriptor, field_mean, tensor_hash(query.field))


@dataclass(frozen=True, eq=False)
class Measurement:
    """What a view's label says."""

    oracle: Array
    """a*_v for each beta and each shrinkage of the shape, [betas, lambdas]."""
    pixels: int
    psnr: float
    image: str
    """Hash of the pixels that were compared."""
    file: str | None
    score: float | None = None
    """R_v under a rule, where one was given."""


def measure(
    view: LabelledView,
    query: Query,
    betas: Sequence[Fraction],
    rule: ScaleRule | None = None,
    beta: Fraction | None = None,
) -> Measurement:
    """Compare a photograph with its prediction; the score itself only under a frozen rule."""
    image, center = view.image().cpu().numpy(), query.center.cpu().numpy()
    mask = view.mask().cpu().numpy() if view.has_mask else None
    residual = rgb_residual(image, center)
    field = query.field.cpu().numpy().astype(np.float64)
    try:
        columns = [view_scores(residual, shape(field, l), betas, mask) for l in LAMBDA_GRID]
        score = None
        if rule is not None and beta is not None:
            scale = rule.factor(query.descriptor) * rule.shape(query.field)
            score = view_score(residual, scale, beta, mask)
    except MapError as error:
        raise MapError(f"view {view.name!r}: {error}") from None
    counted = np.ones(residual.shape, dtype=bool) if mask is None else mask
    squared = ((image[counted].astype(np.float64) - center[counted]) ** 2).mean()
    return Measurement(
        oracle=np.stack(columns, axis=1),
        pixels=int(counted.sum()),
        psnr=float(-10 * np.log10(max(squared, 1e-12))),
        image=label_hash(view),
        file=photo_file_hash(view),
        score=score,
    )


def tabulate(
    views: Sequence[Description], measured: Sequence[Measurement | None], betas: Sequence[Fraction]
) -> ViewTable:
    """Rows of a `views.npz`; a view without a label has NaN where one would be needed."""
    unknown = np.full((len(betas), len(LAMBDA_GRID)), np.nan)
    sizes = [view.camera.width * view.camera.height for view in views]
    return ViewTable(
        names=tuple(view.name for view in views),
        descriptors=np.array([view.descriptor for view in views]),
        oracle=np.array([unknown if one is None else one.oracle for one in measured]),
        field_means=np.array([view.field_mean for view in views]),
        pixels=np.array(
            [s if one is None else one.pixels for s, one in zip(sizes, measured, strict=True)]
        ),
        psnr=np.array([np.nan if one is None else one.psnr for one in measured]),
    )
