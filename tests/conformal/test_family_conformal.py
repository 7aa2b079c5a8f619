# SPDX-License-Identifier: Apache-2.0
"""Families: units, the estimator, its members, and what is refused with which numbers."""

from __future__ import annotations

import numpy as np
import pytest

from splatcert.conformal import (
    FamilyConformal,
    PathConformal,
    PathFamilyConformal,
    ViewConformal,
    family_risk_control,
    family_scores,
    threshold,
    units_from,
    view_score,
)
from splatcert.conformal.family_conformal import FamilyError, member_threshold
from splatcert.conformal.maps import MapError
from splatcert.conformal.path_conformal import PathError
from splatcert.conformal.view_conformal import CallOrderError
from splatcert.errors import InputError

CENTER = np.full((5, 6, 3), 0.5)
NAMES = ["full", "pruned", "small"]
UNITS = [0.3, 0.7, 1.1]


@pytest.fixture
def maps():
    """Eleven views under three candidates, [11, 3, 5, 6]."""
    rng = np.random.default_rng(7)
    return rng.exponential(0.1, (11, 3, 5, 6)), rng.uniform(0.1, 0.4, (11, 3, 5, 6))


@pytest.fixture
def family(maps):
    return FamilyConformal("1/10", "1/10", UNITS, NAMES).conformalize(*maps)


def test_it_is_view_scores_their_worst_in_units_and_a_threshold(maps, family):
    views = zip(*maps, strict=True)
    rows = [[view_score(r, s, 0.1) for r, s in zip(*view, strict=True)] for view in views]
    assert family.member_scores.tolist() == rows
    worst = [max(r / c for r, c in zip(row, UNITS, strict=True)) for row in rows]
    assert family.scores.tolist() == family_scores(rows, UNITS).tolist() == worst
    assert family.threshold == threshold(worst, 0.1) == family_risk_control(rows, UNITS, 0.1)


def test_a_member_uses_the_threshold_in_its_own_unit(maps, family):
    for k, (name, unit) in enumerate(zip(NAMES, UNITS, strict=True)):
        member = family.member(name)
        assert member == family.member(k)
        assert (member.name, member.unit) == (name, unit)
        assert member.threshold == pytest.approx(family.threshold * unit, rel=1e-15)
        boxes = family.predict_interval(CENTER, maps[1][0, k], member=name)
        assert boxes.threshold == member.threshold
        alone = ViewConformal(0.1, 0.1).conformalize(maps[0][:, k], maps[1][:, k])
        assert member.alone == alone.threshold
        assert member.price == member.threshold / alone.threshold - 1
        # The family's eleventh score is the largest, so every member covers all eleven views.
        assert member.threshold >= member.alone
    assert min(family.member(k).price for k in range(3)) == pytest.approx(0, abs=1e-15)


def test_a_family_of_one_is_a_plain_certificate(maps):
    one = FamilyConformal(0.1, 0.1, [1.0], ["only"]).conformalize(maps[0][:, :1], maps[1][:, :1])
    alone = ViewConformal(0.1, 0.1).conformalize(maps[0][:, 0], maps[1][:, 0])
    assert one.member("only").threshold == one.threshold == alone.threshold


@pytest.mark.parametrize("k", ["huge", 3, -1, "0"])
def test_an_unknown_member_is_refused(family, k):
    with pytest.raises(FamilyError, match=r"there is no candidate .*, only full, pruned, small"):
        family.member(k)


def test_masks_are_shared_by_the_candidates(maps):
    residuals, scales = maps
    mask = np.zeros((5, 6), dtype=bool)
    mask[1:4] = True
    blank = np.where(mask, scales, 0.0)
    masked = FamilyConformal(0.1, 0.1, UNITS, NAMES).conformalize(residuals, blank, [mask] * 11)
    inner = FamilyConformal(0.1, 0.1, UNITS, NAMES).conformalize(
        residuals[:, :, 1:4], scales[:, :, 1:4], [None] * 11
    )
    assert masked.scores.tolist() == inner.scores.tolist()
    boxes = masked.predict_interval(CENTER, blank[0, 2], mask, member="small")
    assert np.isinf(boxes.half_width[0]).all() and np.isfinite(boxes.half_width[1]).all()


def test_the_promise_and_its_scope_are_said(family):
    assert family.guarantee() == (
        "With probability at least 90%, each of the 3 candidates (full, pruned, small) has at "
        "least 90% of the pixels of a new view inside its boxes, if the view is exchangeable "
        "with the 11 calibration views (11 views, threshold = 11th smallest of 11 scores); "
        "any of them may be chosen afterwards"
    )


def test_units_are_medians_that_are_not_interpolated():
    assert units_from([[1, 10], [3, 40], [2, 20]]).tolist() == [2, 20]
    assert units_from([[1, 10], [4, 40], [2, 20], [3, 30]]).tolist() == [2, 20]


def test_a_multiplier_of_nothing_or_everything():
    assert member_threshold(0.0, 0.7) == 0
    assert member_threshold(np.inf, 0.7) == np.inf
    assert member_threshold(3.0, 0.5) / 0.5 == 3


