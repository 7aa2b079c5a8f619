# SPDX-License-Identifier: Apache-2.0
"""Sums over training views that are first order in the weights: one view adds its share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

import torch
from torch import Tensor

from splatcert.certificate.field_file import SUPPORT_COLUMNS

Rgb = tuple[float, float, float]
BINS = 1 << 16
"""Bins of the residual histogram; quantiles are accurate to one bin."""


@dataclass(eq=False)
class NormalSums:
    """Sums over views and pixels, for K harmonics.

    w are weights, alpha their sum over a pixel, e the residual: the largest absolute error
    of a pixel's colours, rendered on the background and clamped to [0, 1]. Pixels that a
    mask leaves out enter the first four columns of the support and nothing else.
    """

    support: Tensor
    """Sums of w, w d (three) and w e, [N, 5]; of all folds, [F, N, 5]."""
    moments: Tensor
    """Sums of w e phi and w alpha phi: A^T e, and A^T A of the constant field, [N, 2, K]."""
    blocks: Tensor
    """Sums of w alpha phi phi^T: row sums of the normal matrix, lower halves,
    [N, K (K + 1) / 2]."""
    squares: Tensor
    """Sums of w^2: with phi phi^T, the diagonal of the normal matrix, [N]."""
    energy: Tensor
    """Sums of squared colour errors, e^2, e alpha and alpha^2, [4]."""
    histogram: Tensor
    """Number of pixels by residual on [0, 1], [BINS]."""

    @classmethod
    def zero(cls, count: int, bases: int, folds: int) -> NormalSums:
        """Sums before the first view."""
        return cls(
            support=torch.zeros(folds, count, SUPPORT_COLUMNS),
            moments=torch.zeros(count, 2, bases, dtype=torch.float64),
            blocks=torch.zeros(count, bases * (bases + 1) // 2),
            squares=torch.zeros(count, dtype=torch.float64),
            energy=torch.zeros(4, dtype=torch.float64),
            histogram=torch.zeros(BINS, dtype=torch.int64),
        )

    @property
    def degree(self) -> int:
        """Degree of the harmonics."""
        return isqrt(self.moments.shape[2]) - 1

    def of_fold(self, fold: int) -> NormalSums:
        """The same arrays, with the support of one fold: a view of this fold adds to them."""
        return replace(self, support=self.support[fold])
