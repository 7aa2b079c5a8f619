# SPDX-License-Identifier: Apache-2.0
"""View scores and thresholds: what goes in, what comes out, what is refused."""

from __future__ import annotations

import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatcert.conformal import (
    CalibrationTooSmall,
    measure_coverage,
    rgb_residual,
    threshold,
    view_score,
    view_scores,
)
from splatcert.conformal.calibrate import shortfall
from splatcert.conformal.maps import (
    Coverage,
    MapError,
    covered_by_tenth,
    each_view,
    view_maps,
)

RESIDUAL = np.arange(1.0, 13.0).reshape(3, 4) / 100


def test_a_score_is_the_ratio_that_the_last_covered_pixel_needs():
    assert view_score(RESIDUAL, 0.01, "1/4") == pytest.approx(9)
    assert view_score(RESIDUAL, np.full((3, 4), 0.01), 0.1) == pytest.approx(11)


def test_scores_at_several_betas_come_from_one_partition(monkeypatch):
    calls = []
    partition = np.partition
    monkeypatch.setattr(np, "partition", lambda *given: calls.append(given) or partition(*given))
    betas = ("0.05", "0.1", "0.5")
    found = view_scores(RESIDUAL, 1.0, betas)
    assert len(calls) == 1
    assert found.tolist() == [view_score(RESIDUAL, 1.0, beta) for beta in betas]


def test_float32_maps_are_divided_in_float64():
    residual = np.full((2, 2), 1 / 3, dtype=np.float32)
    scale = np.full((2, 2), 0.7, dtype=np.float32)
    assert view_score(residual, scale, 0.1) == float(residual[0, 0]) / float(scale[0, 0])


def test_a_mask_says_which_pixels_there_are():
    """n_v counts the pixels of P_v, and nothing outside is looked at."""
    mask = RESIDUAL < 0.045
    residual, scale = np.where(mask, RESIDUAL, np.nan), np.where(mask, 0.01, 0.0)
    assert view_score(residual, scale, "1/2", mask) == pytest.approx(2)
    assert view_score(RESIDUAL, 1.0, 0.1, np.ones((3, 4), dtype=bool)) == view_score(
        RESIDUAL, 1.0, 0.1
    )


def test_a_perfect_view_scores_zero_and_a_hopeless_one_infinity():
    assert view_score(np.zeros((2, 2)), 1.0, 0.1) == 0
    assert view_score(np.full((2, 2), 1e300), 1e-300, 0.1) == np.inf


def spoilt(values, index, value):
    changed = np.array(values, dtype=np.float64)
    changed[index] = value
    return changed


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_scale_that_is_not_positive_and_finite_is_refused(bad):
    scale = spoilt(spoilt(np.ones((3, 4)), (1, 2), bad), (2, 0), bad)
    expected = rf"scale must be positive and finite.\n  2 of 12 .* {bad} at index \(1, 2\)"
    with pytest.raises(MapError, match=expected):
        view_score(RESIDUAL, scale, 0.1)


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf])
def test_a_residual_that_is_not_finite_and_non_negative_is_refused(bad):
    expected = r"residual must be finite and at least 0.\n  1 of 12 pixels .* index \(0, 3\)"
    with pytest.raises(MapError, match=expected):
        view_score(spoilt(RESIDUAL, (0, 3), bad), 1.0, 0.1)


@pytest.mark.parametrize(
    "residual, scale, mask, message",
    [
        (RESIDUAL, np.ones((4, 3)), None, r"residual is \(3, 4\) and scale is \(4, 3\)"),
        (np.ones((3, 4, 3)), 1.0, None, r"one number per pixel.*\n  .*largest channel"),
        (RESIDUAL, 1.0, np.zeros((3, 4), dtype=bool), "no pixel counts: none of 12 pixels"),
        (RESIDUAL, 1.0, np.ones((3, 4), dtype=np.uint8), "mask must be bool .* got uint8"),
        (RESIDUAL, 1.0, np.ones((2, 4), dtype=bool), r"mask must be bool \(3, 4\)"),
        (np.ones((0, 4)), 1.0, None, "no pixel counts"),
    ],
)
def test_maps_that_do_not_fit_together_are_refused(residual, scale, mask, message):
    with pytest.raises(MapError, match=message):
        view_score(residual, scale, 0.1, mask)


def test_the_view_at_fault_is_named():
    with pytest.raises(MapError, match="view 1: scale must be positive"):
        list(each_view([RESIDUAL, RESIDUAL], [1.0, 0.0]))


@pytest.mark.parametrize(
    "residuals, scales, masks, message",
    [
        ([RESIDUAL] * 3, [1.0] * 2, None, "scales end after 2 views"),
        ([RESIDUAL], [1.0] * 2, None, "residuals end after 1 views"),
        ([RESIDUAL] * 2, [1.0] * 2, [None], "masks end after 1 views"),
    ],
)
def test_lists_of_different_length_are_refused(residuals, scales, masks, message):
    with pytest.raises(MapError, match=message):
        list(each_view(residuals, scales, masks))


