# SPDX-License-Identifier: Apache-2.0
"""`splatcert inspect`: captures, models, and things that are neither."""

from __future__ import annotations

import json

import pytest
from PIL import Image

from certified_capture import made_predictor
from splatcert import cli, render
from splatcert.difficulty.predictor import PREDICTORS
from splatcert.storage.png import to_pixels


def test_a_capture_in_words(capture, capsys):
    assert cli.main(["inspect", str(capture)]) == 0
    printed = capsys.readouterr().out
    for fact in ("transforms", "7 for training, 2 held out", "Split         ", "48x32 pixels"):
        assert fact in printed


def test_a_capture_under_another_split(capture, model, capsys):
    assert cli.main(["inspect", str(capture), "--holdout", "random4"]) == 0
    assert "one random photo of every 4 in name order" in capsys.readouterr().out
    assert cli.main(["inspect", str(capture), "--holdout", "2", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["held_out"] == 5
    assert known["holdout_check"]["words"].startswith("No sign of a difference")
    assert cli.main(["inspect", str(capture), "--holdout", "random99"]) == 2
    assert "random99 cannot split 9 photos" in capsys.readouterr().err
    assert cli.main(["inspect", str(model), "--holdout", "2"]) == 2
    assert "--holdout goes with a capture" in capsys.readouterr().err


def test_a_model_in_words(model, capsys):
    assert cli.main(["inspect", str(model)]) == 0
    printed = capsys.readouterr().out
    for fact in ("ply, read from", "400, harmonics of degree 1", "classic"):
        assert fact in printed


def test_both_as_json(capture, model, capsys):
    assert cli.main(["inspect", str(capture), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert (known["kind"], known["training"], known["held_out"]) == ("capture", 7, 2)
    assert cli.main(["inspect", str(model), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert (known["kind"], known["count"], known["format"]) == ("model", 400, "ply")


def test_a_model_among_the_photos_of_its_capture(capture, model, cameras, splats, capsys):
    for name, camera in cameras.items():
        picture = to_pixels(render(splats, camera).rgb.numpy())
        Image.fromarray(picture).save(capture / name)
    assert cli.main(["inspect", str(model), "--data", str(capture)]) == 0
    assert "as stored; " in capsys.readouterr().out
    assert cli.main(["inspect", str(model), "--data", str(capture), "--json"]) == 0
    placed = json.loads(capsys.readouterr().out)["placed"]
    assert placed["psnr"] > 40 and placed["photos"] == 4
    assert cli.main(["inspect", str(capture), "--data", str(capture)]) == 2
    assert "--data goes with a model" in capsys.readouterr().err


def test_an_unknown_path(tmp_path, capsys):
    assert cli.main(["inspect", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such file or folder" in capsys.readouterr().err


def test_a_folder_that_is_neither(tmp_path, capsys):
    (tmp_path / "holiday.txt").write_text("sun")
    assert cli.main(["inspect", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "no model found inside (holiday.txt)" in message
    assert "It is not a capture" in message
    assert message.count("\n") <= 5


def test_a_file_that_is_neither(tmp_path, capsys):
    (tmp_path / "holiday.txt").write_text("sun")
    assert cli.main(["inspect", str(tmp_path / "holiday.txt")]) == 2
    assert "not a model" in capsys.readouterr().err


def test_a_model_cut_short(model, capsys):
    model.write_bytes(model.read_bytes()[:200])
    assert cli.main(["inspect", str(model)]) == 2
    assert str(model) in capsys.readouterr().err


def test_a_list_of_cameras(camera_list, capsys):
    assert cli.main(["inspect", str(camera_list)]) == 0
    assert "9, from 00 to 08" in capsys.readouterr().out
    assert cli.main(["inspect", str(camera_list), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["kind"] == "cameras" and known["sizes"] == {"48x32": 9}


def test_a_certificate_says_where_its_model_is(certified, capsys):
    assert cli.main(["inspect", str(certified)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"Model file {certified.parent / 'model.ply'}" in said
    assert f"splatcert render {certified} -o DIR" in said


def test_a_run_of_splatcert_train_is_named_and_an_unfinished_one_told(tmp_path, model, capsys):
    run = tmp_path / "run"
    run.mkdir()
    model.rename(run / "splats.ply")
    views = {"training_views": ["b.png", "c.png"], "held_out_views": ["a.png"]}
    request = {**views, "sizes": [[48, 32]], "config": {"background": [0, 0, 0]}}
    (run / "train.json").write_text(json.dumps({"request": request, "result": {"seconds": 1}}))
    assert cli.main(["inspect", str(run)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Trained by splatcert train on 2 photos, long side 48" in said
    assert "Held out 1 photo, a.png" in said
    (run / "train.json").write_text(json.dumps({"request": request, "result": None}))
    assert cli.main(["inspect", str(run)]) == 2
    assert "an unfinished run" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["default", "strict"])
def test_a_predictor_says_where_it_was_learned(name, capsys):
    path = PREDICTORS / f"{name}.json"
    assert cli.main(["inspect", str(path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "playroom" in told and "left out in training: one scene at a time" in told
    assert cli.main(["inspect", str(path), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["kind"] == "predictor" and known["card"]["views"] == "held-out"


def test_a_guide_is_not_mistaken_for_a_capture(capsys):
    path = PREDICTORS / "guide.json"
    assert cli.main(["inspect", str(path)]) == 0
    assert "weights of the guided scale for 11 maps" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["inspect", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "guide"


def test_a_predictor_without_a_card_is_shown_as_one(tmp_path, capsys):
    made_predictor().save(tmp_path / "mine.json")
    assert cli.main(["inspect", str(tmp_path / "mine.json")]) == 0
    assert "its training scenes are unknown" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["inspect", str(tmp_path / "mine.json"), "--data", str(tmp_path)]) == 2
