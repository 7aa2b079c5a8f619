# SPDX-License-Identifier: Apache-2.0
"""`splatcert certify`, `verify`, `learn` and `inspect CERT` as a person meets them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from certified_capture import (
    HELD_OUT,
    NAMES,
    made_model,
    made_predictor,
    made_truth,
)
from splat_layouts import write_gsplat_run, write_inria_folder
from splatcert import cli, pipeline, refusals
from splatcert.raster import placement
from splatcert.report.content import percent
from splatcert.splats.files import save_ply
from splatcert_bench.synthetic.scenes import random_splats

OPENGL = np.diag([1.0, -1.0, -1.0, 1.0])
EVERY_THIRD = ["--holdout", "3"]


@pytest.fixture(scope="module")
def made(place) -> Path:
    """A certificate on disk, not to be changed."""
    assert certify(place, place / "cert", *EVERY_THIRD) == 0
    return place / "cert"


@pytest.fixture(scope="module")
def paper(place) -> Path:
    """The same, of the paper's scale."""
    assert certify(place, place / "paper", *EVERY_THIRD, "--scale", "paper") == 0
    return place / "paper"


def certify(place: Path, output: Path, *options: str, model: str = "model.ply") -> int:
    inputs = [str(place / "capture"), str(place / model)]
    return cli.main(["certify", *inputs, "-o", str(output), *options])


def flat(text: str) -> str:
    return " ".join(text.split())


def test_it_states_the_guarantee_in_words(place, tmp_path, capsys):
    assert certify(place, tmp_path / "cert", *EVERY_THIRD, "--predictor", "none") == 0
    said = flat(capsys.readouterr().out)
    for fact in (
        "24 training, 12 held-out photos; index % 3 == 0 of the sorted names held out",
        f"Certificate {tmp_path / 'cert'}",
        "Guarantee With probability ≥ 90%, ≥ 90% of the pixels of a new view lie inside their "
        "boxes.",
        "Applies to views exchangeable with the 12 held-out photos it was calibrated on",
        "Predictor none: every view has factor 1",
        "of 255 on average, the same in every view",
        "% of test views covered over 200 random splits",
        "Notes ",
        f"Next splatcert report {tmp_path / 'cert'} splatcert view {tmp_path / 'cert'}",
    ):
        assert fact in said
    left = {path.name for path in (tmp_path / "cert").iterdir()}
    assert left == {
        ".lock",
        "certificate.json",
        "field.safetensors",
        "places.json",
        "views.npz",
    }


def test_what_is_refused_early_is_looked_at_once(place, tmp_path, monkeypatch):
    looked = []
    check = placement.fit_photos
    for module in (placement, refusals):
        monkeypatch.setattr(
            module, "fit_photos", lambda *what, **how: looked.append(1) or check(*what, **how)
        )
    assert certify(place, tmp_path / "cert", *EVERY_THIRD, "--json") == 0
    assert looked == [1]


def test_the_same_as_json(place, tmp_path, capsys):
    assert certify(place, tmp_path / "cert", *EVERY_THIRD, "--json", "--alpha", "20%") == 0
    known = json.loads(capsys.readouterr().out)
    assert known["guarantee"]["alpha"] == "1/5" and known["guarantee"]["rank"] == 11
    assert known["views"] == {"training": 24, "calibration": 12, "unlabelled": 0}
    assert known["scene"]["held_out_by"] == "user"
    assert known["splits"]["scales"]["constant"]["saving"] == 0
    assert set(known["splits"]["scales"]) == {"a b~", "constant"}
    assert "coverage_by_tenth" not in known


def test_what_the_labels_tell_beyond_the_guarantee_is_asked_for(place, tmp_path, capsys):
    assert certify(place, tmp_path / "plain", *EVERY_THIRD) == 0
    said = flat(capsys.readouterr().out)
    assert "Savings" not in said and "narrowest boxes" not in said
    assert certify(place, tmp_path / "cert", *EVERY_THIRD, "--diagnose") == 0
    said = flat(capsys.readouterr().out)
    assert "Diagnosis These numbers come from the calibration labels." in said
    assert "Savings against a constant scale: a only" in said
    assert "to the tenth with the widest: " in said
    assert certify(place, tmp_path / "cert", *EVERY_THIRD, "--diagnose", "--json") == 0
    known = json.loads(capsys.readouterr().out)
    assert len(known["coverage_by_tenth"]) == 10 and "oracle a" in known["splits"]["scales"]
    assert cli.main(["report", str(tmp_path / "cert"), "--alone"]) == 0
    page = flat((tmp_path / "cert" / "report.html").read_text())
    assert f"{100 * known['coverage_by_tenth'][9]:.1f}%" in page and "oracle a" not in page


