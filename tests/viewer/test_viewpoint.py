# SPDX-License-Identifier: Apache-2.0
"""From a browser's camera to ours and back."""

from __future__ import annotations

import numpy as np
import pytest

from splatcert.camera import Camera
from splatcert_bench.synthetic.scenes import made_cameras
from splatcert_viewer.cameras.viewpoint import Viewpoint, viewpoint_of


def test_a_camera_comes_back_from_its_viewpoint():
    for camera in made_cameras(5, 60, 40):
        again = viewpoint_of(camera).camera(60 * 40)
        np.testing.assert_allclose(again.world_to_camera, camera.world_to_camera, atol=1e-12)
        for name in ("fx", "fy", "cx", "cy", "width", "height"):
            assert getattr(again, name) == pytest.approx(getattr(camera, name))


def test_an_upright_browser_camera_looks_along_z_with_y_down():
    here = Viewpoint(np.array([1.0, 0, 0, 0]), np.array([0.0, 0, -4]), np.pi / 2, 2.0)
    pixels, depth = here.camera(200).project(np.array([[0.0, 0, 0], [0, 2, 0], [2, 0, 0]]))
    np.testing.assert_allclose(pixels, [[10, 5], [10, 7.5], [12.5, 5]])
    np.testing.assert_allclose(depth, 4)


def test_the_number_of_pixels_does_not_depend_on_the_window():
    for aspect in (0.4, 1.0, 1.6, 3.0):
        camera = Viewpoint(np.array([1.0, 0, 0, 0]), np.zeros(3), 1.0, aspect).camera(20_000)
        assert camera.width * camera.height == pytest.approx(20_000, rel=0.02)
        assert camera.width / camera.height == pytest.approx(aspect, rel=0.02)


@pytest.mark.parametrize("aspect", [0.7, 1.5, 2.5])
def test_a_window_shows_all_of_a_picture(aspect):
    camera = made_cameras(1, 60, 40)[0]
    window = viewpoint_of(camera).shown_in(aspect).camera(5000)
    assert window.width / window.fx >= 0.98 * camera.width / camera.fx
    assert window.height / window.fy >= 0.98 * camera.height / camera.fy


def test_a_flight_starts_near_and_ends_at_its_goal():
    here, goal = (viewpoint_of(camera) for camera in made_cameras(2, 60, 40))
    way = list(here.flight(goal, 10))
    assert len(way) == 10 and way[-1] is goal
    assert all(isinstance(there.camera(100), Camera) for there in way)
    assert np.linalg.norm(way[0].position - here.position) < 0.1 * np.linalg.norm(
        goal.position - here.position
    )


@pytest.mark.parametrize(
    "broken",
    [
        Viewpoint(np.zeros(4), np.zeros(3), 1.0, 1.0),
        Viewpoint(np.array([1.0, 0, 0, 0]), np.full(3, np.nan), 1.0, 1.0),
        Viewpoint(np.array([1.0, 0, 0, 0]), np.zeros(3), 0.0, 1.0),
        Viewpoint(np.array([1.0, 0, 0, 0]), np.zeros(3), 1.0, float("nan")),
    ],
    ids=["no rotation", "nowhere", "no field of view", "no window"],
)
def test_numbers_that_are_no_camera_are_refused(broken):
    with pytest.raises(ValueError):
        broken.camera(100)
