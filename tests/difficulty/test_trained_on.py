# SPDX-License-Identifier: Apache-2.0
"""Whether calibration photos look trained on: error rates, matching by pose, hostile input."""

from __future__ import annotations

import numpy as np
import pytest
from test_holdout_check import orbit

from splatcert.difficulty import holdout_check, trained_on
from splatcert.difficulty.trained_on import LEVEL, compare_residuals
from splatcert_bench.synthetic.scenes import made_cameras

TRIALS, FEWER = 100, 400
VIEWS, HELD_OUT = 96, 12


@pytest.fixture(autouse=True)
def fewer(monkeypatch):
    for module in (holdout_check, trained_on):
        monkeypatch.setattr(module, "PERMUTATIONS", FEWER)


def calibration_first(chosen: np.ndarray) -> np.ndarray:
    return np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)])


def p_value(cameras, residuals, chosen) -> float:
    order = calibration_first(chosen)
    found = compare_residuals([cameras[k] for k in order], residuals[order], int(chosen.sum()))
    assert found is not None
    return found.p_value


def smooth(cameras) -> np.ndarray:
    """A residual that depends on the pose alone, by a factor of three."""
    forward = np.array([camera.forward for camera in cameras])
    return 0.05 * np.exp(0.5 * np.sin(3 * forward[:, 0]) + 0.6 * forward[:, 2])


def test_photos_trained_on_pass_as_unseen_at_most_as_often_as_promised():
    rng = np.random.default_rng(5)
    passed = 0
    for _ in range(TRIALS):
        cameras = orbit(VIEWS, rng)
        residuals = smooth(cameras) * np.exp(0.1 * rng.normal(size=VIEWS))
        chosen = np.zeros(VIEWS, dtype=bool)
        chosen[rng.choice(VIEWS, HELD_OUT, replace=False)] = True
        passed += p_value(cameras, residuals, chosen) < LEVEL
    assert passed <= TRIALS * LEVEL + 3 * (TRIALS * LEVEL * (1 - LEVEL)) ** 0.5


def test_unseen_photos_of_an_easier_kind_are_recognised_by_matching_poses():
    """As in a capture that alternates between two elevations: the hold-out is the easier kind."""
    rng = np.random.default_rng(6)
    cameras = orbit(VIEWS, rng, elevations=(-30.0, 10.0))
    chosen = np.arange(VIEWS) % 8 == 0
    easy = np.where(np.arange(VIEWS) % 2 == 0, 0.5, 1.0)
    residuals = 0.1 * easy * np.exp(0.05 * rng.normal(size=VIEWS))
    assert p_value(cameras, residuals, chosen) >= LEVEL
    unseen = residuals * np.where(chosen, 1.2, 1.0)
    assert np.median(unseen[chosen]) < np.median(unseen[~chosen])
    assert p_value(cameras, unseen, chosen) < LEVEL


def test_the_words_name_the_p_value_and_what_follows():
    rng = np.random.default_rng(7)
    cameras = orbit(VIEWS, rng)
    cameras = [cameras[k] for k in calibration_first(np.arange(VIEWS) % 8 == 0)]
    residuals = 0.1 * np.exp(0.05 * rng.normal(size=VIEWS))
    seen = compare_residuals(cameras, residuals, HELD_OUT)
    residuals[:HELD_OUT] *= 2
    unseen = compare_residuals(cameras, residuals, HELD_OUT)
    assert seen is not None and unseen is not None
    assert seen.flagged and "may have been trained on" in seen.words and "too narrow" in seen.words
    assert not unseen.flagged and "as expected of photos it has not seen" in unseen.words
    assert f"p = {unseen.p_value:.2g}" in unseen.words
    assert unseen.facts()["flagged"] is False


def test_a_stretch_of_successive_photos_has_only_itself_to_compare_with():
    """A limit that the documentation states: such photos look trained on even if unseen."""
    rng = np.random.default_rng(7)
    cameras = orbit(VIEWS, rng)
    residuals = 0.1 * np.exp(0.05 * rng.normal(size=VIEWS))
    residuals[: 2 * HELD_OUT] *= 1.5
    found = compare_residuals(cameras, residuals, 2 * HELD_OUT)
    assert found is not None and found.flagged


def test_few_views_one_pose_and_unknown_residuals_are_not_tested():
    cameras = made_cameras(40, 8, 8)
    residuals = np.linspace(0.1, 0.2, 40)
    assert compare_residuals(cameras, residuals, 7) is None
    assert compare_residuals(cameras, residuals, 33) is None
    assert compare_residuals([cameras[0]] * 40, residuals, 12) is None
    unknown = residuals.copy()
    unknown[:8] = np.nan
    assert compare_residuals(cameras, unknown, 12) is None
    found = compare_residuals(cameras, unknown, 20)
    assert found is not None and (found.calibration, found.training) == (12, 20)


def test_a_certificate_of_very_many_views_is_not_tested(monkeypatch):
    cameras, residuals = made_cameras(40, 8, 8), np.linspace(0.1, 0.2, 40)
    monkeypatch.setattr(trained_on, "MOST", 39)
    assert compare_residuals(cameras, residuals, 12) is None


@pytest.mark.parametrize("value", [0.0, np.inf, 1e30])
def test_extreme_residuals_give_a_p_value(value):
    cameras = made_cameras(40, 8, 8)
    residuals = np.linspace(0.1, 0.2, 40)
    residuals[::3] = value
    found = compare_residuals(cameras, residuals, 12)
    assert found is not None and 0 < found.p_value <= 1


def test_copies_of_a_pose_beyond_the_neighbours_asked_for():
    cameras = [made_cameras(4, 8, 8)[0]] * 30 + list(made_cameras(40, 8, 8))
    found = compare_residuals(cameras, np.linspace(0.1, 0.2, 70), 12)
    assert found is None or 0 < found.p_value <= 1
