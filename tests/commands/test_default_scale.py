# SPDX-License-Identifier: Apache-2.0
"""Which scale `splatcert certify` uses when none is named, and what it says about it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from certified_capture import HELD_OUT, made_predictor
from splatcert import cli
from splatcert.certificate.hashes import place_mark
from splatcert.certificate.store import read_certificate
from splatcert.deploy import open_certificate
from splatcert.difficulty.guided.guide import shipped_guide
from splatcert.scales import named
from splatcert.scene.load import load_scene
from splatcert.splats.files import load_splats
from splatcert_viewer.shown import ViewerState

EVERY_THIRD = ["--holdout", "3"]
NEEDS_PHOTOS = "Prediction requires the training photos. --scale paper makes a certificate"


def certify(place: Path, output: Path, *options: str) -> int:
    inputs = [str(place / "capture"), str(place / "model.ply")]
    return cli.main(["certify", *inputs, "-o", str(output), *EVERY_THIRD, *options])


def stored(folder: Path) -> dict:
    return json.loads((folder / "certificate.json").read_text())


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def made(place) -> Path:
    """A certificate by default, beside its capture and model."""
    assert certify(place, place / "by_default") == 0
    return place / "by_default"


def test_the_default_is_guided_and_says_what_prediction_requires(place, tmp_path, capsys):
    assert certify(place, tmp_path / "cert") == 0
    said = flat(capsys.readouterr().out)
    assert NEEDS_PHOTOS in said
    assert f"--model {place / 'model.ply'} --data {place / 'capture'}" in said.split("Next")[1]
    record = stored(tmp_path / "cert")
    assert record["scale"]["name"] == "guided" and record["scale"]["needs_photos"]
    assert record["center"] == "render"
    assert certify(place, tmp_path / "named", "--scale", "guided") == 0
    assert stored(tmp_path / "named")["labels"]["frozen"] == record["labels"]["frozen"]


def test_the_paper_scale_by_name_is_as_it_was_and_needs_no_photos(place, tmp_path, capsys):
    assert certify(place, tmp_path / "cert", "--scale", "paper") == 0
    assert "Prediction" not in capsys.readouterr().out
    assert certify(place, tmp_path / "json", "--scale", "paper", "--json") == 0
    known = json.loads(capsys.readouterr().out)
    assert (known["scale"], known["needs_photos"]) == ("paper", False)
    assert stored(tmp_path / "cert")["scale"]["holes"] == "wide"


@pytest.mark.parametrize(
    "option", [["--predictor", "none"], ["--predictor", "strict"], ["--holes", "paper"],
               ["--unit", "batch"], ["--predictor", "predictor.json"]]
)  # fmt: skip
def test_an_option_of_the_paper_scale_chooses_it(place, tmp_path, option, monkeypatch):
    made_predictor().save(tmp_path / "predictor.json")
    place = place.resolve()
    monkeypatch.chdir(tmp_path)
    assert certify(place, tmp_path / "cert", *option) == 0
    assert stored(tmp_path / "cert")["scale"]["name"] == "paper"


@pytest.mark.parametrize("guided", [["--center", "corrected"], ["--guide", "guide.json"]])
def test_options_of_two_scales_are_refused_by_name(place, tmp_path, capsys, guided):
    assert certify(place, tmp_path / "cert", *guided, "--predictor", "none") == 2
    said = flat(capsys.readouterr().err)
    assert f"{guided[0]}" in said
    assert "requires --scale guided, --predictor none requires --scale paper" in said
    assert not (tmp_path / "cert").exists()


def test_the_corrected_centre_needs_no_scale_to_be_named(place, tmp_path):
    assert certify(place, tmp_path / "cert", "--center", "corrected") == 0
    assert stored(tmp_path / "cert")["center"] == "corrected"


def test_a_capture_that_all_guides_have_seen_gets_the_paper_scale_in_words(
    place, tmp_path, capsys, monkeypatch
):
    """As truck does, if its held-out photos are not every 8th."""
    cameras = load_scene(place / "capture", holdout=3).cameras
    marks = {
        f"held-out {name}": f"0 {place_mark(camera)}"
        for name, camera in cameras.items()
        if Path(name).name in HELD_OUT[:2]
    }
    assert len(marks) == 2
    guide = shipped_guide()
    row = {"scene": "capture", "hashes": marks}
    card = {"views": "held-out", "scenes": [row]}
    seen = type(guide)(**{**vars(guide), "card": card})
    monkeypatch.setattr(named, "shipped_guide", lambda name="guide": seen)
    assert certify(place, tmp_path / "cert") == 0
    said = flat(capsys.readouterr().out)
    assert "Scale paper: both guides in splatcert were trained on photos held out here" in said
    assert stored(tmp_path / "cert")["scale"]["name"] == "paper"
    for named_one in (["--scale", "guided"], ["--center", "corrected"]):
        assert certify(place, tmp_path / "refused", *named_one) == 2
        said = flat(capsys.readouterr().err)
        assert "the guide learned from labels of 2 calibration views" in said
        assert "--scale paper" in said


def test_photos_that_memory_cannot_hold_give_the_paper_scale(place, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("splatcert.witnesses.album.album_bytes", lambda cameras: 1 << 60)
    assert certify(place, tmp_path / "cert") == 0
    assert "Scale paper: the guided scale would keep 1.07e+09 GiB" in flat(capsys.readouterr().out)
    assert stored(tmp_path / "cert")["scale"]["name"] == "paper"


def test_commands_find_the_photos_and_say_where_to_look_without_them(made, place, tmp_path, capsys):
    film = ["--cameras", "held-out", "--no-film", "-o"]
    assert cli.main(["render", str(made), *film, str(tmp_path / "found")]) == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.copytree(made, moved / "cert")
    shutil.copy(place / "model.ply", moved / "model.ply")
    capsys.readouterr()
    assert cli.main(["render", str(moved / "cert"), *film, str(tmp_path / "lost")]) == 2
    said = flat(capsys.readouterr().err)
    assert "depend on the training photos, which were not given" in said
    assert "--data DATA" in said and "certify with --scale paper" in said
    data = ["--data", str(place / "capture")]
    assert cli.main(["render", str(moved / "cert"), *film, str(tmp_path / "given"), *data]) == 0
    assert cli.main(["verify", str(moved / "cert")]) == 0


def test_every_command_takes_a_certificate_of_the_default_scale(made, place, tmp_path, capsys):
    inputs = ["--data", str(place / "capture"), "--model", str(place / "model.ply")]
    assert cli.main(["verify", str(made), *inputs]) == 0
    assert cli.main(["report", str(made), "-o", str(tmp_path / "report.html")]) == 0
    assert cli.main(["suggest", str(made), "-o", str(tmp_path / "next"), "--count", "2"]) == 0
    assert cli.main(["export", str(made), "-o", str(tmp_path / "out")]) == 0
    assert cli.main(["inspect", str(made)]) == 0
    assert NEEDS_PHOTOS in flat(capsys.readouterr().out)
    page = (tmp_path / "report.html").read_text()
    assert "The guide was trained on other photos" in page
    assert "boxes follow training photos of the same surfaces" in page


def test_a_view_predictor_is_not_learned_from_the_guided_scale(made, tmp_path, capsys):
    for source in (made, made / "views.npz"):
        assert cli.main(["learn", str(source), "-o", str(tmp_path / "predictor.json")]) == 2
        assert "has the guided scale" in flat(capsys.readouterr().err)
    assert not (tmp_path / "predictor.json").exists()


def test_a_family_says_which_members_require_photos(place, tmp_path, capsys):
    assert certify(place, tmp_path / "family", "--scale", "guided,paper") == 0
    said = flat(capsys.readouterr().out)
    assert "Prediction members of the guided scale require the training photos" in said


def test_a_report_without_the_photos_leaves_pictures_out_in_words(made, place, tmp_path, capsys):
    """The page holds everything that the certificate's folder says."""
    lost = shutil.copytree(made, tmp_path / "lost", ignore=shutil.ignore_patterns("places.json"))
    page, model = tmp_path / "page.html", ["--model", str(place / "model.ply")]
    assert cli.main(["report", str(lost), "-o", str(page)]) == 0
    assert "Left out pictures: pass --data and --model" in flat(capsys.readouterr().out)
    assert 'data-kind="render"' not in page.read_text()
    assert "box edges: add --model and --data." in page.read_text()
    assert cli.main(["report", str(lost), "-o", str(page), *model]) == 2
    assert "were not given" in flat(capsys.readouterr().err)
    data = ["--data", str(place / "capture")]
    assert cli.main(["report", str(lost), "-o", str(page), *model, *data]) == 0
    assert 'data-kind="render"' in page.read_text()


