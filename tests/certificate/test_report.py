# SPDX-License-Identifier: Apache-2.0
"""The report of a certificate: from its folder alone, with its model, with its photos."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from warnings import catch_warnings, simplefilter

import pytest
import torch

from certified_capture import NAMES, made_capture
from certified_capture import certify_scene as certify
from splatcert import CertifyConfig, ReportConfig, write_report
from splatcert.certificate.certificate import CertificateError
from splatcert.commands.certificates.certify import facts
from splatcert.deploy import load_certificate
from splatcert.difficulty.holdout_check import Difference, HoldoutCheck
from splatcert.difficulty.trained_on import TrainedOnCheck
from splatcert.report.build import report_of
from splatcert.report.words.conditions import conditions_of
from splatcert.report.words.summary import closing_lines
from splatcert.scene.scene import scene_from_tensors

HOSTILE = (
    "<script>document.title='taken'</script>",
    '"><img src=x onerror=alert(1)>.png',
    "{{ 7 * 7 }}' onmouseover='alert(1)",
    "</title></style></script><svg onload=alert(1)>",
)
NO_PICTURES = "Renders, half-widths and box edges"


class Outline(HTMLParser):
    """Elements with their attributes, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements[-1:] and self.elements[-1][0] not in ("script", "style"):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def pages(stored, photos, model, tmp_path_factory) -> dict[str, str]:
    """Written with less and with more to show."""
    folder = tmp_path_factory.mktemp("pages")
    given = {
        "alone": (None, None, None),
        "model": (None, model, None),
        "data": (made_capture(photos), model, None),
        "photos": (made_capture(photos), model, ReportConfig(photos=True, views=3)),
    }
    return {
        name: write_report(stored, folder / f"{name}.html", *inputs).read_text(encoding="utf-8")
        for name, inputs in given.items()
    }


def kinds(page: str) -> set[str | None]:
    return {figure.get("data-kind") for figure in Outline(page).all("figure")} - {None}


def test_the_guarantee_comes_first_with_its_numbers(pages, certificate):
    heading = re.search(r"<h1.*?</h1>", pages["alone"], re.DOTALL)
    assert heading is not None
    words = " ".join(Outline(heading[0]).text.split())
    assert words == (
        "With probability at least 90%, at least 90% of the pixels of a new view lie inside "
        "their boxes."
    )
    width = certificate.threshold * sum(v.factor for v in certificate.record.calibration) / 12
    assert f"±{255 * width:.1f} of 255" in pages["alone"]


def test_the_more_is_given_the_more_is_shown(pages):
    assert kinds(pages["alone"]) == set()
    boxes = {"render", "half-width", "lower", "upper"}
    assert kinds(pages["model"]) == boxes
    assert kinds(pages["data"]) == {*boxes, "misses", "error"}
    assert kinds(pages["photos"]) == {*boxes, "misses", "error", "photo"}


def test_it_says_what_is_missing(pages):
    assert NO_PICTURES in pages["alone"] and NO_PICTURES not in pages["model"]
    assert "Misses and exact pixel coverage" in pages["model"]
    assert "Not in this report" not in pages["data"]


@pytest.mark.parametrize("name", ["alone", "model", "data", "photos"])
def test_a_page_asks_nobody_for_anything(pages, name):
    """No address but the page's own data and its own anchors."""
    page = pages[name]
    assert not re.search(r"https?:|url\(|@import|//\w+\.", page)
    for _, attributes in Outline(page).elements:
        for key, value in attributes.items():
            assert key not in ("src", "href") or (value or "").startswith(("data:image/", "#"))
            assert not key.startswith("on")


def test_every_picture_has_words_or_belongs_to_one_that_has(pages):
    images = Outline(pages["photos"]).all("img")
    assert images and all("alt" in image for image in images)
    labelled = [image for image in images if image["alt"]]
    assert len(images) - len(labelled) == 3  # the faded render below each view's misses
    assert all(chart.get("aria-label") for chart in Outline(pages["data"]).all("svg"))


