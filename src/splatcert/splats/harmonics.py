# SPDX-License-Identifier: Apache-2.0
"""The directional basis phi(d): real spherical harmonics in the order and signs of 3DGS files.

Band l holds m = -l ... l; negative m carries sin(|m| azimuth), positive m carries
cos(m azimuth), and both carry the phase (-1)^m. Every trainer that writes f_rest
columns (Inria, gsplat, nerfstudio, Brush) uses this basis for colour.
"""

from __future__ import annotations

from math import factorial, isqrt, pi, sqrt

import torch
from torch import Tensor
from torch.nn.functional import normalize

from splatcert.camera import Camera
from splatcert.splats.gaussians import MAX_SH_DEGREE, SplatsError

SH_CONSTANT = 1 / (2 * sqrt(pi))
"""Value of the harmonic of degree zero, the same in every direction."""


def basis(directions: Tensor, degree: int) -> Tensor:
    """Harmonics of unit directions, [..., 3] to [..., (degree + 1)^2].

    Built by recurrence instead of from a table of constants, so that one formula
    can be checked for all degrees: (x + iy)^m gives the azimuth, and the m-th
    derivatives of the Legendre polynomials give the height.
    """
    if not 0 <= degree <= MAX_SH_DEGREE:
        raise SplatsError(
            f"harmonics are implemented for degrees 0 to {MAX_SH_DEGREE}, not {degree}"
        )
    x, y, z = directions.unbind(-1)
    one = torch.ones_like(z)
    columns: list[Tensor] = [one] * (degree + 1) ** 2
    cosine, sine = one, torch.zeros_like(z)
    leading = 1.0
    for m in range(degree + 1):
        below, current = torch.zeros_like(z), leading * one
        for l in range(m, degree + 1):
            height = _norm(l, m) * current
            columns[l * l + l + m] = height * cosine
            if m:
                columns[l * l + l - m] = height * sine
            rise = (2 * l + 1) * z * current - (l + m) * below
            below, current = current, rise / (l + 1 - m)
        cosine, sine = x * cosine - y * sine, x * sine + y * cosine
        leading *= 2 * m + 1
    return torch.stack(columns, dim=-1)


def _norm(l: int, m: int) -> float:
    """Factor that makes harmonic (l, m) orthonormal, with the phase (-1)^m."""
    scale = sqrt((2 * l + 1) / (4 * pi) * factorial(l - m) / factorial(l + m))
    return scale if m == 0 else (-1) ** m * sqrt(2) * scale


def directions(means: Tensor, camera: Camera) -> Tensor:
    """Unit vectors from Gaussians to the camera, [N, 3]."""
    return normalize(means.new_tensor(camera.centre) - means, dim=1)


def basis_towards(means: Tensor, camera: Camera, count: int) -> Tensor:
    """The first `count` harmonics of the direction from each Gaussian to the camera, [N, K]."""
    return basis(directions(means, camera), isqrt(count) - 1)


def colours(sh: Tensor, means: Tensor, camera_centre: Tensor) -> Tensor:
    """Colour of each Gaussian towards a camera, max(0, SH + 0.5), [N, 3].

    The direction runs from the camera to the Gaussian, as in training; the other
    way round would flip every odd band.
    """
    degree = round(sqrt(sh.shape[1])) - 1
    phi = basis(normalize(means - camera_centre, dim=-1), degree)
    return ((phi[:, None, :] @ sh)[:, 0] + 0.5).clamp_min(0)


def rgb_to_constant(rgb: Tensor) -> Tensor:
    """Coefficient of degree zero that shows this colour from everywhere."""
    return (rgb - 0.5) / SH_CONSTANT
