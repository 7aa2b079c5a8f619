# SPDX-License-Identifier: Apache-2.0
"""The hold-out check: its level, its power, what it says, and where it has nothing to say."""

from __future__ import annotations

import numpy as np
import pytest

from splatcert.camera import Camera
from splatcert.difficulty import holdout_check
from splatcert.difficulty.holdout_check import HoldoutCheck, camera_features, check_holdout

TRIALS, FEWER = 400, 400
"""Simulated captures, and relabellings of each: p = 0.05 stays attainable and exact."""


def camera(centre, heading: float, elevation: float = 0.0, roll: float = 0.0) -> Camera:
    """A camera in a world whose z axis points up; angles in degrees."""
    heading, elevation, roll = np.radians([heading, elevation, roll])
    level = np.array([np.cos(heading), np.sin(heading), 0])
    forward = np.cos(elevation) * level + np.array([0, 0, np.sin(elevation)])
    right = np.cross(forward, [0, 0, 1])
    right /= np.linalg.norm(right)
    down = np.cross(forward, right)
    right = np.cos(roll) * right - np.sin(roll) * down  # anticlockwise: the right side rises
    rotation = np.stack([right, np.cross(forward, right), forward])
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, -rotation @ np.asarray(centre, dtype=float)
    return Camera(world_to_camera=pose, fx=50, fy=50, cx=32, cy=24, width=64, height=48)


def orbit(count: int, rng: np.random.Generator, elevations=(-10.0,)) -> list[Camera]:
    """A walk around the centre, looking inward with some noise, elevations taking turns."""
    found = []
    for k in range(count):
        angle = 360 * k / count
        place = (3 + rng.normal() / 5) * np.array(
            [np.cos(np.radians(angle)), np.sin(np.radians(angle)), 0]
        )
        place[2] = 1 + rng.normal() / 5
        turned = elevations[k % len(elevations)] + 6 * rng.normal()
        found.append(camera(place, angle + 180 + 5 * rng.normal(), turned, 2 * rng.normal()))
    return found


def every(cameras: list[Camera], n: int) -> HoldoutCheck | None:
    return check_holdout(cameras[::n], [c for k, c in enumerate(cameras) if k % n])


@pytest.fixture
def fewer(monkeypatch):
    monkeypatch.setattr(holdout_check, "PERMUTATIONS", FEWER)


@pytest.mark.parametrize(("views", "held_out"), [(24, 6), (80, 10), (80, 40)])
def test_random_hold_outs_are_flagged_at_most_as_often_as_promised(fewer, views, held_out):
    rng = np.random.default_rng(17)
    flagged = 0
    for trial in range(TRIALS):
        mixed = orbit(views, rng, (0.0, 30.0, -20.0))
        mixed = [mixed[k] for k in rng.permutation(views)]
        found = check_holdout(mixed[:held_out], mixed[held_out:], seed=trial)
        flagged += found is not None and found.flagged
    # Three standard errors of a share of 5% over these trials.
    assert flagged / TRIALS <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / TRIALS)


def test_alternating_elevation_is_flagged_under_every_8th(fewer):
    rng = np.random.default_rng(3)
    found = [every(orbit(160, rng, (0.0, 25.0)), 8) for _ in range(100)]
    hits = [one for one in found if one is not None and one.flagged]
    assert len(hits) >= 80
    assert {one.largest.feature for one in hits} == {"elevation"}


def test_the_words_name_feature_numbers_consequence_and_remedy():
    found = every(orbit(160, np.random.default_rng(0), (0.0, 40.0)), 8)
    assert found is not None and found.flagged
    words = found.words
    assert words.startswith("Held-out photos look further down than training photos (median ")
    assert "% of training photos look further up than any of them." in words
    assert f"They differ in elevation (p = {found.p_value:.2g})." in words
    assert "Coverage may differ for the kind of view that is missing" in words
    assert "--holdout random8" in words
    assert found.facts()["differs_most_in"] == "elevation"
    assert found.p_value >= 1 / (1 + found.permutations)