@pytest.mark.parametrize(
    ("p_value", "mark", "said"),
    [(0.5, "neutral", "No sign that difficulty differs"), (0.01, "attention", "Coverage may")],
)
def test_a_test_that_does_not_reject_is_no_approval(certificate, p_value, mark, said):
    tested = replace(certificate.record.evenness, p_value=p_value)
    judged = replace(certificate, record=replace(certificate.record, evenness=tested))
    (found,) = [one for one in conditions_of(judged) if "Permutation test" in one.words]
    told = f"{found.title}. {found.words}"
    assert found.mark == mark and said in told
    notes = closing_lines(judged, Path("cert"))["Notes"]
    assert said in notes
    for text in (told, notes):  # cameras in a room with one hard corner are exchangeable
        assert not re.search("exchangeab|violat|assum|doubt", text)


@pytest.mark.parametrize(
    ("p_value", "mark", "row", "said"),
    [
        (0.5, "neutral", "Notes", "No sign of a difference between held-out and training cameras"),
        (0.001, "attention", "Hold-out", "Coverage may differ for the kind of view"),
    ],
)
def test_an_unfair_hold_out_is_attention_and_a_fair_one_no_approval(
    certificate, p_value, mark, row, said
):
    lower = Difference(feature="elevation", z=-3.6, held_out=-17.0, training=-4.0, beyond=0.36)
    check = HoldoutCheck(p_value=p_value, differences=(lower,), held_out=25, training=169)
    judged = replace(certificate)
    judged.__dict__["holdout_check"] = check
    (found,) = [one for one in conditions_of(judged) if "feature" in one.columns]
    assert found.mark == mark and said in found.words
    assert found.rows == (("elevation", "-17°", "-4°", "-3.60"),)
    lines = closing_lines(judged, Path("cert"))
    assert said in lines[row] and ("Hold-out" in lines) == (mark == "attention")
    assert facts(judged, Path("cert"))["holdout_check"]["flagged"] == (mark == "attention")
    judged.__dict__["holdout_check"] = None
    assert not [one for one in conditions_of(judged) if "feature" in one.columns]
    assert facts(judged, Path("cert"))["holdout_check"] is None


@pytest.mark.parametrize(
    ("p_value", "mark", "row", "said"),
    [
        (0.001, "neutral", "Notes", "as expected of photos it has not seen (p = 0.001)"),
        (0.4, "attention", "Unseen", "may have been trained on"),
    ],
)
def test_photos_that_look_trained_on_are_attention(certificate, p_value, mark, row, said):
    check = TrainedOnCheck(p_value=p_value, calibration=25, training=169)
    judged = replace(certificate)
    judged.__dict__["trained_on_check"] = check
    (found,) = [one for one in conditions_of(judged) if "nearest in pose" in one.words]
    assert found.mark == mark and said in found.words
    assert "at least 95.0%" in found.words and "no known error rate" in found.words
    lines = closing_lines(judged, Path("cert"))
    assert said in lines[row] and ("Unseen" in lines) == (mark == "attention")
    assert facts(judged, Path("cert"))["trained_on_check"]["flagged"] == (mark == "attention")
    judged.__dict__["trained_on_check"] = None
    assert not [one for one in conditions_of(judged) if "nearest in pose" in one.words]
    assert facts(judged, Path("cert"))["trained_on_check"] is None


def test_certify_ends_with_seven_lines(certificate):
    """More only where there is something to say."""
    lines = closing_lines(certificate, Path("my cert"))
    usual = {"Certificate", "Guarantee", "Applies to", "Half-width", "Estimate", "Notes", "Next"}
    assert usual <= set(lines) and [*lines][:: len(lines) - 1] == ["Certificate", "Next"]
    assert lines["Next"] == "splatcert report 'my cert'    splatcert view 'my cert'"


