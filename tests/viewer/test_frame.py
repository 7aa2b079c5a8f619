# SPDX-License-Identifier: Apache-2.0
"""Frames are what the certificate predicts, and photographs are shown where they may be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from certified_capture import HELD_OUT, NAMES, made_capture
from splatcert.report.colours import GREY, WidthScale, palette
from splatcert_viewer.cameras.known_views import known_views, photo_of
from splatcert_viewer.cameras.viewpoint import viewpoint_of
from splatcert_viewer.colours import colour_of, coloured
from splatcert_viewer.frame import MISSED, DisplayMode, Mode, draw, make_card, picture, to_bytes
from splatcert_viewer.html import guarantee_words
from splatcert_viewer.shown import ViewerState


@pytest.fixture(scope="module")
def views(certificate):
    return {view.name: view for view in known_views(certificate)}


SCALE = WidthScale(64)


def looking(certificate, mode: Mode) -> DisplayMode:
    return DisplayMode(mode, SCALE)


def test_a_still_frame_is_what_the_certificate_predicts(certificate, views):
    camera = views[HELD_OUT[1]].camera
    boxes = certificate.predict(camera)
    frame = draw(certificate, viewpoint_of(camera), looking(certificate, "RGB"))
    assert frame.pixels.shape == (40, 60, 3)
    assert np.abs(frame.pixels.astype(int) - to_bytes(boxes.center)).max() <= 1
    assert frame.factor == pytest.approx(boxes.view_factor, rel=1e-6)
    assert frame.support == boxes.flag


def test_the_modes_show_the_sides_of_the_boxes(certificate, views):
    boxes = certificate.predict(views[NAMES[1]].camera)
    middle, lower, upper, width = (
        picture(boxes, looking(certificate, mode))
        for mode in ("RGB", "lower", "upper", "half-width")
    )
    assert (lower <= middle).all() and (middle <= upper).all() and (lower < upper).any()
    np.testing.assert_array_equal(width, coloured(boxes.half_width.numpy(), SCALE))


def test_a_preview_is_smaller_and_flagged_as_the_full_picture_would_be(certificate, views):
    here = viewpoint_of(views[HELD_OUT[1]].camera)
    frame = draw(certificate, here, looking(certificate, "half-width"), 0.5)
    assert frame.pixels.shape == (20, 30, 3) and frame.share == 0.5
    assert not any("pixels" in reason for reason in frame.support.reasons)


def test_an_unbounded_box_is_grey_and_spans_all_colours(certificate, views):
    boxes = replace(
        certificate.predict(views[NAMES[1]].camera), half_width=torch.full((40, 60), torch.inf)
    )
    pictures = {
        mode: picture(boxes, looking(certificate, mode))
        for mode in ("half-width", "lower", "upper")
    }
    assert (pictures["half-width"] == GREY).all()
    assert (pictures["lower"] == 0).all() and (pictures["upper"] == 255).all()


def test_colours_are_absolute():
    assert colour_of(64 / 255, SCALE) == colour_of(0.9, SCALE) != colour_of(32 / 255, SCALE)
    assert colour_of(float("inf"), SCALE) == colour_of(float("nan"), SCALE) == GREY
    many = np.random.default_rng(0).uniform(0, 0.3, (20, 30)).astype(np.float32)
    np.testing.assert_array_equal(coloured(many, SCALE), palette()[SCALE.indices(many)])
    both = coloured(np.array([[0.1, 0.2]]), SCALE)[0]
    assert tuple(both[0]) == colour_of(0.1, SCALE) and tuple(both[1]) == colour_of(0.2, SCALE)


def test_scales_hold_what_is_usual_and_stay_finite(certificate):
    widest = certificate.threshold * max(view.factor for view in certificate.record.calibration)
    shown = ViewerState.of(certificate, None)
    assert 255 * widest <= shown.view_scale.top <= shown.pixel_scale.top
    promise = replace(certificate.record.guarantee, threshold=float("inf"))
    unbounded = replace(certificate, record=replace(certificate.record, guarantee=promise))
    assert ViewerState.of(unbounded, None).view_scale.top <= 255


def test_pages_and_files_have_one_scale(certificate):
    assert WidthScale.of(certificate).top == ViewerState.of(certificate, None).pixel_scale.top


def test_every_view_has_its_role_and_its_difficulty(certificate, views):
    assert [v.name for v in views.values() if v.role == "calibration"] == HELD_OUT
    assert len(views) == len(NAMES)
    for record in certificate.record.calibration:
        known = views[record.name]
        assert known.factor == record.factor
        assert known.needed == pytest.approx(record.score * record.factor, rel=1e-6)


def test_a_card_counts_the_misses_that_the_score_counts(certificate, photos, views):
    scene = made_capture(photos)
    for record in certificate.record.calibration[:4]:
        card = make_card(certificate, views[record.name], scene)
        assert card.photo is not None and card.misses is not None
        missed = (card.misses == MISSED).all(axis=-1)
        share = Fraction(int(missed.sum()), missed.size)
        assert (share <= certificate.beta) is bool(record.score <= certificate.threshold)
        assert f"{100 * float(share):.1f}%" in card.words


def test_no_label_that_was_not_used_is_shown(certificate, photos, views):
    """Not of a view that was unlabelled, even where the capture has its photo by now."""
    scene = made_capture(photos)
    unlabelled = replace(views[HELD_OUT[0]], role="unlabelled", image=None)
    assert photo_of(unlabelled, scene) is None
    assert make_card(certificate, unlabelled, scene).photo is None
    assert not scene.held_out.ledger.entries


def test_another_photograph_than_the_certified_one_is_not_shown(certificate, photos, views):
    cameras, pictures = photos
    name = NAMES[1]
    scene = made_capture((cameras, {**pictures, name: 1 - pictures[name]}))
    card = make_card(certificate, views[name], scene)
    assert card.photo is None and "differs from the certified one" in card.words


def test_without_a_capture_a_card_says_how_to_get_one(certificate, views):
    card = make_card(certificate, views[NAMES[1]], None)
    assert card.photo is None and "--data" in card.words


def test_the_guarantee_is_shown_with_its_scope(certificate):
    words = guarantee_words(certificate)
    assert "Applies to views exchangeable with the 12 held-out photos" in words
    assert "A camera that you choose here" in words
