# SPDX-License-Identifier: Apache-2.0
"""The two-sample test between query cameras and calibration views."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_flag import ring, turned

from splatcert.strangeness import comparison
from splatcert.strangeness.comparison import compare_cameras

TRAINING = [sight.camera for sight in ring(40, 0)]


def compared(queries, calibration, seed=0):
    generator = np.random.default_rng(seed)
    described = tuple(generator.normal(size=(len(group), 24)) for group in (queries, calibration))
    return compare_cameras(queries, calibration, TRAINING, described, extent=1.1)


def cameras(count, seed):
    return [sight.camera for sight in ring(count, seed)]


def test_turned_and_zoomed_cameras_differ_and_the_feature_is_named():
    calibration = cameras(20, 1)
    rolled = compared([turned(camera, "z", 180) for camera in cameras(8, 2)], calibration)
    assert rolled.differs and rolled.feature == "nearest pose" and rolled.larger
    assert "most in distance and rotation to the nearest training camera" in rolled.words
    zoomed = [replace(camera, fx=200.0, fy=200.0) for camera in cameras(8, 2)]
    assert compared(zoomed, calibration).feature == "lens"


def test_the_level_is_kept(monkeypatch):
    monkeypatch.setattr(comparison, "PERMUTATIONS", 99)
    p_values = [
        compared(cameras(8, 100 + k), cameras(12, 900 + k), seed=k).p_value for k in range(100)
    ]
    assert np.mean(np.array(p_values) < 0.05) <= 0.12  # 5% and three standard errors


def test_the_same_cameras_show_no_sign_and_are_not_approved():
    calibration = cameras(12, 1)
    described = np.random.default_rng(0).normal(size=(12, 24))
    found = compare_cameras(calibration, calibration, TRAINING, (described, described), extent=1.1)
    assert found.p_value == 1 and found.words.startswith("no sign of a difference")


@pytest.mark.parametrize("count", [0, 3])
def test_too_few_cameras_say_nothing(count):
    calibration = cameras(12, 1)
    assert compared(calibration[:count], calibration) is None