def test_misses_are_those_that_the_scores_tell(stored, photos, model):
    """A view is covered by its pixels if and only if it is by its score (lem:event)."""
    certificate = load_certificate(stored, model)
    report = report_of(certificate, made_capture(photos), ReportConfig())
    assert report.calibration.inside is not None
    covered = report.calibration.inside >= 0.9
    assert covered.tolist() == (certificate.scores <= certificate.threshold).tolist()
    easiest, *_, hardest = (picture.name for picture in report.pictures)
    widths = report.calibration.needed(certificate.beta)
    needed = dict(zip(report.calibration.names, widths, strict=True))
    assert needed[easiest] == min(needed.values()) and needed[hardest] == max(needed.values())


def test_the_ledger_names_the_report(stored, photos, model, tmp_path):
    scene = made_capture(photos)
    write_report(stored, tmp_path / "report.html", scene, model)
    assert [(e.purpose, e.by) for e in scene.held_out.ledger.entries] == [("evaluation", "report")]


def test_other_photos_are_refused(stored, photos, model, tmp_path):
    cameras, pictures = photos
    changed = {**pictures, NAMES[0]: 1 - pictures[NAMES[0]]}
    with pytest.raises(CertificateError, match=f"1 of 12 photos differ from .*first: {NAMES[0]}"):
        write_report(stored, tmp_path / "report.html", made_capture((cameras, changed)), model)
    assert not (tmp_path / "report.html").exists()


def test_a_promise_of_nothing_says_so(photos, model, tmp_path):
    scene = made_capture(photos)
    with catch_warnings():
        simplefilter("ignore")
        certificate = certify(scene, model, CertifyConfig(alpha="1/100"), predictor=None)
    folder = certificate.save(tmp_path / "cert")
    path = write_report(folder, tmp_path / "report.html", made_capture(photos), model)
    page = path.read_text(encoding="utf-8")
    assert "No guarantee: 12 calibration views are too few for 99%." in page
    assert "Hold out at least 87 more views" in page
    assert kinds(page) == {"render"}
    assert not re.search(r"\bnan\b", Outline(page).text)


def test_hostile_names_are_only_names(photos, model, tmp_path):
    """A capture is somebody else's text; on a page it must stay text."""
    cameras, pictures = photos
    names = dict(zip(cameras, [*HOSTILE, *list(cameras)[len(HOSTILE) :]], strict=True))
    scene = scene_from_tensors(
        {names[name]: camera for name, camera in cameras.items()},
        {names[name]: picture for name, picture in pictures.items()},
        held_out=[*HOSTILE, *list(cameras)[4:14]],
        path="<img src=x onerror=alert(1)>",
    )
    folder = certify(scene, model, predictor=None).save(tmp_path / "cert <b>")
    options = ReportConfig(views=14)
    path = write_report(folder, tmp_path / "report.html", scene, model, options)
    page = Outline(path.read_text(encoding="utf-8"))
    assert len(page.all("script")) == 1 and len(page.all("style")) == 1
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert {tag for tag, _ in page.elements}.isdisjoint({"b>", "iframe", "object", "link", "base"})
    assert all((image["src"] or "").startswith("data:image/") for image in page.all("img"))
    for name in (*HOSTILE, scene.path.name, "cert <b>"):
        assert name in page.text


def test_a_scene_without_splats_is_refused(stored, photos, tmp_path):
    with pytest.raises(CertificateError, match="pass splats"):
        write_report(stored, tmp_path / "report.html", made_capture(photos))


def test_another_model_is_refused(stored, model, tmp_path):
    other = type(model)(**{**vars(model), "means": torch.zeros_like(model.means)})
    with pytest.raises(CertificateError, match="made for a different model"):
        write_report(stored, tmp_path / "report.html", None, other)


def test_photographs_are_listed_by_their_error(stored, pages):
    """Training and calibration photographs, the worst first; the certificate alone knows them."""
    content = report_of(load_certificate(stored), None, ReportConfig())
    assert [one.psnr for one in content.photos] == sorted(one.psnr for one in content.photos)
    assert sorted(one.name for one in content.photos) == sorted(NAMES)
    calibrated = {view.name for view in load_certificate(stored).record.calibration}
    assert {one.name for one in content.photos if one.role == "calibration"} == calibrated
    assert f"All {len(NAMES)} photographs, the worst first" in pages["alone"]
