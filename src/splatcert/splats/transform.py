# SPDX-License-Identifier: Apache-2.0
"""Move splats to another coordinate frame without changing what they look like."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isqrt, log, pi

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from splatcert.splats.gaussians import MAX_SH_DEGREE, Splats, SplatsError
from splatcert.splats.harmonics import basis

SIMILARITY_TOLERANCE = 1e-4
NORMALS = ("nx", "ny", "nz")


class FrameError(SplatsError):
    """A coordinate transform that splats cannot follow, or that is unknown."""


def transform_splats(splats: Splats, similarity: ArrayLike) -> Splats:
    """The same splats in the frame x' = s R x + t, given as a 4x4 matrix.

    Centres, orientations, sizes and colour harmonics all follow, so a camera moved
    along sees the same picture. A mirrored frame is exact too: a Gaussian is its own
    mirror image through its centre, and odd bands change sign. Normals and the
    directional field `change_*` of 3DGS-U among the extra columns turn along; others are kept.
    """
    matrix, scale, rotation = split_similarity(similarity)
    proper = rotation if np.linalg.det(rotation) > 0 else -rotation
    affine = torch.from_numpy(matrix).to(splats.means.device)
    means = splats.means.double() @ affine[:3, :3].T + affine[:3, 3]
    return replace(
        splats,
        means=means.to(splats.means.dtype),
        quats=_turn(_quaternion(proper), splats.quats),
        log_scales=splats.log_scales + log(scale),
        sh=torch.einsum("ij,njc->nic", _bands(rotation, splats.sh_degree, splats.sh), splats.sh),
        extra=_turn_extra(splats.extra, rotation),
    )


def split_similarity(
    similarity: ArrayLike,
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Matrix, scale and orthogonal part of a 4x4 similarity; anything else is refused."""
    matrix = np.array(similarity, dtype=np.float64)
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
        raise FrameError(f"a frame must be a finite 4x4 matrix, got shape {list(matrix.shape)}")
    linear = matrix[:3, :3]
    scale = float(abs(np.linalg.det(linear)) ** (1 / 3))
    if scale == 0 or not np.array_equal(matrix[3], [0, 0, 0, 1]):
        raise FrameError(f"a frame must be invertible with last row 0 0 0 1, got\n{matrix}")
    error = float(np.abs(linear @ linear.T / scale**2 - np.eye(3)).max())
    if error > SIMILARITY_TOLERANCE:
        raise FrameError(
            f"a frame must be rotation, uniform scale and shift; this one shears by {error:.2g}.\n"
            "  Gaussians with colour harmonics have no exact image under a shear."
        )
    left, _, right = np.linalg.svd(linear)
    return matrix, scale, left @ right


def sh_rotation(rotation: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Matrix D with phi(R d) = D phi(d), [(degree + 1)^2] squared, for any orthogonal R.

    D is the integral of phi(R d) phi(d)^T over the sphere. A product grid with
    degree + 1 heights and 2 degree + 1 azimuths integrates it exactly, because the
    integrand is a polynomial of twice the degree.
    """
    heights, weights = np.polynomial.legendre.leggauss(degree + 1)
    azimuths = np.arange(2 * degree + 1) * (2 * pi / (2 * degree + 1))
    radii = np.sqrt(1 - heights**2)
    grid = np.stack(
        [
            np.outer(radii, np.cos(azimuths)),
            np.outer(radii, np.sin(azimuths)),
            np.repeat(heights[:, None], azimuths.size, axis=1),
        ],
        axis=-1,
    ).reshape(-1, 3)
    area = np.repeat(weights, azimuths.size) * (2 * pi / azimuths.size)
    before = basis(torch.from_numpy(grid), degree).numpy()
    after = basis(torch.from_numpy(grid @ rotation.T), degree).numpy()
    return after.T @ (area[:, None] * before)


def _bands(rotation: NDArray[np.float64], degree: int, like: Tensor) -> Tensor:
    return torch.from_numpy(sh_rotation(rotation, degree)).to(like)


def _quaternion(rotation: NDArray[np.float64]) -> NDArray[np.float64]:
    """w, x, y, z of a rotation matrix.

    It is the eigenvector of the largest eigenvalue of the symmetric matrix below;
    unlike the formulas by cases, this stays accurate near half turns.
    """
    (a, b, c), (d, e, f), (g, h, i) = rotation
    symmetric = np.array(
        [
            [a + e + i, h - f, c - g, d - b],
            [h - f, a - e - i, d + b, c + g],
            [c - g, d + b, e - a - i, f + h],
            [d - b, c + g, f + h, i - a - e],
        ]
    )
    return np.linalg.eigh(symmetric)[1][:, -1]


def _turn(quaternion: NDArray[np.float64], quats: Tensor) -> Tensor:
    """Hamilton product of one rotation with many, keeping their norms."""
    w, x, y, z = quaternion
    left = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    return quats @ torch.from_numpy(left.T.copy()).to(quats)


def _turn_extra(extra: dict[str, Tensor], rotation: NDArray[np.float64]) -> dict[str, Tensor]:
    turned = dict(extra)
    if all(name in extra and extra[name].is_floating_point() for name in NORMALS):
        matrix = torch.from_numpy(rotation).to(extra["nx"])
        turned |= _apply(matrix, {name: extra[name] for name in NORMALS})
    field = [name for name in extra if re.fullmatch(r"change_\d+", name)]
    field.sort(key=lambda name: int(name.removeprefix("change_")))
    degree = isqrt(len(field)) - 1
    if field and (degree + 1) ** 2 == len(field) and degree <= MAX_SH_DEGREE:
        matrix = _bands(rotation, degree, extra[field[0]])
        turned |= _apply(matrix, {name: extra[name] for name in field})
    return turned


def _apply(matrix: Tensor, columns: dict[str, Tensor]) -> dict[str, Tensor]:
    stacked = matrix @ torch.stack([column.to(matrix) for column in columns.values()])
    return dict(zip(columns, stacked.unbind(0), strict=True))
