# SPDX-License-Identifier: Apache-2.0
"""gsplat's world normalisation, against analytic cases and a separate implementation."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from splat_layouts import gsplat_world, random_splats, write_gsplat_run
from splatcert.scene.camera_paths import look_at
from splatcert.splats.files import load_splats
from splatcert.splats.gaussians import Splats
from splatcert.splats.gsplat_frame import (
    frame_distance,
    gsplat_frames,
    gsplat_normalization,
)
from splatcert.splats.transform import FrameError, transform_splats


def looking_at(centre: np.ndarray, target: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Camera to world, as gsplat's trainer keeps its poses."""
    return np.linalg.inv(look_at(centre, target - centre, -down))


def orbit(count: int, seed: int, *, target=(1.0, 2.0, -3.0), radius=4.0) -> np.ndarray:
    """Cameras around a target in a world whose down is not an axis."""
    rng = np.random.default_rng(seed)
    target, down = np.array(target), np.array([0.0, 1, 0])
    poses = []
    for angle in np.linspace(0, 2 * np.pi, count, endpoint=False):
        offset = np.array([np.cos(angle), -0.4, np.sin(angle)]) * radius
        poses.append(looking_at(target + offset + rng.normal(0, 0.2, 3), target, down))
    tilt = np.eye(4)
    tilt[:3, :3] = Rotation.from_rotvec([0.3, -0.2, 0.5]).as_matrix()
    return tilt @ np.stack(poses)


def cloud(count: int, seed: int) -> np.ndarray:
    """Points with three different extents and skewed heights, so that no axis is ambiguous."""
    rng = np.random.default_rng(seed)
    points = np.stack(
        [rng.gamma(2, 1.5, count), rng.gamma(3, 0.6, count), rng.gamma(1.5, 0.3, count)], axis=1
    )
    return points @ Rotation.random(random_state=seed).as_matrix().T + rng.normal(size=3)


def same_up_to_half_turn(one: np.ndarray, other: np.ndarray) -> bool:
    """Eigenvectors are defined up to sign; with the height fixed, one half turn is left."""
    return np.allclose(one, other, atol=1e-6) or np.allclose(
        one, np.diag([-1.0, -1.0, 1.0, 1.0]) @ other, atol=1e-6
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 40), st.integers(0, 10_000))
def test_the_steps_agree_with_a_separate_implementation(count, seed):
    poses, points = orbit(count, seed), cloud(400, seed).astype(np.float32)
    ours = gsplat_normalization(poses, points)
    assert same_up_to_half_turn(ours, gsplat_world(poses, points.astype(np.float64)))


def test_an_analytic_capture():
    """Four level cameras at distance 5 around (10, 0, 0), long axis x, thin axis y."""
    target = np.array([10.0, 0, 0])
    offsets = 5 * np.array([[1.0, 0, 0], [0, 0, 1], [-1, 0, 0], [0, 0, -1]])
    poses = np.stack([looking_at(target + o, target, np.array([0.0, 1, 0])) for o in offsets])
    x, z = np.meshgrid(np.linspace(-8, 8, 9), np.linspace(-2, 2, 5))
    # Heights below zero are up; a few high points give the tail that decides the sign.
    y = np.zeros(x.size)
    y[:4] = -1.0
    points = np.stack([x.ravel() + 10, y, z.ravel()], axis=1)
    matrix = gsplat_normalization(poses, points)
    scale = np.linalg.norm(matrix[:3, 0])
    # Each ray passes the origin where it is nearest: x = 10 for rays along z, 0 for rays along x.
    centres, axes = poses[:, :3, 3], poses[:, :3, 2]
    nearest = centres - (axes * centres).sum(1, keepdims=True) * axes
    focus = np.median(nearest, axis=0)
    assert scale == pytest.approx(1 / np.median(np.linalg.norm(centres - focus, axis=1)))
    long, thin = matrix[:3, :3] @ [1, 0, 0], matrix[:3, :3] @ [0, -1, 0]
    assert abs(long[0]) == pytest.approx(scale, rel=1e-2)
    assert thin[2] == pytest.approx(scale, rel=1e-2)  # up in the capture is +z afterwards
    assert np.linalg.det(matrix[:3, :3]) > 0