def test_a_fair_hold_out_is_not_approved():
    found = every(orbit(160, np.random.default_rng(0)), 8)
    assert found is not None and not found.flagged
    assert found.words.startswith("No sign of a difference")
    assert found == every(orbit(160, np.random.default_rng(0)), 8)


@pytest.mark.parametrize(
    ("changed", "feature", "said"),
    [
        ({"elevation": 20.0}, "elevation", "look further up"),
        ({"centre": (0, 0, 2)}, "height", "stand higher"),
        ({"roll": 40.0}, "roll", "are rolled further anticlockwise"),
        ({"heading": 180.0}, "looking inward", "look further outward"),
        ({"far": 1.5}, "radius", "stand farther from the centre"),
    ],
)
def test_each_feature_is_found_by_name(changed, feature, said):
    """Noise in every feature, a shift in one of them."""
    rng = np.random.default_rng(5)
    parts: dict[bool, list[Camera]] = {True: [], False: []}
    for k in range(120):
        held_out = k % 3 == 0
        shift = changed if held_out else {}
        angle = 3.0 * k
        around = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle)), 0])
        place = (3 + rng.normal() / 10) * shift.get("far", 1) * around + shift.get("centre", 0)
        place[2] += rng.normal() / 10
        heading = angle + 180 + shift.get("heading", 0) + rng.normal()
        turned = shift.get("elevation", 0) + rng.normal()
        parts[held_out].append(camera(place, heading, turned, shift.get("roll", 0) + rng.normal()))
    found = check_holdout(parts[True], parts[False])
    assert found is not None and found.flagged
    assert found.largest.feature == feature and said in found.finding


def test_features_are_those_of_the_definition():
    """One camera at a time, in a capture whose up and centre are known by symmetry."""
    ring = [
        camera((np.cos(a), np.sin(a), 0), np.degrees(a) + 180) for a in np.arange(8) * np.pi / 4
    ]
    found = camera_features([camera((0, 0, 0.5), 0, 30, 10), camera((0, 0, -0.5), 0)], ring)
    assert np.degrees(found["elevation"][0]) == pytest.approx(30, abs=1e-3)
    # Seen from the horizontal: the right axis rises by the roll, less what elevation takes.
    expected = np.sin(np.radians(10)) * np.cos(np.radians(30))
    assert np.sin(found["roll"][0]) == pytest.approx(expected, abs=1e-5)
    assert found["height"][:2] == pytest.approx([0.5 / 1.1, -0.5 / 1.1], abs=1e-5)
    assert np.degrees(found["looking inward"][2:]) == pytest.approx(90, abs=0.1)


def test_the_check_does_not_depend_on_the_world_frame():
    cameras = orbit(80, np.random.default_rng(2), (0.0, 20.0))
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    moved = []
    for one in cameras:
        pose = np.eye(4)
        pose[:3, :3] = one.world_to_camera[:3, :3] @ turn.T
        pose[:3, 3] = -pose[:3, :3] @ (7 * turn @ one.centre + 3)
        moved.append(Camera(world_to_camera=pose, fx=50, fy=50, cx=32, cy=24, width=64, height=48))
    before, after = every(cameras, 8), every(moved, 8)
    assert before is not None and after is not None
    assert before.p_value == pytest.approx(after.p_value, abs=0.01)


def test_nothing_to_compare_is_no_finding():
    rng = np.random.default_rng(0)
    alike = [camera((1, 2, 3), 40, 10)] * 40
    assert every(alike, 8) is None
    assert check_holdout([], alike) is None
    assert every(orbit(20, rng), 8) is None  # three held out
    assert check_holdout(orbit(20, rng), orbit(3, rng)) is None


def test_a_panorama_and_a_drone_are_no_errors():
    panorama = [camera((0, 0, 0), 9 * k, 10 * (k % 2)) for k in range(40)]
    found = every(panorama, 8)
    assert found is not None and found.largest.feature == "elevation"
    # Straight down with turning headings: there is no common up, and nothing to call elevation.
    drone = [camera((k % 8, k // 8, 5), 45 * (k % 8), -89.999) for k in range(40)]
    found = every(drone, 7)
    assert found is not None
    assert {one.feature for one in found.differences} <= {"radius", "looking inward"}
