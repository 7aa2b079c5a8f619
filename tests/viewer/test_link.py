# SPDX-License-Identifier: Apache-2.0
"""A link restores camera, mode and levels; what it may not choose is ignored and named."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest

from splatcert_viewer.cameras.viewpoint import Viewpoint
from splatcert_viewer.levels import Levels
from splatcert_viewer.link import LONGEST, PageState, read_link

CAMERA = "0.1,-2,3e+05,1,0,0,0,0.8,1.6"


@pytest.fixture(scope="module")
def levels(certificate) -> Levels:
    return Levels.of(certificate)


def test_a_link_brings_back_what_it_was_made_from(levels):
    turn = np.array([0.5, -0.5, 0.1, 0.7])
    place = Viewpoint(turn / np.linalg.norm(turn), np.array([1e-7, -2.25, 1e7]), 0.7, 1.6)
    for alpha, beta in ((levels.alphas[3], levels.betas[0]), (levels.alphas[-1], levels.betas[-1])):
        shown = PageState(levels.at(alpha, beta), "half-width", place)
        found, ignored = read_link(shown.link(), levels)
        assert not ignored and found.mode == "half-width" and found.viewpoint is not None
        assert (found.certificate.alpha, found.certificate.beta) == (alpha, beta)
        assert np.allclose(found.viewpoint.position, place.position, rtol=1e-6)
        assert np.allclose(found.viewpoint.wxyz, place.wxyz, atol=1e-6)
        assert (found.viewpoint.fov, found.viewpoint.aspect) == (0.7, 1.6)
        assert found.link() == shown.link()


def test_without_a_link_everything_is_as_certified(levels):
    found, ignored = read_link("", levels)
    assert not ignored and found.certificate.is_certified
    assert found.viewpoint is None and found.mode == "RGB"


@pytest.mark.parametrize(
    ("link", "named"),
    [
        ("mode=xray", "mode"),
        ("mode=", "mode"),
        ("alpha=0", "alpha"),
        ("alpha=0.1234", "alpha"),
        ("alpha=nan", "alpha"),
        ("alpha=1e999", "alpha"),
        ("alpha=__import__", "alpha"),
        ("beta=0.9999", "beta"),
        ("member=constant", "member"),
        ("camera=1,2,3", "camera"),
        (f"camera={CAMERA},7", "camera"),
        ("camera=a,b,c,d,e,f,g,h,i", "camera"),
        ("camera=nan,0,0,1,0,0,0,0.8,1", "camera"),
        ("camera=inf,0,0,1,0,0,0,0.8,1", "camera"),
        ("camera=1e300,0,0,1,0,0,0,0.8,1", "camera"),
        ("camera=0,0,0,0,0,0,0,0.8,1", "camera"),
        ("camera=0,0,0,1e308,1e308,0,0,0.8,1", "camera"),
        (f"camera=0,0,0,1,0,0,0,{pi},1", "camera"),
        ("camera=0,0,0,1,0,0,0,-1,1", "camera"),
        ("camera=0,0,0,1,0,0,0,1,0", "camera"),
        ("<script>=1", "an unknown entry"),
        ("../../etc/passwd=", "an unknown entry"),
        ("mode=RGB&mode=upper", "an unknown entry"),
        ("&" * 40, "an unknown entry"),
        ("mode=upper&" + "x" * LONGEST, "an unknown entry"),
    ],
    ids=lambda value: value[:30],
)
def test_what_a_link_may_not_choose_is_ignored_and_named(link, named, levels):
    found, ignored = read_link(link, levels)
    assert ignored == (named,)
    assert found.certificate.is_certified and found.viewpoint is None and found.mode == "RGB"


def test_one_bad_entry_does_not_spoil_the_others(levels):
    found, ignored = read_link(f"alpha=7&camera={CAMERA}&mode=upper", levels)
    assert ignored == ("alpha",) and found.mode == "upper" and found.viewpoint is not None
    assert found.viewpoint.position.tolist() == [0.1, -2.0, 3e5]
