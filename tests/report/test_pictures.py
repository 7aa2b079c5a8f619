# SPDX-License-Identifier: Apache-2.0
"""Pictures inside a page: reduced, coloured, and read back from their addresses."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from splatcert.report.colours import WidthScale, palette
from splatcert.report.page import typical
from splatcert.report.pictures import LONGEST_SIDE, MISS, ViewPicture, panels


def decoded(address: str) -> Image.Image:
    head, _, content = address.partition(";base64,")
    assert head in ("data:image/png", "data:image/jpeg")
    return Image.open(io.BytesIO(base64.b64decode(content)))


def view(height: int, width: int, **others) -> ViewPicture:
    maps = {
        "center": np.full((height, width, 3), 0.5, dtype=np.float32),
        "half_width": np.linspace(0, 0.25, width, dtype=np.float32) * np.ones((height, 1)),
        "missed": np.zeros((height, width), dtype=bool),
        "error": None,
        "photo": None,
    }
    return ViewPicture.reduced("name", **maps | others)


def test_large_views_are_reduced_and_keep_their_widths():
    found = view(300, 2000)
    assert found.center.shape == (96, LONGEST_SIDE, 3)
    assert found.missed is not None and found.missed.shape == (96, LONGEST_SIDE)
    assert found.half_width is not None
    np.testing.assert_allclose(found.half_width.mean(), 0.125, rtol=1e-3)


def test_half_widths_have_the_colours_of_the_scale_without_loss():
    scale = WidthScale(64)
    found = {panel.kind: panel for panel in panels(view(4, 50), scale)}
    assert list(found) == ["render", "half-width", "lower", "upper", "misses"]
    pixels = np.asarray(decoded(found["half-width"].layers[0]).convert("RGB"))
    expected = palette()[scale.indices(view(4, 50).half_width)]
    np.testing.assert_array_equal(pixels, expected)
    lower = np.asarray(decoded(found["lower"].layers[0])).astype(int)
    assert abs(lower[0, 0, 0] - 128) < 4 and abs(lower[0, -1, 0] - 64) < 4


def test_misses_are_stained_and_the_rest_is_clear():
    missed = np.zeros((4, 50), dtype=bool)
    missed[1, 7] = True
    (panel,) = [one for one in panels(view(4, 50, missed=missed), WidthScale(8))][-1:]
    stain = np.asarray(decoded(panel.layers[1]).convert("RGBA"))
    assert stain[1, 7].tolist() == [*MISS, 255]
    assert (stain[..., 3] > 0).sum() == 1
    assert "0.5% of its pixels" in panel.alt


def test_without_boxes_there_is_the_render_alone():
    found = panels(view(4, 50, half_width=None, missed=None), WidthScale(8))
    assert [panel.kind for panel in found] == ["render"]


def test_a_page_opens_with_the_sharpest_view_of_medium_difficulty():
    random = np.random.default_rng(0)
    sharp = random.random((24, 32, 3), dtype=np.float32)
    soft = np.full((24, 32, 3), 0.5, dtype=np.float32)

    def views(*centers):
        return [
            ViewPicture(name=str(k), center=c, half_width=None, missed=None, error=None, photo=None)
            for k, c in enumerate(centers)
        ]

    assert typical(views(sharp, soft, soft, 0.5 * sharp, soft, sharp)) == 3
    assert typical(views(sharp, soft)) == 0
    assert typical(views(soft)) == typical([]) == 0
