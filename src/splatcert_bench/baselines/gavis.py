# SPDX-License-Identifier: Apache-2.0
"""GAVIS: how visible a rendered surface was to the training cameras, per direction.

Seen along d by camera t with transmittance T_t, a Gaussian counts as seen along a nearby d'
by T_t exp(kappa (d . d' - 1)). In harmonics of degree two that kernel is a factor per degree,
4 pi e^-kappa i_l(kappa) with i_l the modified spherical Bessel functions, so concentrations
share their sums over views. "Seen at least once" is bounded from below by

    V(d) = 1 - (1 - S(d) / P)^P,   S(d) = sum_t T_t exp(kappa (d . d_t - 1)),

over P views. The truncated kernel rings, so S is clamped to [0, P]. At kappa = 64 nothing is
concentrated: all degrees have about the same weight, and kappa only keeps V from saturating.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from scipy.special import ive
from torch import Tensor

from splatcert.camera import Camera
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.raster.render import open_view
from splatcert.splats.harmonics import basis, directions
from splatcert_bench.baselines.baseline import Fitted, Reading
from splatcert_bench.baselines.visibility_sums import DEGREE, VisibilitySums

KAPPAS = (1, 4, 16, 64)
"""Concentrations that source scenes choose from."""


def degree_factors(kappa: float) -> list[float]:
    """4 pi e^-kappa i_l(kappa) for l = 0, 1, 2: the kernel of one view, degree by degree."""
    # i_l(k) = sqrt(pi / 2k) I_(l + 1/2)(k); `ive` is already multiplied by e^-k.
    root = (torch.pi / (2 * kappa)) ** 0.5
    return [4 * torch.pi * root * float(ive(l + 0.5, kappa)) for l in range(DEGREE + 1)]


class VisibilityField:
    """Visibility V of each Gaussian in any direction."""

    def __init__(self, sums: VisibilitySums, kappa: float) -> None:
        factors = [f for l, f in enumerate(degree_factors(kappa)) for _ in range(2 * l + 1)]
        self._coefficients = sums.moments * torch.tensor(factors, dtype=torch.float64)
        self._views = sums.views

    def towards(self, directions: Tensor) -> Tensor:
        """Visibility along one unit direction per Gaussian, [N, 3] to [N], in [0, 1]."""
        seen = (self._coefficients * basis(directions.double(), DEGREE)).sum(1)
        return 1 - (1 - seen.clamp(0, self._views) / self._views) ** self._views


class Visibility:
    """1 - V, composited; unseen Gaussians and empty pixels count as invisible."""

    reading: ClassVar[Reading | None] = None

    def __init__(self, fitted: Fitted, kappa: float = 64) -> None:
        self._fitted = fitted
        self.field = VisibilityField(fitted.visibility, kappa)

    def map(self, camera: Camera) -> Tensor:
        """Invisibility of each pixel, from epsilon0 to 1, [H, W]."""
        splats = self._fitted.scene.splats
        view = open_view(splats, camera, self._fitted.backend)
        seen = self.field.towards(directions(splats.means, camera))
        image = view.composite(seen.to(splats.means)[:, None])[..., 0]
        return (1 - image).clamp(EPSILON0, 1)
