# SPDX-License-Identifier: Apache-2.0
"""The estimator: one call after the other, one view at a time, several levels at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from splatcert.conformal import (
    CalibrationTooSmall,
    Quantity,
    ViewConformal,
    threshold,
    view_score,
)
from splatcert.conformal.levels import LevelError
from splatcert.conformal.view_conformal import CallOrderError
from splatcert.errors import InputError

CENTER = np.full((5, 6, 3), 0.5)


@pytest.fixture
def maps():
    rng = np.random.default_rng(5)
    return rng.exponential(0.1, (19, 5, 6)), rng.uniform(0.1, 0.4, (19, 5, 6))


def test_it_is_view_scores_and_a_threshold(maps):
    residuals, scales = maps
    conformal = ViewConformal(0.1, beta="1/10").conformalize(residuals, scales)
    scores = [view_score(r, s, 0.1) for r, s in zip(residuals, scales, strict=True)]
    assert conformal.scores.tolist() == scores
    assert conformal.threshold == threshold(scores, 0.1)
    boxes = conformal.predict_interval(CENTER, scales[0])
    assert boxes.threshold == conformal.threshold
    assert boxes.half_width == pytest.approx(conformal.threshold * scales[0])


def test_views_may_come_one_by_one(maps):
    """Nothing is asked of a view before the one before it has been scored."""
    alive = []

    def one_by_one(views):
        for view in views:
            alive.append(len(alive))
            yield view

    once = ViewConformal(0.1, 0.1).conformalize(one_by_one(maps[0]), iter(maps[1]))
    assert once.scores.tolist() == ViewConformal(0.1, 0.1).conformalize(*maps).scores.tolist()
    assert len(alive) == 19


def test_several_levels_from_one_pass(maps):
    several = ViewConformal(["1/10", "1/5"], [0.1, 0.05, "1/2"]).conformalize(*maps)
    assert several.scores.shape == (19, 3)
    assert len(several.thresholds) == 6
    for (alpha, beta), found in several.thresholds.items():
        alone = ViewConformal(alpha, beta).conformalize(*maps)
        assert alone.threshold == found
        boxes = several.predict_interval(CENTER, maps[1][0], alpha=alpha, beta=beta)
        assert boxes.threshold == found
        assert several.guarantee(alpha=alpha, beta=beta) == alone.guarantee()


def test_with_several_levels_one_must_be_named(maps):
    several = ViewConformal(["1/10", "1/5"], 0.1).conformalize(*maps)
    with pytest.raises(LevelError, match="several alphas: name one of 1/10, 1/5"):
        several.predict_interval(CENTER, maps[1][0])
    with pytest.raises(LevelError, match="several alphas"):
        _ = several.threshold
    with pytest.raises(LevelError, match="nothing was calibrated for alpha = 1/3"):
        several.predict_interval(CENTER, maps[1][0], alpha="1/3")


@pytest.mark.parametrize("alpha", [[], [0.1, "1/10"], 0, "none"])
def test_levels_are_checked_when_it_is_made(alpha):
    with pytest.raises(LevelError):
        ViewConformal(alpha, 0.1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.predict_interval(CENTER, 1.0),
        lambda c: c.evaluate([], []),
        lambda c: c.guarantee(),
        lambda c: c.scores,
        lambda c: c.threshold,
        lambda c: c.views,
    ],
)
def test_nothing_is_answered_before_calibration(ask):
    with pytest.raises(CallOrderError, match=r"call conformalize\(residuals, scales\) first"):
        ask(ViewConformal(0.1, 0.1))


def test_a_threshold_is_set_once(maps):
    conformal = ViewConformal(0.1, 0.1).conformalize(*maps)
    with pytest.raises(CallOrderError, match="already conformalized on 19 views"):
        conformal.conformalize(*maps)
    assert issubclass(CallOrderError, InputError)


def test_a_failed_calibration_leaves_it_as_it_was(maps):
    conformal = ViewConformal(0.1, 0.1)
    with pytest.raises(InputError, match="view 0: scale must be positive"):
        conformal.conformalize(maps[0], -maps[1])
    assert conformal.conformalize(*maps).views == 19


def test_the_guarantee_is_said_in_words(maps):
    conformal = ViewConformal(0.1, "5%").conformalize(maps[0][:11], maps[1][:11])
    assert conformal.guarantee() == (
        "a new exchangeable view has >= 95% of its pixels inside their boxes "
        "with probability >= 90% (11 views, threshold = 11th smallest of 11 scores)"
    )


def test_too_few_views_are_unbounded_boxes_and_plain_words(maps):
    with pytest.warns(CalibrationTooSmall, match="at least 1 more view,") as caught:
        conformal = ViewConformal([0.1, "1/2"], [0.1, 0.2]).conformalize(maps[0][:8], maps[1][:8])
    assert len(caught) == 1 and caught[0].filename == __file__
    boxes = conformal.predict_interval(CENTER, maps[1][0], alpha=0.1, beta=0.1)
    assert (boxes.lower == -np.inf).all() and (boxes.upper == np.inf).all()
    assert conformal.guarantee(alpha=0.1, beta=0.1) == (
        "none: every box is unbounded, which is true of any view and says nothing "
        "(8 views of the 9 needed, threshold infinite)"
    )
    found = conformal.evaluate(*maps, alpha=0.1, beta=0.1)
    assert (found.view_coverage, found.mean_half_width) == (1, np.inf)
    assert np.isfinite(conformal.thresholds[Fraction(1, 2), Fraction(1, 10)])


def test_evaluation_counts_views_and_pixels(maps):
    conformal = ViewConformal("1/5", 0.1).conformalize(maps[0][:9], maps[1][:9])
    found = conformal.evaluate(maps[0][9:], maps[1][9:])
    scores = [view_score(r, s, 0.1) for r, s in zip(maps[0][9:], maps[1][9:], strict=True)]
    assert (found.views, found.pixels) == (10, 300)
    assert found.covered_views == sum(score <= conformal.threshold for score in scores)
    assert found.mean_half_width == pytest.approx(conformal.threshold * maps[1][9:].mean())


def test_masks_reach_every_step(maps):
    residuals, scales = maps
    mask = np.zeros((5, 6), dtype=bool)
    mask[1:4] = True
    blank = np.where(mask, scales, 0.0)
    masked = ViewConformal(0.1, 0.1).conformalize(residuals, blank, [mask] * 19)
    inner = ViewConformal(0.1, 0.1).conformalize(residuals[:, 1:4], scales[:, 1:4])
    assert masked.scores.tolist() == inner.scores.tolist()
    boxes = masked.predict_interval(CENTER, blank[0], mask)
    assert np.isinf(boxes.half_width[0]).all() and np.isfinite(boxes.half_width[1]).all()
    assert masked.evaluate(residuals, blank, [mask] * 19).pixels == 19 * 18


def test_its_scores_cannot_be_changed_from_outside(maps):
    conformal = ViewConformal(0.1, 0.1).conformalize(*maps)
    before = conformal.threshold
    conformal.scores[:] = 0
    assert conformal.threshold == before


def test_its_representation_makes_another_like_it():
    for made in (ViewConformal(0.1, "5%"), ViewConformal([0.1, 0.2], "1/3")):
        assert repr(eval(repr(made))) == repr(made)
    assert repr(ViewConformal(0.1, "5%")) == "ViewConformal(alpha='1/10', beta='1/20')"


def test_residuals_may_be_of_anything_with_a_name_and_a_unit(maps):
    """Only the words change; boxes of one channel are intervals."""
    residuals, scales = maps
    depth = ViewConformal(0.1, 0.1, Quantity("depth", "m")).conformalize(residuals, scales)
    colour = ViewConformal(0.1, 0.1).conformalize(residuals, scales)
    assert depth.threshold == colour.threshold
    assert depth.guarantee() == f"{colour.guarantee()}; a box bounds the depth in m"
    boxes = depth.predict_interval(np.full((5, 6, 1), 3.0), scales[0])
    assert boxes.lower.shape == (5, 6, 1) and (boxes.lower < 3).all()
    assert Quantity("depth", "m").half_width(0.123) == "depth ±0.123 m"
    assert Quantity("normal").half_width(0.5) == "normal ±0.5"
