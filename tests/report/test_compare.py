# SPDX-License-Identifier: Apache-2.0
"""Two certificates on one page: the same photographs, one colour scale, and what got worse."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from certified_capture import (
    HELD_OUT,
    NAMES,
    certify_scene,
    made_capture,
    made_model,
    made_photos,
    made_truth,
)
from splatcert import ReportConfig, cli
from splatcert.certificate.certificate import CertificateError
from splatcert.report.compare import compare, render_comparison
from splatcert.scene.scene import scene_from_tensors
from splatcert.splats.gaussians import Splats


def blurred() -> Splats:
    """A worse model of the same scene."""
    model = made_model(made_truth())
    return replace(model, sh=0.6 * model.sh)


@pytest.fixture(scope="module")
def photos():
    return made_photos()


@pytest.fixture(scope="module")
def good(photos):
    return certify_scene(made_capture(photos), made_model(made_truth()))


@pytest.fixture(scope="module")
def poor(photos):
    return certify_scene(made_capture(photos), blurred())


def test_a_worse_model_is_worse_in_every_shared_photograph(good, poor, photos):
    scenes = made_capture(photos), made_capture(photos)
    found = compare((good, poor), ("a.cert", "b.cert"), scenes, ReportConfig(views=3))
    assert {row.name for row in found.rows} == set(HELD_OUT) and found.apart == (0, 0)
    assert found.count("worse") == len(HELD_OUT) and found.headline.endswith(
        "wider in B than in A."
    )
    changes = [row.change for row in found.rows]
    assert changes == sorted(changes, reverse=True)
    assert list(found.pictures) == [found.rows[k].name for k in (0, 6, 11)]
    page = render_comparison(found)
    assert page.count("A: half-width") == page.count("B: half-width") == 6  # caption and label
    assert page.count("A: misses") == 6 and "not a reason to choose" in page

    back = compare((poor, good))
    assert [row.change for row in back.rows] == [-change for change in reversed(changes)]
    assert back.count("better") == len(HELD_OUT) and back.count("worse") == 0


def test_numbers_are_those_of_the_certificates(good, poor):
    rows = {row.name: row for row in compare((good, poor)).rows}
    for side, certificate in enumerate((good, poor)):
        for view in certificate.record.calibration:
            given = certificate.threshold * view.factor
            assert rows[view.name].given[side] == pytest.approx(given, rel=1e-12)


def test_a_certificate_is_the_same_as_itself(good):
    found = compare((good, good))
    assert found.count("same") == len(HELD_OUT)
    assert found.headline == "Boxes are as wide in B as in A."


def test_only_photographs_of_both_are_compared(good, photos):
    cameras, pictures = photos
    changed = {**pictures, HELD_OUT[0]: pictures[HELD_OUT[0]].flip(0)}
    fewer = scene_from_tensors(cameras, changed, held_out=HELD_OUT[:-1])
    found = compare((good, certify_scene(fewer, made_model(made_truth()))))
    assert {row.name for row in found.rows} == set(HELD_OUT[1:-1])
    assert found.apart == (2, 1)


def test_what_cannot_be_compared_is_refused(good, photos):
    with pytest.raises(CertificateError, match="different promises"):
        compare((good, good.at("1/5", "1/10")))
    others = scene_from_tensors(*photos, held_out=NAMES[1::3])
    with pytest.raises(CertificateError, match="different photographs"):
        compare((good, certify_scene(others, made_model(made_truth()))))


def test_names_of_others_are_escaped(good, poor):
    hostile = "<script>alert(1)</script>", '"><img src=x>'
    page = render_comparison(compare((good, poor), hostile))
    assert "<script>alert" not in page and "<img src=x" not in page


def test_the_command_compares_two_folders(good, poor, tmp_path, capsys):
    good.save(tmp_path / "a.cert")
    poor.save(tmp_path / "b.cert")
    pair = [str(tmp_path / "a.cert"), str(tmp_path / "b.cert")]
    page = tmp_path / "b.cert/comparison.html"
    assert cli.main(["report", *pair, "--json", "-o", str(page)]) == 0
    known = json.loads(capsys.readouterr().out)
    assert (known["photographs"], known["worse"]) == (12, 12)
    assert page.is_file()
    assert cli.main(["verify", pair[1]]) == 0  # the page does not disturb the certificate
    capsys.readouterr()

    assert cli.main(["report", pair[0], "--other-model", "x"]) == 2
    assert cli.main(["report", *pair, "--suggest", "2"]) == 2
    assert cli.main(["report", pair[0], str(tmp_path / "none.cert")]) == 2
    assert "Traceback" not in capsys.readouterr().err
