# SPDX-License-Identifier: Apache-2.0
"""Boxes: corners, infinity without NaN, and pixels about which nothing is claimed."""

from __future__ import annotations

import numpy as np
import pytest

from splatcert.conformal import Boxes
from splatcert.conformal.maps import MapError

CENTER = np.linspace(0, 1, 24).reshape(2, 4, 3)
SCALE = np.linspace(0.1, 0.8, 8).reshape(2, 4)


def test_corners_lie_half_a_width_from_the_centre():
    boxes = Boxes.around(CENTER.astype(np.float32), SCALE, 0.5)
    assert boxes.half_width == pytest.approx(0.5 * SCALE, rel=1e-14)
    assert boxes.upper == pytest.approx(CENTER + 0.5 * SCALE[..., None], rel=1e-6)
    assert boxes.lower == pytest.approx(CENTER - 0.5 * SCALE[..., None], abs=1e-6)
    assert boxes.lower.min() < 0 and boxes.upper.max() > 1
    assert (boxes.threshold, boxes.is_bounded) == (0.5, True)


def test_boxes_are_rounded_outwards_never_inwards():
    boxes = Boxes.around(CENTER, SCALE, 0.7)
    assert (boxes.half_width > 0.7 * SCALE).all()
    assert boxes.half_width == pytest.approx(0.7 * SCALE, rel=2e-15)


def test_the_mean_half_width_is_threshold_times_view_factor():
    boxes = Boxes.around(CENTER, SCALE, 3.0)
    assert boxes.view_factor == pytest.approx(SCALE.mean())
    assert boxes.half_width.mean() == pytest.approx(boxes.threshold * boxes.view_factor)
    assert Boxes.around(CENTER, SCALE, 3.0, view_factor=2.0).view_factor == 2


def test_clipping_is_for_display():
    lower, upper = Boxes.around(CENTER, SCALE, 0.5).clipped()
    assert lower.min() == 0 and upper.max() == 1
    assert (lower <= CENTER).all() and (CENTER <= upper).all()


def test_an_infinite_threshold_gives_everything_and_no_nan():
    boxes = Boxes.around(CENTER, np.where(SCALE < 0.3, 5e-324, SCALE), np.inf)
    assert not boxes.is_bounded
    assert (boxes.lower == -np.inf).all() and (boxes.upper == np.inf).all()
    assert [corner.tolist() for corner in boxes.clipped()] == [
        np.zeros_like(CENTER).tolist(),
        np.ones_like(CENTER).tolist(),
    ]
    assert boxes.contains(CENTER).all()


def test_a_threshold_of_zero_contains_exactly_what_was_rendered():
    boxes = Boxes.around(CENTER, SCALE, 0.0)
    assert boxes.contains(CENTER).all()
    assert not boxes.contains(np.nextafter(CENTER, 2)).any()


def test_outside_the_mask_nothing_is_claimed():
    mask = SCALE > 0.35
    boxes = Boxes.around(CENTER, np.where(mask, SCALE, 0.0), 0.5, mask=mask)
    assert np.isinf(boxes.half_width[~mask]).all()
    assert boxes.half_width[mask] == pytest.approx(0.5 * SCALE[mask])
    assert boxes.view_factor == pytest.approx(SCALE[mask].mean())
    assert boxes.is_bounded and boxes.contains(CENTER).all()


def test_a_pixel_is_inside_if_all_its_channels_are():
    boxes = Boxes.around(CENTER, 0.1, 1.0)
    photo = CENTER.copy()
    photo[0, 0, 1] += 0.2
    assert boxes.contains(photo).tolist() == [[False, True, True, True], [True] * 4]


@pytest.mark.parametrize(
    "center, scale, threshold, message",
    [
        (CENTER[0], SCALE, 1.0, "center must be finite and"),
        (CENTER * np.nan, SCALE, 1.0, "center must be finite and"),
        (CENTER, SCALE.T, 1.0, "scale is"),
        (CENTER, SCALE - 0.1, 1.0, "scale must be positive"),
        (CENTER, SCALE, -1.0, "threshold must be at least 0, got -1.0"),
        (CENTER, SCALE, np.nan, "threshold must be at least 0, got nan"),
    ],
)
def test_boxes_that_would_mean_nothing_are_refused(center, scale, threshold, message):
    with pytest.raises(MapError, match=message):
        Boxes.around(center, scale, threshold)


def test_a_photo_of_another_size_is_refused():
    with pytest.raises(MapError, match=r"the photo is \(2, 3, 3\)"):
        Boxes.around(CENTER, SCALE, 1.0).contains(CENTER[:, :3])
