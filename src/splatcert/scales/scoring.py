# SPDX-License-Identifier: Apache-2.0
"""Comparison of photographs with their renders: the numbers derived from labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.content.view_records import CalibrationRecord, QueryRecord
from splatcert.certificate.hashes import label_hash, map_hash, photo_file_hash
from splatcert.conformal.calibrate import view_score, view_scores
from splatcert.conformal.maps import MapError, covered_by_tenth, rgb_residual, view_maps
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.field.fitted_scene import Query
from splatcert.progress import Progress
from splatcert.raster.abreast import abreast
from splatcert.scene.roles import CalibrationView, LabelledView, require_labels
from splatcert.storage.schema import entries_of

if TYPE_CHECKING:
    from splatcert.scales.scale import FrozenScale, ScaledView

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


def score_views(
    frozen: FrozenScale,
    labelled: Sequence[CalibrationView],
    betas: Sequence[Fraction],
    beta: Fraction,
    on: Progress,
) -> tuple[CalibrationRecord, ...]:
    """R_v of each calibration view under its frozen scale."""

    def score(view: CalibrationView) -> CalibrationRecord:
        known, photo = frozen.queries[view.name], require_labels(view, CalibrationView)
        return score_view(photo, require_frozen(frozen(view.camera), known), known, betas, beta)

    cameras = [view.camera for view in labelled]
    return tuple(abreast(score, labelled, cameras, "scoring calibration views", on))


def with_tenths(
    frozen: FrozenScale,
    labelled: Sequence[CalibrationView],
    scored: Sequence[CalibrationRecord],
    q: float,
    on: Progress,
) -> tuple[CalibrationRecord, ...]:
    """The scored views with what q covers in wide and in narrow boxes, which no score tells.

    The threshold is known only after all views are scored, so each is rendered once more.
    """

    def count(known: tuple[CalibrationView, CalibrationRecord]) -> CalibrationRecord:
        view, record = known
        return replace(record, tenths=count_tenths(view, frozen(view.camera), q))

    views, cameras = list(zip(labelled, scored, strict=True)), [view.camera for view in labelled]
    return tuple(abreast(count, views, cameras, "counting covered pixels", on))


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
    """R_v of one calibration view, and all other numbers that need its label but not q."""
    numbers, score = measure(view, scaled, betas, beta)
    entries = (*entries_of(QueryRecord), "descriptor", "field_mean", "shares")
    return CalibrationRecord(
        **{name: getattr(frozen, name) for name in entries},
        image=label_hash(view),
        file=photo_file_hash(view),
        score=score,
        **numbers._asdict(),
    )


def require_frozen(scaled: ScaledView, frozen: QueryRecord) -> ScaledView:
    """Return the view if its scale is the one that was frozen.

    Maps of a whole batch would not fit into memory, so a view is rendered again for its
    score. The renderer is deterministic; a difference is a bug.
    """
    if (map_hash(scaled.field), scaled.factor) != (frozen.field, frozen.factor):
        raise RuntimeError(f"the scale of view {frozen.name!r} has changed since it was frozen")
    return scaled
