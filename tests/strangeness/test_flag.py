# SPDX-License-Identifier: Apache-2.0
"""The flag of a camera: its rate of false alarms is exact, and gross cases are flagged."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from splatcert.camera import Camera
from splatcert.conformal.calibrate import state_flag
from splatcert.scene.camera_paths import look_at
from splatcert.strangeness.limit import StrangenessLimit
from splatcert.strangeness.measures import COMPONENTS, Sight, StrangenessError, Units
from splatcert.strangeness.poses import TrainingPoses


def ring(count: int, seed: int) -> list[Sight]:
    """Views of an orbit, each with shares and a factor, independent and alike."""
    generator, sights = np.random.default_rng(seed), []
    for turn in generator.uniform(0, 2 * math.pi, count):
        place = np.array([math.cos(turn), math.sin(turn), 0.3 + 0.1 * generator.random()])
        camera = Camera(
            world_to_camera=look_at(place, -place, np.array([0.0, 0, 1])),
            fx=100.0,
            fy=100.0,
            cx=60.0,
            cy=40.0,
            width=120,
            height=80,
        )
        shares = 0.05 * generator.random(3)
        sights.append(Sight(camera, shares, float(np.exp(0.2 * generator.normal()))))
    return sights


def turned(camera: Camera, axis: str, degrees: float) -> Camera:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler(axis, degrees, degrees=True).as_matrix()
    return replace(camera, world_to_camera=pose @ camera.world_to_camera)


@pytest.fixture(scope="module")
def capture():
    training, calibration = ring(60, 0), ring(20, 1)
    poses = TrainingPoses([sight.camera for sight in training], 1.1)
    return StrangenessLimit.of(training, calibration, poses), calibration, poses


@pytest.mark.parametrize(
    ("views", "rate"), [(1, "1/2"), (9, "1/10"), (19, "1/20"), (20, "1/21"), (39, "2/40")]
)
def test_the_rate_is_the_largest_up_to_five_percent_that_the_views_allow(views, rate):
    training = ring(10, 0)
    poses = TrainingPoses([sight.camera for sight in training], 1.1)
    assert StrangenessLimit.of(training, ring(views, 1), poses).rate == Fraction(rate)


def test_false_alarms_by_enumeration():
    """Each of m + 1 views in turn is the new one: exactly the stated share is flagged."""
    training, views = ring(40, 2), ring(20, 3)
    poses = TrainingPoses([sight.camera for sight in training], 1.1)
    flagged = 0
    for new in range(len(views)):
        limit = StrangenessLimit.of(training, views[:new] + views[new + 1 :], poses)
        flagged += not limit.check(views[new], poses).inside
    assert Fraction(flagged, len(views)) == limit.rate == Fraction(1, 20)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
@pytest.mark.parametrize("degrees", [60, 90, 180])
def test_a_camera_turned_on_the_spot_is_flagged_about_every_axis(capture, axis, degrees):
    limit, calibration, poses = capture
    for sight in calibration:
        flag = limit.check(sight._replace(camera=turned(sight.camera, axis, degrees)), poses)
        assert not flag.inside and "degrees from the nearest" in flag.reasons[0]


@pytest.mark.parametrize("zoom", [1 / 2, 2, 3, 8])
def test_a_zoomed_camera_is_flagged(capture, zoom):
    limit, calibration, poses = capture
    for sight in calibration:
        camera = replace(sight.camera, fx=zoom * sight.camera.fx, fy=zoom * sight.camera.fy)
        flag = limit.check(sight._replace(camera=camera), poses)
        assert any("field of view" in reason for reason in flag.reasons)


def test_a_window_of_another_shape_has_the_same_field_of_view(capture):
    limit, calibration, poses = capture
    camera = calibration[0].camera
    wide = replace(camera, width=138, height=70, cx=69.0, cy=35.0, fx=87.5, fy=87.5)
    assert limit.check(calibration[0]._replace(camera=wide), poses).inside


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shares": np.array([0.9, 0.0, 0.0])}, "shows holes in the model in 90% of its pixels"),
        ({"shares": np.array([0.0, 0.9, 0.0])}, "surfaces that no training photo shows in 90%"),
        ({"shares": np.array([0.0, 0.0, 0.9])}, "from over 90 degrees off"),
        ({"factor": 9.0}, "has view factor 9.00"),
        ({"factor": 0.1}, "has view factor 0.10"),
    ],
)
def test_what_a_camera_sees_can_be_strange_too(capture, change, said):
    limit, calibration, poses = capture
    flag = limit.check(calibration[0]._replace(**change), poses)
    assert said in flag.reasons[0]
    assert flag.words().endswith("(false alarms: at most 4.8% of views like the calibration views)")


def test_a_training_view_is_measured_against_the_others():
    training = ring(30, 4)
    poses = TrainingPoses([sight.camera for sight in training], 1.1)
    assert poses.nearest(training[0].camera).pose == 0
    assert poses.nearest(training[0].camera, without=0).pose > 0
    assert Units.of(training, poses).medians[0] > 0


def test_impossible_units_are_refused():
    with pytest.raises(StrangenessError, match="positive"):
        Units(medians=(0.0,) * 7, units=(0.0,) * len(COMPONENTS), log_factor=0.0)


def test_what_a_flag_does_to_the_promise_is_stated_once():
    words = state_flag(Fraction(1, 10), Fraction(1, 21))
    assert "alpha / (1 - share flagged), here at most 10.5%" in words