def test_exported_uncertainty_is_in_the_units_of_the_boxes(made, tmp_path):
    """The guided scale has factors of its own unit, and a threshold that is not a half-width."""
    assert cli.main(["export", str(made), "-o", str(tmp_path / "out")]) == 0
    rows = load_splats(tmp_path / "out/support.ply").extra
    mean = np.average(rows["uncertainty"], weights=rows["exposure"])
    usual = np.mean(read_certificate(made).usual_half_widths)
    assert mean == pytest.approx(usual, rel=0.5)


def test_a_viewer_compares_factors_in_their_own_unit(made, place):
    certificate = open_certificate(made)
    gauge = ViewerState.of(certificate, None).gauge
    assert gauge.predicted and 0 < gauge.least < gauge.most < 0.5
    known = [view.factor for view in certificate.record.calibration]
    assert (gauge.least, gauge.most) == (min(known), max(known))


@pytest.mark.parametrize("schema", [2, 3])
def test_a_certificate_made_before_requires_no_photos(schema, tmp_path, capsys):
    """It verifies, is described and exported as ever, whatever the default is now."""
    golden = Path(__file__).parents[1] / f"golden/schema-{schema}"
    folder = shutil.copytree(golden / "certificate", tmp_path / "cert")
    shutil.copy(golden / "splats.ply", tmp_path / "model.ply")
    assert cli.main(["verify", str(folder)]) == 0
    assert cli.main(["inspect", str(folder)]) == 0
    assert "Prediction" not in capsys.readouterr().out
    record = read_certificate(folder).record
    assert record.scale.name == "paper" and not record.scale.needs_photos
    model = ["--model", str(tmp_path / "model.ply")]
    assert cli.main(["export", str(folder), *model, "-o", str(tmp_path / "out")]) == 0
    frames = ["--cameras", "held-out", "--no-film", "-o", str(tmp_path / "frames")]
    assert cli.main(["render", str(folder), *model, *frames]) == 0
