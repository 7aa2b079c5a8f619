# SPDX-License-Identifier: Apache-2.0
"""Paths: cutting into stretches, the estimator, and what is refused with which numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from splatcert.conformal import (
    PathConformal,
    path_risk_control,
    path_threshold,
    stretch_score,
    stretches_of,
    view_score,
)
from splatcert.conformal.levels import LevelError
from splatcert.conformal.maps import MapError
from splatcert.conformal.path_conformal import PathError
from splatcert.conformal.ranks import RankError, views_needed
from splatcert.conformal.view_conformal import CallOrderError

CENTER = np.full((5, 6, 3), 0.5)


@pytest.fixture
def maps():
    """47 views: nine stretches of five, and two more."""
    rng = np.random.default_rng(6)
    return rng.exponential(0.1, (47, 5, 6)), rng.uniform(0.1, 0.4, (47, 5, 6))


def made(maps):
    return PathConformal("1/10", "1/10", "1/5", 5).conformalize(*maps)


def test_stretches_are_consecutive_and_the_remainder_is_named():
    found = stretches_of([f"{k:02}.jpg" for k in range(8)], 3)
    assert found.runs == (("00.jpg", "01.jpg", "02.jpg"), ("03.jpg", "04.jpg", "05.jpg"))
    assert found.dropped == ("06.jpg", "07.jpg")
    assert stretches_of(["a", "b"], 2).dropped == ()
    assert stretches_of(["a", "b"], 3).runs == ()


def test_it_is_view_scores_stretch_scores_and_a_threshold(maps):
    conformal = made(maps)
    views = [view_score(r, s, "1/10") for r, s in zip(*maps, strict=True)]
    runs = [stretch_score(views[at : at + 5], "1/5") for at in range(0, 45, 5)]
    assert conformal.view_scores.tolist() == views
    assert (
        conformal.scores.tolist() == runs == [sorted(views[k : k + 5])[3] for k in range(0, 45, 5)]
    )
    assert conformal.threshold == path_threshold(runs, "1/10") == max(runs)
    assert conformal.threshold == path_risk_control(views, 5, "1/5", "1/10")
    boxes = conformal.predict_interval(CENTER, maps[1][0])
    assert boxes.threshold == conformal.threshold
    assert boxes.half_width == pytest.approx(conformal.threshold * maps[1][0])


def test_masks_reach_every_step(maps):
    residuals, scales = maps
    mask = np.zeros((5, 6), dtype=bool)
    mask[1:4] = True
    blank = np.where(mask, scales, 0.0)
    masked = PathConformal(0.1, 0.1, 0, 5).conformalize(residuals, blank, [mask] * 47)
    inner = PathConformal(0.1, 0.1, 0, 5).conformalize(residuals[:, 1:4], scales[:, 1:4])
    assert masked.scores.tolist() == inner.scores.tolist()
    boxes = masked.predict_interval(CENTER, blank[0], mask)
    assert np.isinf(boxes.half_width[0]).all() and np.isfinite(boxes.half_width[1]).all()


def test_the_promise_its_scope_and_what_was_dropped_are_said(maps):
    assert made(maps).guarantee() == (
        "With probability at least 90%, at least 4 of the 5 views of a new stretch have at "
        "least 90% of their pixels inside their boxes, if the stretch is exchangeable with "
        "the 9 calibration stretches (9 runs of 5 consecutive held-out views, the last 2 of "
        "47 views not used; threshold = 9th smallest of 9 stretch scores)"
    )
    every = PathConformal("1/3", "5%", 0, 5).conformalize(maps[0][:45], maps[1][:45]).guarantee()
    assert "at least 2/3, all 5 views of a new stretch have at least 95%" in every
    assert "not used" not in every


@pytest.mark.parametrize("gamma", [0, 0.0, "0", "0.00", "0%", Fraction(0)])
def test_a_gamma_of_zero_asks_for_every_view(gamma):
    assert PathConformal(0.1, 0.1, gamma, 4).gamma == 0
    assert stretch_score([3, 1, 2], gamma) == 3


def test_levels_are_exact_in_a_stretch_too():
    """In floating point ceil(50 * (1 - 0.18)) is 42 although 50 * 0.82 is 41."""
    assert stretch_score(range(1, 51), 0.18) == 41


@pytest.mark.parametrize("gamma, length, enough", [("1/10", 5, 10), ("1/6", 5, 6), (0.3, 3, 4)])
def test_a_gamma_that_allows_no_miss_is_refused_with_what_would_do(gamma, length, enough):
    with pytest.raises(PathError, match="allows no miss") as refused:
        PathConformal(0.1, 0.1, gamma, length)
    assert f"gamma >= 1/{length} or stretches of at least {enough} views" in str(refused.value)
    PathConformal(0.1, 0.1, Fraction(1, length), length)
    PathConformal(0.1, 0.1, gamma, enough)
    with pytest.raises(PathError):
        PathConformal(0.1, 0.1, gamma, enough - 1)


@pytest.mark.parametrize("length", [1, 0, -5])
def test_a_stretch_has_at_least_two_views(length):
    with pytest.raises(PathError, match="at least 2 views"):
        PathConformal(0.1, 0.1, 0, length)
    with pytest.raises(PathError, match="at least 2 views"):
        stretches_of(["a"], length)


def test_too_few_photographs_are_refused_with_the_smallest_numbers_that_would_do():
    with pytest.raises(PathError) as refused:
        PathConformal("1/10", "1/10", "1/2", 5).require_photographs(23)
    assert str(refused.value) == (
        "23 held-out photographs make 4 stretches of 5, too few for alpha = 1/10.\n"
        "  A finite threshold requires ceil((m + 1) * 9/10) <= m, that is 9 stretches or "
        "45 photographs.\n"
        "  Hold out at least 22 more, use stretches of at most 2 views, or use alpha >= 1/5."
    )
    PathConformal("1/10", "1/10", "1/2", 5).require_photographs(23 + 22)
    PathConformal("1/10", "1/10", "1/2", 2).require_photographs(23)
    PathConformal("1/5", "1/10", "1/2", 5).require_photographs(23)
    for alpha, length, count in (("1/10", 5, 44), ("1/10", 3, 23), ("199/1000", 5, 23)):
        with pytest.raises(PathError):
            PathConformal(alpha, "1/10", "1/2", length).require_photographs(count)


def test_only_what_would_do_is_proposed():
    """Stretches of two would carry alpha, but gamma = 1/5 allows no miss in them."""
    with pytest.raises(PathError, match="Hold out at least 22 more, or use alpha >= 1/5"):
        PathConformal(0.1, 0.1, "1/5", 5).require_photographs(23)
    with pytest.raises(PathError, match=r"Hold out at least 42 more\."):
        PathConformal(0.1, 0.1, 0, 5).require_photographs(3)


def test_too_few_stretch_scores_are_refused():
    with pytest.raises(PathError, match=r"Use at least 9 stretches, or use alpha >= 1/3\."):
        path_threshold([1.0, 2.0], "1/10")
    assert path_threshold([1.0, 2.0], "1/3") == 2
    assert path_threshold(range(views_needed(Fraction(1, 10))), "1/10") == 8


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]], 3.0])
def test_a_stretch_score_is_of_one_number_per_view(scores):
    with pytest.raises(MapError, match="one number per view"):
        stretch_score(scores, "1/5")


def test_nan_has_no_rank():
    with pytest.raises(RankError, match="NaN"):
        stretch_score([1.0, np.nan], 0)


@pytest.mark.parametrize("level", [1, "none", -0.1])
def test_levels_are_checked_when_it_is_made(level):
    for levels in ((level, 0.1, 0.2), (0.1, level, 0.2), (0.1, 0.1, level)):
        with pytest.raises(LevelError):
            PathConformal(*levels, length=5)


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.predict_interval(CENTER, 1.0),
        lambda c: c.guarantee(),
        lambda c: c.scores,
        lambda c: c.threshold,
        lambda c: c.stretches,
    ],
)
def test_nothing_is_answered_before_calibration(ask):
    with pytest.raises(CallOrderError, match="call conformalize first"):
        ask(PathConformal(0.1, 0.1, 0.2, 5))


def test_a_threshold_is_set_once_and_a_failed_calibration_sets_none(maps):
    conformal = PathConformal(0.1, 0.1, 0.2, 5)
    with pytest.raises(PathError, match="44 held-out photographs make 8 stretches"):
        conformal.conformalize(maps[0][:44], maps[1][:44])
    assert conformal.conformalize(*map(iter, maps)).stretches == 9
    with pytest.raises(CallOrderError, match="already conformalized on 9 stretches"):
        conformal.conformalize(*maps)
    before = conformal.threshold
    conformal.view_scores[:] = 0
    assert conformal.threshold == before


def test_its_representation_makes_another_like_it():
    conformal = PathConformal(0.1, "5%", 0, 5)
    assert repr(conformal) == "PathConformal(alpha='1/10', beta='1/20', gamma='0', length=5)"
    assert repr(eval(repr(conformal))) == repr(conformal)


def test_the_page_has_the_numbers_of_photographs():
    page = (Path(__file__).resolve().parents[2] / "docs/three-guarantees.md").read_text("utf-8")
    rows = re.findall(r"^\| (view|family, any K|path, L = \d+) \| (\d+) \| (\d+) \|$", page, re.M)
    assert len(rows) == 5
    for name, *written in rows:
        for alpha, number in zip(("1/10", "1/20"), map(int, written), strict=True):
            length = int(name.split("= ")[1]) if "L" in name else 1
            assert number == length * views_needed(Fraction(alpha))
            if length > 1:
                conformal = PathConformal(alpha, "1/10", 0, length)
                conformal.require_photographs(number)
                with pytest.raises(PathError):
                    conformal.require_photographs(number - 1)
