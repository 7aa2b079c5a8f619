# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from splat_layouts import assert_same_bits, random_splats
from splatcert.splats.harmonics import basis, colours
from splatcert.splats.transform import FrameError, sh_rotation, transform_splats


def similarity(seed: int, *, scale: float = 1.7, mirrored: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rotation = Rotation.random(random_state=seed).as_matrix()
    matrix = np.eye(4)
    matrix[:3, :3] = scale * (rotation @ np.diag([-1, 1, 1]) if mirrored else rotation)
    matrix[:3, 3] = rng.normal(size=3)
    return matrix


def covariances(splats) -> np.ndarray:
    turn = Rotation.from_quat(splats.quats.double().numpy()[:, [1, 2, 3, 0]]).as_matrix()
    half = turn * splats.scales.double().numpy()[:, None, :]
    return half @ half.transpose(0, 2, 1)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("degree", range(5))
def test_a_camera_moved_along_sees_the_same_colours(degree, mirrored):
    splats = random_splats(50, degree, seed=degree).to(torch.float64)
    matrix = similarity(degree + 10, mirrored=mirrored)
    moved = transform_splats(splats, matrix)
    centre = np.array([0.4, -5.0, 2.0])
    before = colours(splats.sh, splats.means, torch.from_numpy(centre))
    after = colours(
        moved.sh, moved.means, torch.from_numpy(matrix[:3, :3] @ centre + matrix[:3, 3])
    )
    torch.testing.assert_close(after, before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mirrored", [False, True])
def test_centres_and_covariances_follow(mirrored):
    splats = random_splats(20).to(torch.float64)
    matrix = similarity(3, mirrored=mirrored)
    moved = transform_splats(splats, matrix)
    linear = matrix[:3, :3]
    np.testing.assert_allclose(moved.means, splats.means.numpy() @ linear.T + matrix[:3, 3])
    np.testing.assert_allclose(
        covariances(moved), linear @ covariances(splats) @ linear.T, rtol=1e-10, atol=1e-14
    )
    np.testing.assert_allclose(moved.quats.norm(dim=1), splats.quats.norm(dim=1))
    assert torch.equal(moved.logit_opacities, splats.logit_opacities)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(0, 4),
    st.floats(0.05, 20),
    st.booleans(),
)
def test_the_inverse_gives_the_original_back(seed, degree, scale, mirrored):
    splats = random_splats(30, degree, seed)
    matrix = similarity(seed, scale=scale, mirrored=mirrored)
    back = transform_splats(transform_splats(splats, matrix), np.linalg.inv(matrix))
    aligned = back.quats * (back.quats * splats.quats).sum(1, keepdim=True).sign()
    torch.testing.assert_close(back.means, splats.means, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(aligned, splats.quats, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(back.log_scales, splats.log_scales, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(back.sh, splats.sh, rtol=1e-5, atol=1e-5)


def test_sh_rotation_is_orthogonal_block_diagonal_and_a_homomorphism():
    one, two = (Rotation.random(random_state=s).as_matrix() for s in (1, 2))
    first, second = sh_rotation(one, 4), sh_rotation(two, 4)
    np.testing.assert_allclose(first @ first.T, np.eye(25), atol=1e-13)
    np.testing.assert_allclose(sh_rotation(one @ two, 4), first @ second, atol=1e-13)
    band = np.repeat(np.arange(5), 2 * np.arange(5) + 1)
    assert np.abs(first[band[:, None] != band[None, :]]).max() < 1e-13


def test_half_turns_keep_their_quaternions_accurate():
    splats = random_splats(5).to(torch.float64)
    for axis in np.eye(3):
        matrix = np.eye(4)
        matrix[:3, :3] = Rotation.from_rotvec(np.pi * axis).as_matrix()
        moved = transform_splats(splats, matrix)
        expected = matrix[:3, :3] @ covariances(splats) @ matrix[:3, :3].T
        np.testing.assert_allclose(covariances(moved), expected, rtol=1e-12, atol=1e-15)


def test_the_identity_changes_nothing():
    splats = random_splats(9, 4)
    same = transform_splats(splats, np.eye(4))
    torch.testing.assert_close(same.sh, splats.sh, rtol=0, atol=1e-6)
    assert torch.equal(same.means, splats.means)
    assert torch.equal(same.log_scales, splats.log_scales)


def test_directional_extra_columns_turn_and_others_stay():
    rng = np.random.default_rng(5)
    count = 6
    extra = {name: torch.from_numpy(rng.normal(size=count)) for name in ("nx", "ny", "nz")}
    extra |= {f"change_{k}": torch.from_numpy(rng.normal(size=count)) for k in range(16)}
    extra["label"] = torch.arange(count)
    splats = replace(random_splats(count).to(torch.float64), extra=extra)
    matrix = similarity(8)
    moved = transform_splats(splats, matrix)
    rotation = matrix[:3, :3] / 1.7
    normals = np.stack([extra[n].numpy() for n in ("nx", "ny", "nz")], axis=1)
    turned = np.stack([moved.extra[n].numpy() for n in ("nx", "ny", "nz")], axis=1)
    np.testing.assert_allclose(turned, normals @ rotation.T, atol=1e-12)
    direction = np.array([0.6, 0.0, -0.8])
    before = basis(torch.from_numpy(direction), 3).numpy()
    after = basis(torch.from_numpy(rotation @ direction), 3).numpy()
    for row in range(count):
        old = sum(extra[f"change_{k}"][row] * before[k] for k in range(16))
        new = sum(moved.extra[f"change_{k}"][row] * after[k] for k in range(16))
        assert new == pytest.approx(float(old), abs=1e-12)
    assert torch.equal(moved.extra["label"], extra["label"])
    assert list(moved.extra) == list(extra)


def test_zero_gaussians_move_too():
    empty = random_splats(0)
    assert_same_bits(transform_splats(empty, similarity(1)), empty)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.diag([1.0, 1, 2, 1]), "shears by"),
        (np.zeros((4, 4)), "invertible"),
        (np.diag([1.0, 1, 1, 2]), "last row"),
        (np.full((4, 4), np.nan), "finite 4x4"),
        (np.eye(3), "finite 4x4"),
    ],
)
def test_what_is_no_similarity_is_refused(matrix, message):
    with pytest.raises(FrameError, match=message):
        transform_splats(random_splats(2), matrix)
