# SPDX-License-Identifier: Apache-2.0
"""One sweep over the training views for everything that is first-order in the weights.

Each view is rendered and compared with its photo. Residuals scattered back to the Gaussians
give the support of each fold and the right-hand side of the fit, for any prior; ones and
opacities give the preconditioner, squares of the weights the scale of the ridge. The native
back end does all of it with one evaluation of the weights per view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from math import ceil, isqrt, pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.certificate.field_file import FieldError
from splatcert.field.operator import PreparedViews, directions
from splatcert.field.support import COLUMNS, folds_of
from splatcert.raster.native import NativeView, add_survey
from splatcert.raster.view import View
from splatcert.scene.roles import TrainingView, require_labels
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import basis

Rgb = tuple[float, float, float]
BINS = 1 << 16
"""Of the histogram of residuals; a quantile is known to one part in this."""
PIXELS_AT_ONCE = 4096
"""Pixels whose weights a plain back end lists together."""


@dataclass(eq=False)
class Sums:
    """Sums over views and pixels, for K harmonics.

    w are weights, alpha their sum over a pixel, e the residual: the largest absolute error
    of a pixel's colours, rendered on the background and clamped to [0, 1]. Pixels that a
    mask leaves out enter the first four columns of the support and nothing else.
    """

    support: Tensor
    """Of w, w d (three) and w e, for each fold, [F, N, 5]."""
    moments: Tensor
    """Of w e phi and w alpha phi: A^T e, and A^T A of the constant field, [N, 2, K]."""
    blocks: Tensor
    """Of w alpha phi phi^T: row sums of the normal matrix, lower halves, [N, K (K + 1) / 2]."""
    squares: Tensor
    """Of w^2: with phi phi^T, the diagonal of the normal matrix, [N]."""
    energy: Tensor
    """Of squared colour errors, e^2, e alpha and alpha^2, [4]."""
    histogram: Tensor
    """Number of pixels by residual on [0, 1]."""

    @classmethod
    def zero(cls, count: int, bases: int, folds: int) -> Sums:
        """Before the first view."""
        return cls(
            support=torch.zeros(folds, count, COLUMNS),
            moments=torch.zeros(count, 2, bases, dtype=torch.float64),
            blocks=torch.zeros(count, bases * (bases + 1) // 2),
            squares=torch.zeros(count, dtype=torch.float64),
            energy=torch.zeros(4, dtype=torch.float64),
            histogram=torch.zeros(BINS, dtype=torch.int64),
        )

    def of_fold(self, fold: int) -> dict[str, Tensor]:
        """The arrays that a view of this fold is added to, by name."""
        whole = {f.name: getattr(self, f.name) for f in fields(self)}
        return whole | {"support": self.support[fold]}


@dataclass(eq=False)
class Survey:
    """What one sweep over the training views found."""

    sums: Sums
    psnr: NDArray[np.float64]
    """Of each training view, decibels; NaN where no pixel counts, [T]."""
    masks: dict[int, Tensor] = field(default_factory=dict)
    """Pixels that count, of the views that have a mask, by position."""

    def residual_quantile(self, level: float) -> float:
        """Upper edge of the bin that holds this quantile of all training residuals."""
        below = self.sums.histogram.cumsum(0)
        rank = max(1, ceil(level * int(below[-1])))
        return float(torch.searchsorted(below, rank) + 1) / BINS

    def mean_diagonal(self) -> float:
        """Mean of the normal matrix's diagonal over the Gaussians that some pixel counts.

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


def take_survey(
    views: PreparedViews,
    training: Sequence[TrainingView],
    *,
    degree: int,
    folds: int,
    background: Rgb,
    report: Callable[[int], None] | None = None,
) -> Survey:
    """Render every training view once and add up what it shows."""
    sums = Sums.zero(len(views.splats), (degree + 1) ** 2, folds)
    survey = Survey(sums, np.full(len(training), np.nan))
    fold_of = folds_of([view.name for view in training], folds)
    for index, labelled in enumerate(training):
        photo = _photo(labelled)
        mask = labelled.mask() if labelled.has_mask else None
        if mask is not None:
            survey.masks[index] = mask
        before = float(sums.energy[0])
        add_view(views[index], views.splats, photo, mask, background, sums, fold_of[index])
        counted = photo[..., 0].numel() if mask is None else int(mask.sum())
        survey.psnr[index] = _psnr(float(sums.energy[0]) - before, 3 * counted)
        if report is not None:
            report(index + 1)
    _check(sums, len(training))
    return survey


