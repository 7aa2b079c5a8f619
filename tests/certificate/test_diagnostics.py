# SPDX-License-Identifier: Apache-2.0
"""Diagnostics beside the guarantee: out-of-support flags, tests, estimates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certified_capture import HELD_OUT
from splatcert.certificate.diagnostics import CERTIFIED, CONSTANT, evenness_test
from splatcert.scene.camera_paths import look_at
from splatcert_bench.synthetic.scenes import made_cameras


def test_no_calibration_view_is_out_of_its_own_support(certificate, photos):
    for name in HELD_OUT:
        assert certificate.predict(photos[0][name]).flag.inside


def test_a_camera_far_away_is_flagged_with_reasons_in_words(certificate, photos):
    camera = photos[0][HELD_OUT[0]]
    far = replace(
        camera,
        world_to_camera=look_at(
            np.array([0.0, -40, 30]), np.array([0.0, 40, -30]), np.array([0, 0, 1.0])
        ),
    )
    flag = certificate.predict(far).flag
    assert not flag.inside
    assert any("degrees from the nearest training camera" in why for why in flag.reasons)
    assert flag.words().startswith("out of distribution: ")
    assert "false alarms: at most 7.7%" in flag.words()  # one in 13


def test_a_camera_above_is_far_from_the_training_cameras(certificate, photos):
    above = look_at(
        np.array([0.1, 0.1, 4.0]), np.array([-0.1, -0.1, -4.0]), np.array([0.0, 1.0, 0.0])
    )
    flag = certificate.predict(replace(photos[0][HELD_OUT[0]], world_to_camera=above)).flag
    assert any("from the nearest training camera" in why for why in flag.reasons)


def test_another_resolution_is_flagged(certificate):
    (camera,) = made_cameras(1, 120, 80)
    flag = certificate.predict(camera).flag
    assert any("has 120 x 80 pixels" in why for why in flag.reasons)


def test_scores_that_drift_along_the_capture_are_doubted(certificate, photos):
    cameras = photos[0]
    drifting = {name: float(k) for k, name in enumerate(HELD_OUT)}
    assert evenness_test(drifting, cameras, 0).p_value < 0.01
    shuffled = dict(
        zip(HELD_OUT, np.random.default_rng(0).permutation(len(HELD_OUT)).tolist(), strict=True)
    )
    assert evenness_test(shuffled, cameras, 0).p_value > 0.05
    assert 0 < certificate.record.evenness.p_value <= 1


def test_the_estimate_knows_every_scale_and_is_relative_to_the_constant_one(certificate):
    found = certificate.record.splits
    assert found.splits == 200 and found.calibration_views == 11
    assert set(found.scales) == {CERTIFIED, CONSTANT, "a only", "b~ only", "oracle a"}
    assert found.scales[CONSTANT].saving == 0
    assert found.scales["oracle a"].coverage == 1
    widths = {name: one.width for name, one in found.scales.items()}
    assert widths["oracle a"] == min(widths.values())
    for name, one in found.scales.items():
        assert one.saving == pytest.approx(1 - widths[name] / widths[CONSTANT])