@pytest.mark.parametrize("units", [[], [1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [np.inf], [[1.0]]])
def test_units_must_be_positive_and_finite(units):
    with pytest.raises(FamilyError, match="one positive number per candidate"):
        FamilyConformal(0.1, 0.1, units, NAMES[: len(units)])
    with pytest.raises(FamilyError):
        family_scores([[1.0, 1.0]], units)


def test_a_candidate_that_never_errs_has_no_unit():
    with pytest.raises(FamilyError, match="one positive number per candidate"):
        units_from([[0.0, 1.0], [0.0, 2.0]])
    with pytest.raises(FamilyError, match=r"\[views, candidates\], got \(2,\)"):
        units_from([1.0, 2.0])


@pytest.mark.parametrize("names", [[], ["a"], ["a", "a"], ["a", "b", "c"]])
def test_every_unit_has_a_name_of_its_own(names):
    with pytest.raises(FamilyError, match="2 units require 2 different names"):
        FamilyConformal(0.1, 0.1, [1.0, 2.0], names)


@pytest.mark.parametrize("scores", [[1.0], [[1.0]], [[1.0, -1.0]], [[1.0, np.nan]]])
def test_scores_are_views_by_candidates(scores):
    with pytest.raises(FamilyError, match=r"\[views, 2 candidates\], at least 0 and not NaN"):
        family_scores(scores, [1.0, 2.0])


def test_too_few_views_are_refused_with_the_smallest_numbers_that_would_do(maps):
    """However many candidates there are, the number of views is that of a plain certificate."""
    family = FamilyConformal("1/10", "1/10", UNITS, NAMES)
    with pytest.raises(FamilyError, match=r"at least 1 more view, or use alpha >= 1/9"):
        family.conformalize(maps[0][:8], maps[1][:8])
    FamilyConformal("1/9", "1/10", UNITS, NAMES).require_views(8)
    family.require_views(9)
    assert family.conformalize(*map(iter, maps)).views == 11


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda r, s: (r[:10], s), "view 10 has 0 residual and 3 scale maps for 3 candidates"),
        (lambda r, s: (r, s[:, :2]), "view 0 has 3 residual and 2 scale maps for 3 candidates"),
        (lambda r, s: (r, s, [None] * 10), r"view 10, full: mask must be bool \(5, 6\)"),
        (lambda r, s: (r, s, [None] * 12), "view 11 has 0 residual and 0 scale maps"),
        (lambda r, s: (r, s * [[[1]], [[-1]], [[1]]]), "view 0, pruned: scale must be positive"),
    ],
)
def test_maps_that_do_not_match_are_refused_by_view_and_candidate(maps, change, message):
    with pytest.raises(MapError, match=message):
        FamilyConformal(0.1, 0.1, UNITS, NAMES).conformalize(*change(*maps))


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f.predict_interval(CENTER, 1.0, member=0),
        lambda f: f.guarantee(),
        lambda f: f.scores,
        lambda f: f.threshold,
        lambda f: f.member(0),
    ],
)
def test_nothing_is_answered_before_calibration(ask):
    with pytest.raises(CallOrderError, match="call conformalize first"):
        ask(FamilyConformal(0.1, 0.1, UNITS, NAMES))


def test_a_threshold_is_set_once(maps, family):
    with pytest.raises(CallOrderError, match="already conformalized on 11 views"):
        family.conformalize(*maps)
    before = family.threshold
    family.member_scores[:] = 0
    assert family.threshold == before
    assert issubclass(FamilyError, InputError)


def test_its_representation_makes_another_like_it(family):
    assert repr(eval(repr(family))) == repr(family)


@pytest.fixture
def path_family(maps):
    """Five stretches of two of the eleven views; the last view is left over."""
    family = PathFamilyConformal("1/5", "1/10", "1/2", 2, UNITS, NAMES)
    return family.conformalize(*maps)


def test_a_family_about_paths_ranks_the_worst_stretch_score(maps, path_family):
    for k, name in enumerate(NAMES):
        alone = PathConformal("1/5", "1/10", "1/2", 2).conformalize(maps[0][:, k], maps[1][:, k])
        assert path_family.ranked[:, k].tolist() == alone.scores.tolist()
        assert path_family.member(name).alone == alone.threshold
        assert path_family.member(name).price >= -1e-15
    rows = path_family.member_scores
    assert path_family.threshold == family_risk_control(rows, UNITS, "1/5", 2, "1/2")
    boxes = path_family.predict_interval(CENTER, maps[1][0, 1], member="pruned")
    assert boxes.threshold == path_family.member("pruned").threshold
    assert path_family.guarantee() == (
        "With probability at least 80%, for each of the 3 candidates (full, pruned, small), at "
        "least 1 of the 2 views of a new stretch have at least 90% of their pixels inside their "
        "boxes, if the stretch is exchangeable with the 5 calibration stretches (5 runs of 2 "
        "consecutive held-out views, threshold = 5th smallest of 5 stretch scores); any of them "
        "may be chosen afterwards, for the whole stretch"
    )
    assert "gamma='1/2', length=2" in repr(path_family)


def test_too_few_stretches_are_refused_with_the_smallest_numbers_that_would_do(maps):
    family = PathFamilyConformal("1/10", "1/10", "1/2", 2, UNITS, NAMES)
    with pytest.raises(PathError, match=r"9 stretches or 18 photographs(.|\n)*at least 7 more"):
        family.conformalize(*maps)