def test_cameras_with_y_up_are_mirrored_as_the_trainer_does():
    target = np.zeros(3)
    offsets = 2 * np.array([[1.0, 0, 0], [0, 0, 1], [-1, 0, 0], [0, 0, -1]])
    poses = np.stack([looking_at(target + o, target, np.array([0.0, -1, 0])) for o in offsets])
    matrix = gsplat_normalization(poses, cloud(100, 1))
    assert np.linalg.det(matrix[:3, :3]) < 0
    splats = random_splats(10).to(torch.float64)
    back = transform_splats(transform_splats(splats, matrix), np.linalg.inv(matrix))
    torch.testing.assert_close(back.means, splats.means)


def trained(points: np.ndarray, seed: int) -> Splats:
    """A model that has grown around sparse points, in their frame."""
    generator = torch.Generator().manual_seed(seed)
    means = torch.from_numpy(points).float().repeat(3, 1)
    means = means + 0.02 * torch.randn(means.shape, generator=generator)
    return replace(random_splats(len(means), 2, seed), means=means)


def test_golden_two_normalised_frames_lead_back_to_one_capture(tmp_path):
    """Two runs on different images of one capture: different frames, one set of means."""
    points = cloud(500, 3)
    splats = trained(points, 3)
    frames, restored = [], []
    for run, poses in enumerate((orbit(24, 5), orbit(11, 6, radius=7.0))):
        matrix = gsplat_normalization(poses, points)
        frames.append(matrix)
        folder = write_gsplat_run(tmp_path / str(run), transform_splats(splats, matrix), ranks=2)
        restored.append(load_splats(folder, frame=matrix))
    assert not np.allclose(frames[0], frames[1], rtol=0.05)
    for model in restored:
        torch.testing.assert_close(model.means, splats.means, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(model.sh, splats.sh, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(model.log_scales, splats.log_scales, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("signs", [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
def test_the_gaussians_tell_which_signs_the_trainer_had(signs):
    points, poses = cloud(800, 4), orbit(20, 4)
    used = np.diag([*signs, 1.0]) @ gsplat_normalization(poses, points)
    model = transform_splats(trained(points, 1), used)
    found = gsplat_frames(model, poses, points)[0]
    np.testing.assert_allclose(found.to_model, used)
    assert found.distance < 0.04
    assert frame_distance(model, points, found.to_model) == found.distance


def test_a_model_that_was_never_normalised_is_recognised():
    points, poses = cloud(800, 4), orbit(20, 4)
    assert gsplat_frames(trained(points, 1), poses, points)[0].name == "COLMAP"


def test_a_model_of_another_scene_is_far_from_the_points_in_every_frame():
    points, poses = cloud(800, 4), orbit(20, 4)
    far = np.eye(4)
    far[:3, 3] = 100
    model = transform_splats(trained(points, 1), far)
    assert gsplat_frames(model, poses, points)[0].distance > 0.04


def test_a_symmetric_scene_is_left_to_the_pictures():
    points = np.random.default_rng(0).normal(size=(300, 3)) * [3.0, 2.0, 1.0]
    points = np.concatenate([points * signs for signs in product((1, -1), repeat=3)])
    poses = orbit(20, 4)
    model = transform_splats(trained(points, 1), gsplat_normalization(poses, points))
    best, second = gsplat_frames(model, poses, points)[:2]
    assert best.distance > 0.7 * second.distance


def test_frame_distance_does_not_depend_on_the_unit():
    points = cloud(300, 9)
    splats = trained(points, 2)
    matrix = np.diag([50.0, 50, 50, 1])
    small = frame_distance(splats, points, np.eye(4))
    assert frame_distance(transform_splats(splats, matrix), points, matrix) == pytest.approx(
        small, rel=1e-3
    )


@pytest.mark.parametrize(
    ("poses", "points", "message"),
    [
        (np.zeros((0, 4, 4)), np.zeros((5, 3)), r"\[N, 4, 4\]"),
        (np.eye(4), np.zeros((5, 3)), r"\[N, 4, 4\]"),
        (np.eye(4)[None], np.zeros((1, 3)), "at least two"),
        (np.eye(4)[None], np.full((5, 3), np.nan), "finite"),
        (np.eye(4)[None], np.zeros((5, 3)), "median distance"),
        (
            np.stack([np.eye(4), np.diag([-1.0, -1, 1, 1])]),
            np.zeros((5, 3)),
            "cancel out",
        ),
    ],
)
def test_captures_that_have_no_frame_are_refused(poses, points, message):
    with pytest.raises(FrameError, match=message):
        gsplat_normalization(poses, points)


def test_nothing_to_compare_is_refused():
    with pytest.raises(FrameError, match="got 4 and 0"):
        frame_distance(random_splats(0), np.zeros((4, 3)), np.eye(4))
