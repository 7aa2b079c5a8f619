# SPDX-License-Identifier: Apache-2.0
"""Paths through and around training cameras: smooth, near them, closed where they close."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from splatcert.camera import Camera
from splatcert.scene.camera_paths import Layout, PathError, look_at, orbit, spline, usual_lens

UP = np.array([0.0, 0.0, 1.0])


def ring(count: int, turn: float = 2 * np.pi, jitter: float = 0.0) -> list[Camera]:
    """Cameras around a point that is not the origin, looking at it."""
    rng, focus = np.random.default_rng(0), np.array([5.0, -2.0, 1.0])
    cameras = []
    for k in range(count):
        angle = turn * k / count
        centre = focus + [3 * np.cos(angle), 3 * np.sin(angle), 1.0] + jitter * rng.normal(size=3)
        pose = look_at(centre, focus - centre, UP)
        size = {"fx": 100.0, "fy": 100.0, "cx": 48.0, "cy": 32.0, "width": 96, "height": 64}
        cameras.append(Camera(world_to_camera=pose, **size))
    return cameras


def steps(path: list[Camera]) -> np.ndarray:
    return np.linalg.norm(np.diff([camera.centre for camera in path], axis=0), axis=1)


def turns(path: list[Camera]) -> np.ndarray:
    axes = np.array([camera.forward for camera in path])
    return np.arccos((axes[1:] * axes[:-1]).sum(1).clip(-1, 1))


def test_what_a_ring_looks_at_is_found():
    layout = Layout.of(ring(40, jitter=0.02))
    np.testing.assert_allclose(layout.focus, [5, -2, 1], atol=0.1)
    assert layout.up @ UP > 0.9 and layout.is_inward


@pytest.mark.parametrize("make", [orbit, spline])
def test_a_ring_is_closed_smooth_and_stays_with_the_cameras(make):
    cameras = ring(40, jitter=0.02)
    path = make(cameras, fps=30, seconds=8)
    assert len(path) == 240
    closed = [*path, path[0]]
    assert steps(closed).max() < 2 * np.median(steps(closed))
    assert turns(closed).max() < np.radians(6)
    centres = np.array([camera.centre for camera in cameras])
    nearest = [np.linalg.norm(centres - camera.centre, axis=1).min() for camera in path]
    assert max(nearest) < 0.35  # half the spacing is 0.24


def test_half_a_ring_is_swung_over_and_not_left():
    path = orbit(ring(20, turn=np.pi), fps=30, seconds=6)
    offsets = np.array([camera.centre for camera in path])[:, :2] - [5, -2]
    angles = np.degrees(np.arctan2(offsets[:, 1], offsets[:, 0]))
    assert angles.min() > -5 and angles.max() < 176
    assert steps([*path, path[0]]).max() < 0.2


def test_an_open_way_goes_from_the_first_to_the_last():
    cameras = ring(20, turn=np.pi)
    path = spline(cameras, fps=10, seconds=4)
    np.testing.assert_allclose(path[0].centre, cameras[0].centre, atol=1e-6)
    np.testing.assert_allclose(path[-1].centre, cameras[-1].centre, atol=1e-6)


def test_names_out_of_order_are_walked_from_neighbour_to_neighbour():
    cameras = ring(40)
    shuffled = [cameras[k] for k in np.random.default_rng(1).permutation(40)]
    assert steps(spline(shuffled, fps=30, seconds=8)).max() < 0.6


def test_the_lens_is_the_usual_one():
    cameras = ring(9)
    cameras[0] = replace(cameras[0], width=50, fx=7.0)
    assert (usual_lens(cameras).width, usual_lens(cameras).fx) == (96, 100.0)


def test_too_few_cameras_make_no_path():
    for cameras in (ring(3), ring(1) * 8):
        with pytest.raises(PathError, match="at least 4 training cameras"):
            orbit(cameras, fps=30)