def add_view(
    view: View,
    splats: Splats,
    photo: Tensor,
    mask: Tensor | None,
    background: Rgb,
    sums: Sums,
    fold: int,
) -> None:
    """One training view's share of all sums."""
    if isinstance(view, NativeView):
        add_survey(view, photo, mask, background, **sums.of_fold(fold))
        return
    counted = torch.ones(photo.shape[:2], dtype=torch.bool) if mask is None else mask
    errors, alpha = _render_errors(view, photo, background)
    errors, alpha = errors * counted[..., None], alpha * counted
    residual = errors.abs().amax(2)
    e, a = residual.double(), alpha.double()
    sums.energy += torch.stack(
        [t.double().square().sum() for t in (errors, e)] + [e.mul(a).sum(), a.square().sum()]
    )
    bins = (residual[counted] * BINS).long().clamp(max=BINS - 1)
    sums.histogram += torch.bincount(bins, minlength=BINS)

    planes = torch.stack([torch.ones_like(alpha), residual, alpha], dim=2)
    exposure, error, row_sum = view.scatter(planes.to(splats.means)).cpu().double().unbind(1)
    d = directions(splats.means, view.camera).cpu().double()
    bases = sums.moments.shape[2]
    phi = basis(d, isqrt(bases) - 1)
    row, column = torch.tril_indices(bases, bases)
    shares = [exposure[:, None], exposure[:, None] * d, error[:, None]]
    sums.support[fold] += torch.cat(shares, dim=1)
    sums.moments += torch.stack([error, row_sum], dim=1)[:, :, None] * phi[:, None]
    sums.blocks += row_sum[:, None] * phi[:, row] * phi[:, column]
    sums.squares += _squares(view, counted, len(splats))


def _render_errors(view: View, photo: Tensor, background: Rgb) -> tuple[Tensor, Tensor]:
    """Rendered minus photographed colours, [H, W, 3], and opacity, [H, W], on the CPU."""
    colours = view.colours()
    image = view.composite(torch.cat([colours, colours.new_ones(len(colours), 1)], dim=1)).cpu()
    shown, alpha = image[..., :3], image[..., 3]
    shown = shown + (1 - alpha)[..., None] * shown.new_tensor(background)
    return shown.clamp(0, 1) - photo, alpha


def _squares(view: View, counted: Tensor, count: int) -> Tensor:
    """Sum of squared weights over counted pixels by listing every weight, [N]."""
    total = torch.zeros(count, dtype=torch.float64)
    for pixels in counted.nonzero().split(PIXELS_AT_ONCE):
        found = view.contributors(pixels)
        total.index_add_(0, found.gaussians.cpu(), found.weights.cpu().double() ** 2)
    return total


def _photo(labelled: TrainingView) -> Tensor:
    """The photo of a training view, if it has its camera's size."""
    photo, camera = require_labels(labelled, TrainingView).image(), labelled.camera
    if tuple(photo.shape[:2]) != (camera.height, camera.width):
        raise FieldError(
            f"the photo of {labelled.name!r} has {photo.shape[1]} x {photo.shape[0]} pixels, its "
            f"camera {camera.width} x {camera.height}.\n"
            "  Load the scene again at one resolution."
        )
    return photo


def _psnr(squared: float, count: int) -> float:
    """Decibels of a sum of squared errors over that many values."""
    if count == 0:
        return np.nan
    return -10 * np.log10(squared / count) if squared > 0 else np.inf


def _check(sums: Sums, views: int) -> None:
    """Refuse a sweep that leaves nothing to fit."""
    if not sums.histogram.any():
        raise FieldError(
            f"no pixel of {views} training photos counts: their masks leave out all.\n"
            "  Masks are black where a pixel is to be left out; check that they are not inverted."
        )
    if not sums.squares.any():
        raise FieldError(
            f"none of {len(sums.squares):,} Gaussians shows in any of {views} training views.\n"
            "  The splats and the cameras belong to different scenes or different frames;\n"
            "  `splatcert inspect` shows both."
        )