def test_photos_have_the_sums_that_any_tool_computes(place, made):
    content = json.loads((made / "certificate.json").read_text())
    for view in (*content["training"], *content["calibration"]):
        photo = (place / "capture" / view["name"]).read_bytes()
        assert view["file"] == hashlib.sha256(photo).hexdigest()


def test_verify_alone_and_from_scratch(place, made, capsys):
    assert cli.main(["verify", str(made)]) == 0
    said = flat(capsys.readouterr().out)
    assert "seal ok intact" in said
    assert "recomputation not checkable requires --data and --model" in said
    assert "Verdict valid by itself: all 19 checks passed" in said
    assert cli.main(["verify", str(made), "--verbose"]) == 0
    assert "again, by conformal risk control" in flat(capsys.readouterr().out)
    inputs = ["--data", str(place / "capture"), "--model", str(place / "model.ply")]
    assert cli.main(["verify", str(made), *inputs, "--threads", "1", "--verbose"]) == 0
    said = flat(capsys.readouterr().out)
    assert "all 12 recomputed from scratch: identical" in said
    assert "nobody can check that the model has not seen" in said
    assert cli.main(["verify", str(made), *inputs, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True


def test_verify_rejects_an_edited_certificate(made, tmp_path, capsys):
    folder = Path(shutil.copytree(made, tmp_path / "cert"))
    path = folder / "certificate.json"
    content = json.loads(path.read_text())
    content["guarantee"]["threshold"] /= 2
    path.write_text(json.dumps(content))
    assert cli.main(["verify", str(folder)]) == 2
    printed = capsys.readouterr()
    assert "failed an entry was edited after sealing" in flat(printed.out)
    failed = "4 of 19 checks failed (seal, threshold, second threshold, diagnostics)"
    assert failed in printed.err
    assert cli.main(["inspect", str(folder)]) == 2
    assert "has been edited" in capsys.readouterr().err


def test_verify_names_another_photo(place, made, tmp_path, capsys):
    capture = Path(shutil.copytree(place / "capture", tmp_path / "capture"))
    photo = capture / "images" / HELD_OUT[4]
    Image.fromarray(255 - np.asarray(Image.open(photo))).save(photo)
    inputs = ["--data", str(capture), "--model", str(place / "model.ply")]
    assert cli.main(["verify", str(made), *inputs]) == 2
    printed = capsys.readouterr()
    assert f"1 photos differ from the certified ones: images/{HELD_OUT[4]}" in flat(printed.out)
    assert "checks failed" in printed.err


def test_verify_loads_the_capture_as_certify_did(place, tmp_path, capsys):
    """A factor of photos of two sizes is no long side; nor are edited sizes trusted."""
    capture = Path(shutil.copytree(place / "capture", tmp_path / "capture"))
    content = json.loads((capture / "transforms.json").read_text())
    frame, photo = content["frames"][1], capture / "images" / NAMES[1]
    Image.open(photo).resize((90, 60)).save(photo)
    lens = ("fl_x", "fl_y", "cx", "cy", "w", "h")
    for other in content["frames"]:
        other |= {key: content[key] for key in lens}
    frame |= {key: 3 * content[key] / 2 for key in lens} | {"w": 90, "h": 60}
    for key in lens:
        del content[key]
    (capture / "transforms.json").write_text(json.dumps(content))
    shutil.move(capture / "images", capture / "photos")
    inputs = [str(capture), str(place / "model.ply"), "-o", str(tmp_path / "cert")]
    options = [*EVERY_THIRD, "--resolution", "1/2", "--images", "photos"]
    assert cli.main(["certify", *inputs, *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scene"]["sizes"] == {"30x20": 35, "45x30": 1}
    checked = ["verify", str(tmp_path / "cert"), "--data", inputs[0], "--model", inputs[1]]
    assert cli.main(checked) == 0
    path = tmp_path / "cert/certificate.json"
    stored = json.loads(path.read_text())
    for change in ({"sizes": {"wide": 36}}, {"format": "film"}):
        path.write_text(json.dumps({**stored, "scene": {**stored["scene"], **change}}))
        assert cli.main(checked) == 2
    stored["scene"]["loaded"]["resolution"] = "huge"
    path.write_text(json.dumps(stored))
    assert cli.main(checked) == 2
    assert "resolution 'huge' is neither" in flat(capsys.readouterr().err)


def test_verify_needs_both_or_none(made, capsys):
    assert cli.main(["verify", str(made), "--data", "somewhere"]) == 2
    assert "--data and --model go together" in flat(capsys.readouterr().err.replace("│", " "))


def test_inspect_says_what_a_certificate_is(made, capsys):
    assert cli.main(["inspect", str(made)]) == 0
    said = flat(capsys.readouterr().out)
    for fact in (
        "Scene capture",
        "400 Gaussians",
        "splatcert-cpu",
        "at 60x40 pixels",
        "Guarantee With",
    ):
        assert fact in said
    assert cli.main(["inspect", str(made), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "certificate"


def test_learning_and_certifying_with_what_was_learned(place, paper, tmp_path, capsys):
    learned = tmp_path / "new" / "predictor.json"
    assert cli.main(["learn", str(paper), "-o", str(learned), "--splits", "20"]) == 0
    said = flat(capsys.readouterr().out)
    for fact in (
        "scene views rank corr. a b~",
        "capture 24 ",
        "lambda_a",
        "Trained on training views",
    ):
        assert fact in said
    options = [*EVERY_THIRD, "--predictor", str(learned)]
    assert certify(place, tmp_path / "cert", *options) == 0
    said = flat(capsys.readouterr().out)
    assert "Guarantee With probability" in said and "origin unknown" not in said
    content = json.loads(learned.read_text())
    del content["card"]["scenes"][0]["hashes"]
    (tmp_path / "nameless.json").write_text(json.dumps(content))
    options[-1] = str(tmp_path / "nameless.json")
    assert certify(place, tmp_path / "other", *options) == 0
    assert "origin unknown: its card does not name the photos" in flat(capsys.readouterr().out)
    assert cli.main(["learn", str(paper / "views.npz"), "-o", str(learned), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenes"][0]["views"] == 24


def test_a_predictor_of_these_held_out_labels_is_refused(place, paper, tmp_path, capsys):
    learned = tmp_path / "predictor.json"
    assert cli.main(["learn", str(paper), "-o", str(learned), "--views", "held-out"]) == 0
    capsys.readouterr()
    options = [*EVERY_THIRD, "--predictor", str(learned)]
    assert certify(place, tmp_path / "cert", *options) == 2
    assert "learned from labels of 12 calibration views" in capsys.readouterr().err
    assert not (tmp_path / "cert").exists()


def test_too_few_views_say_how_many_are_missing_and_are_no_failure(place, tmp_path, capsys):
    assert certify(place, tmp_path / "cert") == 0
    said = flat(capsys.readouterr().out)
    assert "Guarantee None: 5 calibration views cannot certify alpha = 1/10" in said
    assert "Hold out at least 4 more views, or use alpha >= 1/6" in said
    assert "Half-width" not in said
    assert "Held out Assumed: the model file does not say which photos it was trained on" in said
    assert cli.main(["verify", str(tmp_path / "cert")]) == 0


def test_splits_without_a_finite_threshold_are_no_estimate(place, tmp_path, capsys):
    """15 views are enough for alpha = 1/15, the 11 of a split are not."""
    names = [f"images/{name}" for name in (*HELD_OUT, *NAMES[1:10:3])][:15]
    (tmp_path / "names.txt").write_text("\n".join(names))
    options = ["--holdout", str(tmp_path / "names.txt"), "--alpha", "1/15"]
    assert certify(place, tmp_path / "cert", *options) == 0
    said = flat(capsys.readouterr().out)
    assert "the 15 held-out photos it was calibrated on" in said
    assert (
        "Estimate none: a split calibrates on 11 of the 15 views, and alpha = 1/15 requires 14 for "
        "a finite threshold" in said
    )
    assert "nan" not in said and "inf " not in said
    assert cli.main(["verify", str(tmp_path / "cert")]) == 0
    assert percent(float("nan")) == "-" and percent(0.25) == "25.0%"


def test_a_run_that_is_interrupted_leaves_no_certificate_and_goes_on(
    place, made, tmp_path, capsys, monkeypatch
):
    def stop(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "score_views", stop)
        assert certify(place, tmp_path / "cert", *EVERY_THIRD) == 130
    left = {path.name for path in (tmp_path / "cert").iterdir()}
    assert left == {".lock", ".field.safetensors"}
    assert cli.main(["verify", str(tmp_path / "cert")]) == 2
    assert "run the same command again to resume it" in capsys.readouterr().err
    assert certify(place, tmp_path / "cert", *EVERY_THIRD) == 0
    for name in ("field.safetensors", "views.npz"):
        assert (tmp_path / "cert" / name).read_bytes() == (made / name).read_bytes()


def test_a_run_of_splatcert_train_brings_its_own_split_and_size(place, tmp_path, capsys):
    run = tmp_path / "run"
    capture = str(place / "capture")
    fast = ["--iterations", "5", "--sh-degree", "0", "--random-points", "500"]
    size = ["--resolution", "30", *EVERY_THIRD]
    assert cli.main(["train", capture, "-o", str(run), *fast, *size]) == 0
    save_ply(made_model(made_truth()), run / "splats.ply")  # as if it had been trained for long
    capsys.readouterr()
    assert cli.main(["certify", capture, str(run), "-o", str(tmp_path / "cert"), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["scene"]["sizes"] == {"30x20": 36} and known["views"]["calibration"] == 12
    assert cli.main(["inspect", str(tmp_path / "cert")]) == 0
    said = flat(capsys.readouterr().out)
    assert "splatcert train had already used 12 held-out photos (images/000.png" in said
    assert "nobody used them to choose the model or its settings" in said
    assert cli.main(["verify", str(tmp_path / "cert"), "--verbose"]) == 0
    said = flat(capsys.readouterr().out)
    assert "splatcert train already used 12 held-out photos (images/000.png" in said
    assert "for evaluation" in said
    inputs = ["--data", capture, "--model", str(run)]
    assert cli.main(["verify", str(tmp_path / "cert"), *inputs]) == 0
    other = ["certify", capture, str(run / "splats.ply"), "-o", str(tmp_path / "no")]
    metrics = (run / "metrics.json").read_text()
    (run / "metrics.json").write_text(metrics.replace('"evaluation"', '"fun"'))
    capsys.readouterr()
    assert cli.main(other) == 2
    assert "labels[0].purpose must be one of calibration" in capsys.readouterr().err
    (run / "metrics.json").write_text(metrics)
    assert cli.main([*other, "--holdout", "4"]) == 2
    assert "the model was trained on 6 of the 9 held-out photos" in capsys.readouterr().err
    record = json.loads((run / "train.json").read_text())
    (run / "train.json").write_text(json.dumps({**record, "result": None}))
    assert cli.main(other) == 2
    assert "holds an unfinished run" in capsys.readouterr().err
    (run / "train.json").write_text("{}")
    assert cli.main(other) == 2
    assert "does not say what the model was trained on" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_a_certificate_calibrated_on_training_photos_fails_against_the_run(place, tmp_path, capsys):
    """Forged with public commands only: the bare file is certified with a split of its own."""
    run, capture = tmp_path / "run", str(place / "capture")
    fast = ["--iterations", "5", "--sh-degree", "0", "--random-points", "500"]
    assert cli.main(["train", capture, "-o", str(run), *fast, "--holdout", "4"]) == 0
    save_ply(made_model(made_truth()), run / "splats.ply")  # as if it had been trained for long
    bare, forged = tmp_path / "bare.ply", str(tmp_path / "forged")
    shutil.copy(run / "splats.ply", bare)
    assert cli.main(["certify", capture, str(bare), "-o", forged, *EVERY_THIRD]) == 0
    capsys.readouterr()
    assert cli.main(["verify", forged, "--data", capture, "--model", str(run)]) == 2
    printed = capsys.readouterr()
    assert "lists 9 of 12 calibration photos as trained on: images/003.png" in flat(printed.out)
    assert "1 of 31 checks failed (training photos)" in printed.err
    assert cli.main(["verify", forged, "--data", capture, "--model", str(bare)]) == 0
    said = flat(capsys.readouterr().out)
    assert "training photos not checkable" in said
    assert "nobody can check that the model has not seen the calibration photos" in said
    honest = str(tmp_path / "honest")
    assert cli.main(["certify", capture, str(run), "-o", honest]) == 0
    capsys.readouterr()
    assert cli.main(["verify", honest, "--data", capture, "--model", str(run), "--verbose"]) == 0
    said = flat(capsys.readouterr().out)
    assert "the model's run lists none of the 9 calibration photos" in said
    assert "all 31 checks passed" in said


def test_models_of_other_trainers_bring_their_split(place, tmp_path, capsys):
    splats = made_model(made_truth())
    settings = "Namespace(eval={}, sh_degree=1, white_background=False, resolution=-1)"
    write_inria_folder(place / "kept", {7: splats}, settings.format(True))
    assert certify(place, tmp_path / "a", "--json", model="kept") == 0
    known = json.loads(capsys.readouterr().out)
    assert known["views"]["calibration"] == 5 and known["scene"]["held_out_by"] == "model"
    write_inria_folder(place / "seen", {7: splats}, settings.format(False))
    assert certify(place, tmp_path / "b", model="seen") == 2
    told = capsys.readouterr().err
    assert "the model was trained on every photo of its capture" in told and "--eval" in told
    assert not (tmp_path / "b").exists()
    # Photos that were added later may be named.
    (tmp_path / "later.txt").write_text("\n".join(f"images/{name}" for name in HELD_OUT))
    listed = ["--holdout", str(tmp_path / "later.txt"), "--json"]
    assert certify(place, tmp_path / "b", *listed, model="seen") == 0
    assert json.loads(capsys.readouterr().out)["views"]["calibration"] == 12


def test_layouts_of_one_model_have_one_threshold(place, made, tmp_path):
    splats = made_model(made_truth())
    write_gsplat_run(place / "gsplat", splats, cfg="normalize_world_space: false\n")
    write_inria_folder(place / "inria", {7: splats}, None)
    expected = json.loads((made / "certificate.json").read_text())
    for model in ("inria", "gsplat"):
        assert certify(place, tmp_path / model, *EVERY_THIRD, model=model) == 0
        found = json.loads((tmp_path / model / "certificate.json").read_text())
        assert found["guarantee"] == expected["guarantee"]
        assert found["model"] == expected["model"]


def nothing_held_out(place: Path) -> list[str]:
    return ["--holdout", "none"]


def one_held_out(place: Path) -> list[str]:
    (place / "one.txt").write_text(f"images/{NAMES[0]}")
    return ["--holdout", str(place / "one.txt")]


def another_size(place: Path) -> list[str]:
    photo = place / "capture/images" / NAMES[1]
    Image.open(photo).resize((50, 40)).save(photo)
    return EVERY_THIRD


def missing_photo(place: Path) -> list[str]:
    (place / "capture/images" / NAMES[1]).unlink()
    return EVERY_THIRD


def broken_splats(place: Path) -> list[str]:
    splats = made_model(made_truth())
    splats.means[3, 0] = torch.nan
    save_ply(splats, place / "model.ply")
    return EVERY_THIRD


def other_scene(place: Path) -> list[str]:
    save_ply(random_splats(300, seed=1), place / "model.ply")
    return EVERY_THIRD


def other_schema(place: Path) -> list[str]:
    content = {**made_predictor().to_json(), "features": ["g_dnn", "g_x"]}
    (place / "predictor.json").write_text(json.dumps(content))
    return [*EVERY_THIRD, "--predictor", str(place / "predictor.json")]


def no_level(place: Path) -> list[str]:
    return [*EVERY_THIRD, "--alpha", "ten"]


def no_model(place: Path) -> list[str]:
    (place / "model.ply").unlink()
    return EVERY_THIRD


BAD_INPUT = {
    nothing_held_out: "is held out, so nothing can calibrate",
    one_held_out: "calibration requires at least 2",
    another_size: "50 x 40 pixels, its camera 60 x 40",
    missing_photo: "1 of 24 training photos is missing",
    broken_splats: "1 of 400 Gaussians are not finite",
    other_scene: "the model does not show what was photographed",
    other_schema: "feature 2 is 'g_x'",
    no_level: "alpha is not a number: 'ten'",
    no_model: "no such file or folder",
}


@pytest.mark.parametrize("spoil", BAD_INPUT, ids=lambda spoil: spoil.__name__)
def test_bad_input_is_one_message_and_nothing_is_written(place, tmp_path, capsys, spoil):
    copy = tmp_path / "place"
    shutil.copytree(place / "capture", copy / "capture")
    shutil.copy(place / "model.ply", copy / "model.ply")
    options = spoil(copy)
    assert certify(copy, tmp_path / "cert", *options) == 2
    printed = capsys.readouterr()
    assert BAD_INPUT[spoil] in flat(printed.err)
    assert printed.err.count("\n") <= 5 and "Traceback" not in printed.err
    assert not printed.out and not (tmp_path / "cert").exists()


def report(made: Path, *options: str) -> int:
    return cli.main(["report", str(made), *options])


def test_a_report_finds_its_model_and_capture(place, paper, tmp_path, capsys):
    """Where they were, where one says they are, or not at all."""
    lost = shutil.copytree(paper, tmp_path / "lost", ignore=shutil.ignore_patterns("places.json"))
    model, data = ["--model", str(place / "model.ply")], ["--data", str(place / "capture")]
    for folder, options, kinds, told in (
        (paper, [], ["render", "misses"], ""),
        (paper, ["--alone"], [], "Left out pictures"),
        (lost, [], [], "Left out pictures"),
        (lost, model, ["render"], "Left out misses"),
        (lost, [*model, *data], ["render", "misses"], ""),
    ):
        assert report(folder, *options, "-o", str(tmp_path / "page.html")) == 0
        said = flat(capsys.readouterr().out)
        assert f"Report {tmp_path / 'page.html'}" in said and told in said
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        shown = [kind for kind in ("render", "misses") if f'data-kind="{kind}"' in page]
        assert shown == kinds
        assert f"splatcert verify {folder}" in page


def test_a_report_lies_in_the_folder_of_a_certificate_made_here(place, tmp_path, capsys):
    folder = tmp_path / "cert"
    assert certify(place, folder, *EVERY_THIRD) == 0
    capsys.readouterr()
    assert report(folder, "--alone", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == str(folder / "report.html")
    assert told["bytes"] == (folder / "report.html").stat().st_size
    assert cli.main(["verify", str(folder)]) == 0


def test_a_report_can_suggest_photographs(made, tmp_path):
    assert report(made, "--suggest", "2", "--views", "1", "-o", str(tmp_path / "page.html")) == 0
    assert ">photos that see it</th>" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "capture"], "--data requires --model"),
        (["--photos"], "--photos requires --data and --model"),
        (["--suggest", "3"], "--suggest requires --model"),
        (["--views", "0"], "a report shows 1 to 40 views, got 0"),
        (["-o", "no/such/folder/page.html"], "cannot write no/such/folder/page.html"),
        (["--model", "absent.ply"], "no such file"),
    ],
)
def test_a_report_that_cannot_be_is_one_message(made, tmp_path, capsys, options, message):
    lost = shutil.copytree(made, tmp_path / "lost", ignore=shutil.ignore_patterns("places.json"))
    assert report(lost, *options) == 2
    printed = capsys.readouterr()
    assert message in flat(printed.err) and "Traceback" not in printed.err


def test_a_second_certification_of_the_same_photos_is_reported(place, tmp_path, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    assert certify(place, first, *EVERY_THIRD) == 0
    assert certify(place, second, *EVERY_THIRD, "--predictor", "none") == 0
    told = "These 12 photos calibrated 1 earlier certificate; this is the 2nd."
    assert told in flat(capsys.readouterr().out)
    assert cli.main(["verify", str(second)]) == 0
    said = flat(capsys.readouterr().out)
    assert f"photo history warning {told}" in said
    assert "all 19 checks passed" in said
    assert cli.main(["report", str(second), "--alone"]) == 0
    assert told in flat((second / "report.html").read_text())
    capsys.readouterr()
    assert cli.main(["verify", str(first), "--json"]) == 0
    checks = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["photo history"]["warning"] is True
    assert "lists 1 other certificate" in checks["photo history"]["detail"]


def test_an_identical_run_is_no_second_certification(place, tmp_path, capsys):
    seals = []
    for name in ("one", "two"):
        assert certify(place, tmp_path / name, *EVERY_THIRD, "--json") == 0
        assert json.loads(capsys.readouterr().out)["history"] == {"certificates": 0, "photos": 0}
        seals.append(json.loads((tmp_path / name / "certificate.json").read_text())["seal"])
    assert seals[0] == seals[1]
    inputs = ["--data", str(place / "capture"), "--model", str(place / "model.ply")]
    assert cli.main(["verify", str(tmp_path / "one"), *inputs]) == 0
    assert "photo history ok" in flat(capsys.readouterr().out)


def test_some_of_the_photos_count(place, tmp_path, capsys):
    assert certify(place, tmp_path / "third", *EVERY_THIRD) == 0
    assert certify(place, tmp_path / "fourth", "--holdout", "4", "--alpha", "1/4") == 0
    told = "3 of these 9 photos calibrated 1 earlier certificate; this is the 2nd."
    assert told in flat(capsys.readouterr().out)


def test_a_ledger_that_cannot_be_kept_is_said_and_stops_nothing(
    place, tmp_path, capsys, monkeypatch
):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SPLATCERT_STATE", str(tmp_path / "file"))
    assert certify(place, tmp_path / "cert", *EVERY_THIRD) == 0
    said = flat(capsys.readouterr().out)
    assert said.count("The ledger of calibrated photos could not be kept") == 1
    assert cli.main(["verify", str(tmp_path / "cert")]) == 0


@pytest.fixture(scope="module")
def guided(place) -> Path:
    """A certificate of the guided scale with its own guide and corrected pictures."""
    assert certify(place, place / "plain", *EVERY_THIRD, "--scale", "constant") == 0
    learned = place / "guide.json"
    assert cli.main(["learn", "--guide", str(place / "plain"), "-o", str(learned)]) == 0
    options = ["--scale", "guided", "--center", "corrected", "--guide", str(learned)]
    assert certify(place, place / "guided", *EVERY_THIRD, *options) == 0
    return place / "guided"


def test_a_guided_certificate_is_made_verified_and_used(place, guided, tmp_path, capsys):
    record = json.loads((guided / "certificate.json").read_text())
    assert record["center"] == "corrected" and record["scale"]["needs_photos"]
    assert cli.main(["verify", str(guided), "--verbose"]) == 0
    said = flat(capsys.readouterr().out)
    assert "scale guided: every factor follows from the mean of its view's scale" in said
    assert "unknown origin" in said
    render = ["render", str(guided), "--cameras", "held-out", "-o", str(tmp_path / "out")]
    assert cli.main([*render, "--no-film"]) == 0


def test_a_guided_certificate_refuses_changed_photos_by_name(place, guided, tmp_path, capsys):
    copy = tmp_path / "place"
    shutil.copytree(place, copy)
    photo = copy / "capture/images" / NAMES[1]
    Image.open(photo).transpose(Image.Transpose.FLIP_TOP_BOTTOM).save(photo)
    render = ["render", str(copy / "guided"), "--cameras", "held-out", "-o", str(tmp_path / "out")]
    assert cli.main(render) == 2
    assert f"1 of 24 training photos have changed: images/{NAMES[1]}" in flat(
        capsys.readouterr().err
    )


@pytest.mark.parametrize("option", [["--center", "corrected"], ["--guide", "guide.json"]])
def test_options_of_the_guided_scale_are_refused_with_another(place, tmp_path, capsys, option):
    assert certify(place, tmp_path / "cert", *EVERY_THIRD, "--scale", "paper", *option) == 2
    assert "requires --scale guided" in capsys.readouterr().err


def test_a_guide_is_learned_only_where_the_photos_are(made, tmp_path, capsys):
    alone = tmp_path / "alone" / "cert"
    shutil.copytree(made, alone)
    out = ["-o", str(tmp_path / "guide.json")]
    assert cli.main(["learn", "--guide", str(alone), *out]) == 2
    assert "are not in the folder beside it" in flat(capsys.readouterr().err)
    assert cli.main(["learn", "--guide", str(made), "--splits", "20", *out]) == 2
    assert "--views is the only option" in flat(capsys.readouterr().err)


def test_a_guide_of_held_out_views_is_refused_for_its_own_capture(place, guided, tmp_path, capsys):
    learned = tmp_path / "guide.json"
    options = ["--views", "held-out", "-o", str(learned)]
    assert cli.main(["learn", "--guide", str(place / "plain"), *options]) == 0
    again = ["--scale", "guided", "--guide", str(learned)]
    assert certify(place, tmp_path / "cert", *EVERY_THIRD, *again) == 2
    assert "learned from labels of 12 calibration views" in capsys.readouterr().err
