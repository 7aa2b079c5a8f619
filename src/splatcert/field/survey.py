# SPDX-License-Identifier: Apache-2.0
"""One sweep over the training views for everything that is first-order in the weights.

Residuals and PSNR come from the rendered colours. Scattered back to the Gaussians they
give the support of each fold, the right-hand side of the fit for any prior, the scale of
the ridge, and the preconditioner. All of it but the colours shares one evaluation of the
weights per view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.errors import InputError
from splatcert.field.operator import PreparedViews, directions
from splatcert.field.support import COLUMNS, folds_of
from splatcert.raster.interface import View
from splatcert.raster.native import NativeView
from splatcert.raster.native_field import add_survey
from splatcert.scene.roles import LabelledView, TrainingView, require_labels
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import basis

Rgb = tuple[float, float, float]

BINS = 1 << 16
"""Of the histogram of residuals; a quantile is known to one part in this."""
PIXELS_AT_ONCE = 4096
"""Pixels whose weights a plain back end lists together."""


class FieldError(InputError):
    """Training views that no field can be fitted to, or a stored field that cannot be used."""


@dataclass(eq=False)
class Sums:
    """Sums over views and pixels. K harmonics; e and alpha count unmasked pixels only."""

    support: Tensor
    """Sums of w, w d and w e of each fold, [F, N, 5]; the first two over all pixels."""
    moments: Tensor
    """Sums of w e phi and w alpha phi: A^T e and A^T A of the constant field, [N, 2, K]."""
    blocks: Tensor
    """Sum of w alpha phi phi^T: row sums of the normal matrix, lower halves, [N, K(K+1)/2]."""
    squares: Tensor
    """Sum of w^2, [N]."""

    @classmethod
    def zero(cls, count: int, bases: int, folds: int) -> Sums:
        """Before the first view."""
        return cls(
            support=torch.zeros(folds, count, COLUMNS),
            moments=torch.zeros(count, 2, bases, dtype=torch.float64),
            blocks=torch.zeros(count, bases * (bases + 1) // 2),
            squares=torch.zeros(count, dtype=torch.float64),
        )


@dataclass(eq=False)
class Survey:
    """What one sweep over the training views found."""

    sums: Sums
    psnr: NDArray[np.float64]
    """Of each training view, decibels; NaN where no pixel counts, [T]."""
    histogram: Tensor = field(default_factory=lambda: torch.zeros(BINS, dtype=torch.int64))
    """Of the residuals of counted pixels on [0, 1]."""
    energy: Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.float64))
    """Sums of e^2, e alpha and alpha^2 over counted pixels."""
    masks: dict[int, Tensor] = field(default_factory=dict)
    """Counted pixels of the views that have a mask, by position."""

    def residual_quantile(self, level: float) -> float:
        """Upper edge of the bin that holds this quantile of all training residuals."""
        below = self.histogram.cumsum(0)
        rank = max(1, ceil(level * int(below[-1])))
        return float(torch.searchsorted(below, rank) + 1) / BINS

    def mean_diagonal(self) -> float:
        """Mean of the normal matrix's diagonal over the Gaussians some counted pixel shows.

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
        e2, cross, a2 = self.energy.tolist()
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
    splats = views.splats
    survey = Survey(
        Sums.zero(len(splats), (degree + 1) ** 2, folds), np.full(len(training), np.nan)
    )
    fold_of = folds_of([view.name for view in training], folds)
    for index, labelled in enumerate(training):
        require_labels(labelled, TrainingView)
        view = views[index]
        mask = labelled.mask() if labelled.has_mask else None
        if mask is not None:
            survey.masks[index] = mask
        error, alpha = render_error(view, labelled, background)
        residual = _count(survey, index, error, alpha, mask)
        _add(view, splats, residual, alpha, mask, survey.sums, fold_of[index])
        if report is not None:
            report(index + 1)
    if not survey.histogram.any():
        raise FieldError(
            f"no pixel of {len(training)} training photos counts: their masks leave out all.\n"
            "  Masks are black where a pixel is to be left out; check that they are not inverted."
        )
    if not survey.sums.squares.any():
        raise FieldError(
            f"none of {len(splats):,} Gaussians shows in any of {len(training)} training views.\n"
            "  The splats and the cameras belong to different scenes or different frames;\n"
            "  `splatcert inspect` shows both."
        )
    return survey