def test_the_residual_of_a_pixel_is_its_largest_channel():
    photo = np.array([[[0.1, 0.5, 0.9], [0.2, 0.2, 0.2]]])
    center = np.array([[[0.2, 0.8, 0.7], [0.2, 0.2, 0.2]]])
    assert rgb_residual(photo, center) == pytest.approx(np.array([[0.3, 0.0]]))
    with pytest.raises(MapError, match="must both be"):
        rgb_residual(photo, center[0])


def test_a_threshold_is_one_of_the_scores():
    scores = [5.0, 3.0, 9.0, 1.0, 7.0, 2.0, 8.0, 4.0, 6.0]
    assert threshold(scores, 0.1) == 9
    assert threshold(scores, "1/2") == 5
    assert threshold(np.array(scores), Fraction(1, 5)) == 8


def test_too_few_views_give_an_infinite_threshold_and_say_how_many_are_missing():
    expected = (
        "8 calibration views cannot certify alpha = 1/10: every box is unbounded.\n"
        "  A finite threshold requires ceil((m + 1) * 9/10) <= m, that is m >= 9.\n"
        "  Hold out at least 1 more view, or use alpha >= 1/9."
    )
    with pytest.warns(CalibrationTooSmall) as caught:
        assert threshold([1.0] * 8, 0.1) == np.inf
    assert [str(warning.message) for warning in caught] == [expected]
    assert caught[0].filename == __file__


def test_no_view_at_all_is_too_few_as_well():
    with pytest.warns(CalibrationTooSmall, match=r"0 calibration views .*\n.*\n.*9 more views\.$"):
        assert threshold([], 0.1) == np.inf


def test_what_the_warning_advises_is_true():
    for views in range(1, 30):
        for percent in range(1, 100):
            alpha = Fraction(percent, 100)
            enough = shortfall(views, alpha) is None
            assert enough == (alpha >= Fraction(1, views + 1))


def test_enough_views_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threshold([1.0] * 9, 0.1)


def test_an_infinite_score_makes_the_threshold_infinite_only_if_it_must():
    scores = [np.inf] + [1.0] * 18
    assert threshold(scores, 0.1) == 1
    assert threshold(scores, 0.05) == np.inf


def test_scores_that_are_no_list_of_numbers_are_refused():
    with pytest.raises(MapError, match="one number per view"):
        threshold(np.ones((9, 2)), 0.1)
    with pytest.raises(ValueError, match="NaN"):
        threshold([float("nan")] * 9, 0.1)


def test_coverage_counts_pixels_and_views():
    scales = [np.ones((3, 4)), np.full((3, 4), 2.0)]
    found = measure_coverage([RESIDUAL, RESIDUAL], scales, 0.06, "1/4", [None, RESIDUAL > 0.02])
    assert found == Coverage(
        views=2, covered_views=1, pixels=22, covered_pixels=16, mean_half_width=pytest.approx(0.09)
    )
    assert (found.view_coverage, found.pixel_coverage) == (0.5, 16 / 22)
    with pytest.raises(MapError, match="no view was given"):
        measure_coverage([], [], 1.0, 0.1)


@given(st.integers(1, 400), st.integers(1, 99))
def test_a_view_on_the_edge_of_its_level_counts_exactly(pixels, percent):
    """k of n pixels inside is a success if and only if k / n >= 1 - beta, as fractions."""
    beta = Fraction(percent, 100)
    residual = np.arange(pixels, dtype=np.float64)
    for inside in {1, pixels, int(pixels * (1 - beta)), int(pixels * (1 - beta)) + 1}:
        if 1 <= inside <= pixels:
            found = measure_coverage([residual], [1.0], inside - 0.5, beta)
            assert found.covered_pixels == inside
            assert bool(found.covered_views) == (Fraction(inside, pixels) >= 1 - beta)


def test_the_guarantee_needs_no_torch():
    code = "import splatcert.conformal, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tenths_hold_equal_widths_together_and_every_pixel_once():
    """Counted by hand: sorted by width, cut at ranks, ties never split."""
    rng = np.random.default_rng(3)
    scale = rng.choice(np.linspace(0.1, 2, 40), size=(17, 23))
    residual = rng.uniform(0, 1, scale.shape)
    counts = covered_by_tenth(view_maps(residual, scale), 0.7)
    assert counts[:, 0].sum() == scale.size
    assert counts[:, 1].sum() == (residual / scale <= 0.7).sum()
    edges = np.sort(scale, axis=None)[[-(-scale.size * k // 10) - 1 for k in range(1, 10)]]
    for tenth, (pixels, inside) in enumerate(counts):
        lower = scale > edges[tenth - 1] if tenth else np.full(scale.shape, True)
        mine = lower & (scale <= edges[tenth]) if tenth < 9 else lower
        assert pixels == mine.sum() and inside == (mine & (residual / scale <= 0.7)).sum()


def test_a_constant_scale_has_one_tenth():
    counts = covered_by_tenth(view_maps(np.full((5, 4), 0.3), 1.0), 0.5)
    assert counts.tolist() == [[20, 20], *[[0, 0]] * 9]
