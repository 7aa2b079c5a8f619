# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from splat_layouts import random_splats, scipy_basis
from splatcert.splats.gaussians import SplatsError
from splatcert.splats.harmonics import basis, colours, rgb_to_constant


def sphere_grid(heights: int, azimuths: int) -> tuple[np.ndarray, np.ndarray]:
    z, weights = np.polynomial.legendre.leggauss(heights)
    phi = (np.arange(azimuths) + 0.25) * 2 * np.pi / azimuths
    z, phi = (a.ravel() for a in np.meshgrid(z, phi, indexing="ij"))
    r = np.sqrt(1 - z**2)
    directions = np.stack([r * np.cos(phi), r * np.sin(phi), z], axis=1)
    return directions, np.repeat(weights, azimuths) * 2 * np.pi / azimuths


@pytest.mark.parametrize("degree", range(5))
def test_the_basis_is_orthonormal(degree):
    directions, areas = sphere_grid(8, 16)
    phi = basis(torch.from_numpy(directions), degree).numpy()
    assert phi.shape[1] == (degree + 1) ** 2
    np.testing.assert_allclose(phi.T @ (areas[:, None] * phi), np.eye(phi.shape[1]), atol=1e-13)


def test_the_basis_is_that_of_scipy_in_the_order_of_the_files(rng):
    directions = rng.normal(size=(200, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    phi = basis(torch.from_numpy(directions), 4).numpy()
    np.testing.assert_allclose(phi, scipy_basis(directions, 4), atol=1e-13)


def test_signs_and_order_that_colour_files_rely_on():
    x, y, z = torch.eye(3, dtype=torch.float64)
    first = np.sqrt(3 / (4 * np.pi))
    np.testing.assert_allclose(basis(x, 1)[1:], [0, 0, -first], atol=1e-15)
    np.testing.assert_allclose(basis(y, 1)[1:], [-first, 0, 0], atol=1e-15)
    np.testing.assert_allclose(basis(z, 1)[1:], [0, first, 0], atol=1e-15)
    xy = (x + y) / np.sqrt(2)
    assert basis(xy, 2)[4] == pytest.approx(1.0925484305920792 / 2)
    assert basis(x, 3)[15] == pytest.approx(-0.5900435899266435)
    assert basis(z, 4)[20] == pytest.approx(0.10578554691520431 * 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_batch_shape_and_dtype(dtype):
    directions = torch.nn.functional.normalize(torch.randn(2, 5, 3, dtype=dtype), dim=-1)
    phi = basis(directions, 3)
    assert phi.shape == (2, 5, 16) and phi.dtype == dtype


@pytest.mark.parametrize("degree", [-1, 5])
def test_other_degrees_are_refused(degree):
    with pytest.raises(SplatsError, match="degrees 0 to 4"):
        basis(torch.zeros(1, 3), degree)


def test_colour_is_looked_up_from_the_camera_towards_the_gaussian():
    sh = torch.zeros(1, 4, 3)
    sh[0, 2] = 1.0  # the z harmonic of band one
    above = colours(sh, torch.tensor([[0.0, 0, 1]]), torch.zeros(3))
    below = colours(sh, torch.tensor([[0.0, 0, -1]]), torch.zeros(3))
    assert above[0, 0] == pytest.approx(0.5 + 0.4886025, abs=1e-6)
    assert below[0, 0] == pytest.approx(0.5 - 0.4886025, abs=1e-6)


def test_colours_are_clamped_at_black_and_constant_for_degree_zero():
    sh = rgb_to_constant(torch.tensor([[[0.25, 0.5, -0.1]]]))
    colour = colours(sh, torch.ones(1, 3), torch.zeros(3))
    torch.testing.assert_close(colour, torch.tensor([[0.25, 0.5, 0.0]]))


def test_colours_are_differentiable():
    splats = random_splats(4, degree=4, seed=1).to(torch.float64)
    sh, means = splats.sh.requires_grad_(), splats.means.requires_grad_()
    centre = torch.tensor([0.3, -4.0, 1.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(colours, (sh, means, centre))


def test_no_gaussians_have_no_colours():
    splats = random_splats(0, degree=2)
    assert colours(splats.sh, splats.means, torch.zeros(3)).shape == (0, 3)
