# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of certificates, boxes, renders and scenes."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import pytest

import splatcert as sc
from certified_capture import HELD_OUT, certify_scene, made_capture, made_model, made_photos
from certified_capture import made_truth as truth
from splatcert.frames.notebook import FigureError


@pytest.fixture(scope="module")
def photos():
    return made_photos()


@pytest.fixture(scope="module")
def certificate(photos):
    return certify_scene(made_capture(photos), made_model(truth()))


def parsed(html: str) -> str:
    """All words of a piece of HTML, which must be well-formed."""
    closed = html.replace("&nbsp;", " ")
    for tag in ("img",):
        closed = "".join(
            part if not part.startswith(f"<{tag} ") else part.replace(">", "/>", 1)
            for part in closed.replace(f"<{tag} ", f"\0<{tag} ").split("\0")
        )
    return " ".join(ElementTree.fromstring(f"<div>{closed}</div>").itertext())


def test_a_certificate_shows_its_guarantee_and_its_scope(certificate):
    words = parsed(certificate._repr_html_())
    assert "With probability ≥ 90%" in words and "exchangeable with its 12 calibration" in words


def test_a_certificate_is_short_in_words(certificate):
    assert "calibrated on 12 views" in repr(certificate) and len(repr(certificate)) < 100


def test_boxes_show_the_render_beside_the_half_widths(certificate, photos):
    html = certificate.predict(photos[0][HELD_OUT[0]])._repr_html_()
    assert html.count("<img ") == 2
    assert "Mean half-width" in parsed(html) and "not flagged" in parsed(html)


def test_unbounded_boxes_say_so(certificate, photos):
    weak = certificate.at("1/100", "1/10")
    html = weak.predict(photos[0][HELD_OUT[0]])._repr_html_()
    assert html.count("<img ") == 1 and "unbounded" in parsed(html)


def test_renders_and_scenes_show_themselves(photos):
    assert "data:image/jpeg" in sc.render(truth(), photos[0][HELD_OUT[0]])._repr_html_()
    html = made_capture(photos)._repr_html_()
    assert html.count("<circle") == 36 and "held out" in parsed(html)


def test_figures(certificate, photos, tmp_path):
    for number, shown in enumerate((certificate, certificate.predict(photos[0][HELD_OUT[0]]))):
        path = tmp_path / f"{number}.png"
        shown.plot().savefig(path)
        assert path.stat().st_size > 5_000


def test_figures_name_their_extra(certificate, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(FigureError, match=r"splatcert\[figures\]"):
        certificate.plot()
