# SPDX-License-Identifier: Apache-2.0
"""One sweep over the training views gives the normal equations of the fit.

Each view is rendered and compared with its photo. Residuals scattered back to the Gaussians
give the support of each fold and the right-hand side of the fit, for any prior. Ones and
opacities give the preconditioner, and squares of the weights the scale of the ridge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.certificate.field_file import FieldError
from splatcert.field.operator import PreparedViews
from splatcert.field.support import folds_of
from splatcert.raster.normal_sums import BINS, NormalSums, Rgb
from splatcert.scene.roles import TrainingView, require_labels


@dataclass(eq=False)
class NormalEquations:
    """The sums of one sweep over the training views, and what the fit takes from them."""

    sums: NormalSums
    psnr: NDArray[np.float64]
    """PSNR of each training view in dB; NaN where no pixel counts, [T]."""

    def residual_quantile(self, level: float) -> float:
        """Upper edge of the bin that holds this quantile of all training residuals."""
        below = self.sums.histogram.cumsum(0)
        rank = max(1, ceil(level * int(below[-1])))
        return float(torch.searchsorted(below, rank) + 1) / BINS

    def mean_diagonal(self) -> float:
        """Mean of the normal matrix's diagonal over the Gaussians seen by a counted pixel.

        The squares of all K harmonics of a direction add up to K / 4 pi, so the mean over
        coefficients needs no harmonics.
        """
        seen = self.sums.squares[self.sums.squares > 0]
        return float(seen.mean()) / (4 * pi)

    def right_hand_side(self, prior: float) -> Tensor:
        """A^T (e - A C_prior) for the constant field of this value, [N, K]."""
        return self.sums.moments[:, 0] - prior * self.sums.moments[:, 1]

    def misfit(self, prior: float) -> float:
        """|e - A C_prior|^2 over all counted pixels."""
        _, e2, cross, a2 = self.sums.energy.tolist()
        return e2 - 2 * prior * cross + prior * prior * a2


def sweep(
    views: PreparedViews,
    training: Sequence[TrainingView],
    *,
    degree: int,
    folds: int,
    background: Rgb,
    report: Callable[[int], None] | None = None,
) -> NormalEquations:
    """Render every training view once and add up its share of the normal equations."""
    sums = NormalSums.zero(len(views.splats), (degree + 1) ** 2, folds)
    equations = NormalEquations(sums, np.full(len(training), np.nan))
    fold_of = folds_of([view.name for view in training], folds)
    for index, labelled in enumerate(training):
        photo, mask = _photo(labelled), mask_of(labelled)
        before = float(sums.energy[0])
        views[index].survey(photo, mask, background, sums.of_fold(fold_of[index]))
        counted = photo[..., 0].numel() if mask is None else int(mask.sum())
        equations.psnr[index] = _psnr(float(sums.energy[0]) - before, 3 * counted)
        if report is not None:
            report(index + 1)
    _check(sums, len(training))
    return equations


def mask_of(labelled: TrainingView) -> Tensor | None:
    """Pixels of a training view that count, [H, W]; None if all do."""
    return labelled.mask() if labelled.has_mask else None


def _photo(labelled: TrainingView) -> Tensor:
    """The photo of a training view, which must have the size of its camera."""
    photo, camera = require_labels(labelled, TrainingView).image(), labelled.camera
    if tuple(photo.shape[:2]) != (camera.height, camera.width):
        raise FieldError(
            f"the photo of {labelled.name!r} has {photo.shape[1]} x {photo.shape[0]} pixels, but "
            f"its camera has {camera.width} x {camera.height}.\n"
            "  Load photos and cameras at the same resolution."
        )
    return photo


def _psnr(squared: float, count: int) -> float:
    """Decibels of a sum of squared errors over that many values."""
    if count == 0:
        return np.nan
    return -10 * np.log10(squared / count) if squared > 0 else np.inf


def _check(sums: NormalSums, views: int) -> None:
    """Refuse a sweep that leaves nothing to fit."""
    if not sums.histogram.any():
        raise FieldError(
            f"no pixel of the {views} training photos counts: the masks exclude all of them.\n"
            "  A mask is black where a pixel is excluded; check that the masks are not inverted."
        )
    if not sums.squares.any():
        raise FieldError(
            f"none of the {len(sums.squares):,} Gaussians is visible in any of the {views} "
            "training views.\n"
            "  The splats and the cameras belong to different scenes or different frames;\n"
            "  `splatcert inspect` describes both."
        )
