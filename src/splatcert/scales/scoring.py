# SPDX-License-Identifier: Apache-2.0
"""Comparison of a photograph with its render: the numbers derived from a label."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.content.view_records import CalibrationRecord, QueryRecord
from splatcert.certificate.hashes import label_hash, photo_file_hash
from splatcert.conformal.calibrate import view_score, view_scores
from splatcert.conformal.maps import MapError, covered_by_tenth, rgb_residual, view_maps
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.field.fitted_scene import Query
from splatcert.scene.roles import CalibrationView, LabelledView
from splatcert.storage.schema import entries_of

if TYPE_CHECKING:
    from splatcert.scales.scale import ScaledView

BETAS = tuple(Fraction(n, 100) for n in (1, 2, 5, 10, 15, 20, 30))
"""Pixel levels beta at which every view's scores are stored, beside the requested one."""


class LabelNumbers(NamedTuple):
    """Numbers derived from a view's label and render, whatever the factor."""

    oracle: NDArray[np.float64]
    """a*_v (eq:oracle-factor) at each beta and each shrinkage of the shape."""
    pixels: int
    """Pixels that count."""
    psnr: float


def measure(
    view: LabelledView, query: Query, betas: Sequence[Fraction], beta: Fraction | None = None
) -> tuple[LabelNumbers, float]:
    """Compare a photograph with its render; with a `beta`, also the score of a `ScaledView`."""
    image, center = view.image().cpu().numpy(), query.center.cpu().numpy()
    mask = view.mask().cpu().numpy() if view.has_mask else None
    residual, score = rgb_residual(image, center), float("nan")
    shapes = [query.shape(lambda_b).cpu().numpy() for lambda_b in LAMBDA_GRID]
    try:
        columns = [view_scores(residual, shape, betas, mask) for shape in shapes]
        if beta is not None:
            score = view_score(residual, cast("ScaledView", query).scale(), beta, mask)
    except MapError as error:
        raise MapError(f"view {view.name!r}: {error}") from None
    difference = image - center if mask is None else image[mask] - center[mask]
    squared = float(np.square(difference).mean(dtype=np.float64))
    psnr = -10 * float(np.log10(max(squared, 1e-12)))
    return LabelNumbers(np.stack(columns, axis=1), difference.size // 3, psnr), score


def count_tenths(view: CalibrationView, scaled: ScaledView, q: float) -> NDArray[np.int64]:
    """Pixels of a view inside boxes of this threshold, by tenths of the half-width, [10, 2]."""
    residual = rgb_residual(view.image().cpu().numpy(), scaled.center.cpu().numpy())
    mask = view.mask().cpu().numpy() if view.has_mask else None
    return covered_by_tenth(view_maps(residual, scaled.scale(), mask), q)


def score_view(
    view: CalibrationView,
    scaled: ScaledView,
    frozen: QueryRecord,
    betas: Sequence[Fraction],
    beta: Fraction,
) -> CalibrationRecord:
    """R_v of one calibration view; its label is used only here."""
    numbers, score = measure(view, scaled, betas, beta)
    entries = (*entries_of(QueryRecord), "descriptor", "field_mean", "shares")
    return CalibrationRecord(
        **{name: getattr(frozen, name) for name in entries},
        image=label_hash(view),
        file=photo_file_hash(view),
        score=score,
        **numbers._asdict(),
    )
