# SPDX-License-Identifier: Apache-2.0
"""The colour scale of half-widths: even, lighter for wider, and in absolute units."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.color import rgb2lab

from splatcert.report.colours import GREY, STEPS, WidthScale, palette


def test_wider_is_lighter_in_even_steps():
    """By CIE Lab, which shares no code with ours and is less even in blue."""
    lab = rgb2lab(palette()[None] / 255.0)[0]
    assert (np.diff(lab[:, 0]) > 0.3).all()
    strides = np.linalg.norm(lab[8:] - lab[:-8], axis=1)  # eight steps at once: 8-bit rounding
    assert strides.max() < 2.5 * strides.min()


@pytest.mark.parametrize(("half_width", "top"), [(0.0, 8), (8 / 255, 8), (0.1, 32), (3.0, 255)])
def test_the_shortest_scale_that_holds_a_width(half_width, top):
    assert WidthScale.holding(half_width) == WidthScale(top)


def test_a_colour_stands_for_an_absolute_width():
    scale = WidthScale(64)
    widths = [0.0, 32 / 255, 64 / 255, 0.9, 9.0]
    assert scale.indices(widths).tolist() == [0, STEPS // 2, 63, 63, STEPS]
    assert tuple(scale.colours(1.5)) == tuple(scale.colours(np.inf)) == GREY  # they say nothing
    assert scale.css(0.0) == "#" + bytes(palette()[0]).hex()
