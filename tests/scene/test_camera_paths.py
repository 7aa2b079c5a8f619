# SPDX-License-Identifier: Apache-2.0
"""Paths through and around training cameras: smooth, near them, closed where they close."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from splatcert.camera import Camera
from splatcert.scene.camera_paths import CameraPathError, Layout, look_at, orbit, spline, usual_lens
from splatcert.scene.readers.camera_files import (
    CameraListError,
    path_rate,
    read_cameras,
    write_camera_list,
)

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
        with pytest.raises(CameraPathError, match="at least 4 training cameras"):
            orbit(cameras, fps=30)


def test_a_list_of_cameras_with_times_is_a_path(tmp_path):
    cameras = {f"path_{index}": camera for index, camera in enumerate(ring(5))}
    for fps in (None, 1, 24, 30):
        write_camera_list(tmp_path / "list.json", cameras, fps=fps)
        assert path_rate(tmp_path / "list.json") == fps
        assert list(read_cameras(tmp_path / "list.json")) == list(cameras)


@pytest.mark.parametrize("times", [[0, 0], [1, 0], ["a", 1], [None, 1], [float("nan"), 1], [0]])
def test_times_that_do_not_increase_are_refused(times, tmp_path):
    path = tmp_path / "list.json"
    write_camera_list(path, {f"view {k}": camera for k, camera in enumerate(ring(8)[: len(times)])})
    entries = json.loads(path.read_text())
    for entry, seconds in zip(entries, times, strict=True):
        entry["seconds"] = seconds
    path.write_text(json.dumps(entries))
    with pytest.raises(CameraListError, match="increasing times"):
        path_rate(path)