def render_error(view: View, labelled: LabelledView, background: Rgb) -> tuple[Tensor, Tensor]:
    """Rendered minus photographed colour, [H, W, 3], and opacity, [H, W], on the CPU."""
    photo = labelled.image()
    size = (view.camera.height, view.camera.width)
    if tuple(photo.shape[:2]) != size:
        raise FieldError(
            f"the photo of {labelled.name!r} has {photo.shape[1]} x {photo.shape[0]} pixels, its "
            f"camera {size[1]} x {size[0]}.\n"
            "  Load the scene again at one resolution."
        )
    colours = view.colours()
    image = view.composite(torch.cat([colours, colours.new_ones(len(colours), 1)], dim=1)).cpu()
    shown, alpha = image[..., :3], image[..., 3].contiguous()
    if any(background):
        shown = shown + (1 - alpha)[..., None] * shown.new_tensor(background)
    return shown.clamp(0, 1).sub_(photo), alpha


def _count(survey: Survey, index: int, error: Tensor, alpha: Tensor, mask: Tensor | None) -> Tensor:
    """Enter a view's pixels into PSNR, histogram and energy; its residual map, [H, W]."""
    red, green, blue = error.abs().unbind(2)
    residual = torch.maximum(torch.maximum(red, green), blue)
    counted, squared = residual, error.square().sum(2, dtype=torch.float64)
    if mask is not None:
        counted, squared, alpha = residual[mask], squared[mask], alpha[mask]
        residual = residual * mask
    if not counted.numel():
        return residual
    mean = float(squared.mean()) / 3
    survey.psnr[index] = -10 * np.log10(mean) if mean > 0 else np.inf
    bins = (counted.flatten() * BINS).long().clamp_(max=BINS - 1)
    survey.histogram += torch.bincount(bins, minlength=BINS)
    e, a = counted.double(), alpha.double()
    survey.energy += torch.stack([(e * e).sum(), (e * a).sum(), (a * a).sum()])
    return residual


def _add(
    view: View,
    splats: Splats,
    residual: Tensor,
    alpha: Tensor,
    mask: Tensor | None,
    sums: Sums,
    fold: int,
) -> None:
    """One view's share of all sums."""
    if isinstance(view, NativeView):
        add_survey(
            view,
            residual,
            alpha,
            mask,
            support=sums.support[fold],
            moments=sums.moments,
            blocks=sums.blocks,
            squares=sums.squares,
        )
        return
    counted = torch.ones_like(alpha) if mask is None else mask.to(alpha)
    planes = torch.stack([torch.ones_like(alpha), residual * counted, alpha * counted], dim=2)
    exposure, error, row_sum = view.scatter(planes.to(splats.means)).cpu().double().unbind(1)
    d = directions(splats.means, view.camera).cpu().double()
    bases = sums.moments.shape[2]
    phi = basis(d, round(bases**0.5) - 1)
    row, column = torch.tril_indices(bases, bases)
    shares = [exposure[:, None], exposure[:, None] * d, error[:, None]]
    sums.support[fold] += torch.cat(shares, dim=1)
    sums.moments += torch.stack([error, row_sum], dim=1)[:, :, None] * phi[:, None]
    sums.blocks += row_sum[:, None] * phi[:, row] * phi[:, column]
    sums.squares += _squares(view, counted, len(splats))


def _squares(view: View, counted: Tensor, count: int) -> Tensor:
    """Sum of squared weights over counted pixels by listing every weight, [N]."""
    total = torch.zeros(count, dtype=torch.float64)
    for pixels in counted.nonzero().split(PIXELS_AT_ONCE):
        found = view.contributors(pixels)
        total.index_add_(0, found.gaussians.cpu(), found.weights.cpu().double() ** 2)
    return total
