# SPDX-License-Identifier: Apache-2.0
"""Captures as they lie around, from `inspect` to `verify`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from scene_writers import edit_json
from splatcert.certificate.store import read_certificate, read_content
from splatcert.cli import main
from splatcert.raster.render import render
from splatcert.scene.readers.colmap_text import text_model
from splatcert.splats.account import account_of
from splatcert.splats.files import save_ply
from splatcert.storage.png import to_pixels
from splatcert_bench.synthetic.scenes import made_splats

FAST = ["--iterations", "40", "--sh-degree", "1", "--random-points", "300"]
FIT = ["--predictor", "none", "--splits", "5", "--field.max-steps", "3"]


@pytest.fixture
def pictures(capture: Path, cameras) -> Path:
    """The made capture with pictures of something."""
    truth = made_splats(2_000, sh_degree=1)
    for name, camera in cameras.items():
        Image.fromarray(to_pixels(render(truth, camera).rgb.numpy())).save(capture / name)
    return capture


@pytest.fixture
def fox(pictures: Path) -> Path:
    """Like instant-ngp's fox: a third more frames than photos."""

    def add(content: dict) -> None:
        more = content["frames"][::3]
        content["frames"] += [{**f, "file_path": f"images/9{k}.jpg"} for k, f in enumerate(more)]

    edit_json(pictures / "transforms.json", add)
    return pictures


def test_frames_without_a_photo_are_left_out_from_training_to_verification(fox, tmp_path, capsys):
    run, cert = str(tmp_path / "run"), tmp_path / "cert"
    assert main(["train", str(fox), "-o", run, *FAST, "--holdout", "2"]) == 2
    said = capsys.readouterr().err
    assert "training photos are missing" in said and "--skip-missing" in said
    skip = ["--skip-missing"]
    longer = ["--iterations", "200", "--sh-degree", "1", "--random-points", "2000"]
    assert main(["train", str(fox), "-o", run, *longer, "--holdout", "2", *skip]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "4 training, 5 held-out photos" in said
    assert "9 of 9 photos are registered; 3 of 12 poses left out: their photos are missing" in said
    # The run says how it read the capture, so the option need not be repeated.
    assert main(["certify", str(fox), run, "-o", str(cert), *FIT]) == 0
    assert "3 of 12 poses left out" in " ".join(capsys.readouterr().out.split())
    loaded = read_content(cert)[1].scene.loaded
    assert loaded is not None and loaded.skip_missing and loaded.sparse is None
    assert main(["verify", str(cert), "--data", str(fox), "--model", run]) == 0


@pytest.fixture
def models(pictures: Path, cameras) -> Path:
    """The same photos in COLMAP's layout: 3 of them in sparse/0, all in sparse/1."""
    (pictures / "transforms.json").unlink()
    named = {Path(name).name: camera for name, camera in cameras.items()}
    few = dict(list(named.items())[::4])
    for place, chosen in (("sparse/0", few), ("sparse/1", named)):
        (pictures / place).mkdir(parents=True)
        for file, text in text_model(chosen).items():
            (pictures / place / file).write_text(text)
    return pictures


def test_the_model_that_was_certified_is_the_one_that_is_verified(models, tmp_path, capsys):
    save_ply(made_splats(2_000, sh_degree=1), tmp_path / "model.ply")
    data, model, cert = str(models), str(tmp_path / "model.ply"), tmp_path / "cert"
    certify = ["certify", data, model, "-o", str(cert), "--holdout", "2", *FIT]
    assert main(certify) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "9 of 9 photos are registered; model sparse/1 of 2 (not read: sparse/0: 3 photos" in said
    loaded = read_content(cert)[1].scene.loaded
    assert loaded is not None and loaded.sparse == "sparse/1"
    # Whatever the capture gains later, the certified model is read again.
    (models / "sparse/0").rename(models / "sparse/7")
    assert main(["verify", str(cert), "--data", data, "--model", model]) == 0
    capsys.readouterr()
    assert main(["verify", str(cert), "--data", data, "--model", model, "--sparse", "7"]) == 2
    assert "held-out name" in capsys.readouterr().err
    assert main(["verify", str(cert), "--data", data, "--model", model, "--sparse", "3"]) == 2
    assert "has no COLMAP model 3" in capsys.readouterr().err


def test_a_run_says_which_model_it_was_trained_on(models, tmp_path, capsys):
    """Without an option, certify reads what train read, not the largest model."""
    run, cert, larger = tmp_path / "run", tmp_path / "cert", models / "sparse/5"
    shutil.copytree(models / "sparse/1", larger)
    shutil.rmtree(models / "sparse/0")
    longer = ["--iterations", "200", "--sh-degree", "1", "--random-points", "2000"]
    asked = ["--holdout", "2", "--sparse", "5"]
    assert main(["train", str(models), "-o", str(run), *longer, *asked]) == 0
    assert account_of(run).sparse == "sparse/5" and not account_of(run).skip_missing
    assert main(["certify", str(models), str(run), "-o", str(cert), *FIT]) == 0
    loaded = read_content(cert)[1].scene.loaded
    assert loaded is not None and loaded.sparse == "sparse/5"
    assert main(["certify", str(models), str(run), "-o", str(cert), *FIT, "--sparse", "1"]) == 0
    loaded = read_content(cert)[1].scene.loaded
    assert loaded is not None and loaded.sparse == "sparse/1"


def test_a_certificate_of_schema_3_means_the_first_model():
    for schema in (2, 3):
        folder = Path(__file__).parents[1] / f"golden/schema-{schema}/certificate"
        read_certificate(folder)
        content, record = read_content(folder)
        assert content["schema"] == schema and "sparse" not in str(content["scene"])
        if record.scene.loaded is not None:
            assert (record.scene.loaded.sparse, record.scene.loaded.skip_missing) == (
                "first",
                False,
            )


def test_inspect_takes_the_options_of_reading(models, model, capsys):
    assert main(["inspect", str(models), "--sparse", "0", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["photos"] == 3 and known["registered"]["in_folder"] == 9
    (models / "images").rename(models / "images_4")
    assert main(["inspect", str(models)]) == 2
    assert "in images_4: pass --images images_4" in capsys.readouterr().err
    assert main(["inspect", str(models), "--images", "images_4"]) == 0
    assert "9 of 9 photos are registered" in " ".join(capsys.readouterr().out.split())
    for option in (["--images", "images_4"], ["--sparse", "1"], ["--skip-missing"]):
        assert main(["inspect", str(model), *option]) == 2
        assert f"is a model; {option[0]} goes with a capture" in capsys.readouterr().err


def test_inspect_says_when_too_few_photos_are_held_out(capture, capsys):
    assert main(["inspect", str(capture)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 photos held out; alpha = 1/10 requires 9, and even --holdout 2" in said
    assert "would hold out only 5 of 9" in said
    edit_json(
        capture / "transforms.json",
        lambda content: content["frames"].extend(
            {**frame, "file_path": f"images/{k}{n}.png"}
            for k in (1, 2) for n, frame in enumerate(content["frames"][:9])
        ),
    )  # fmt: skip
    for k in (1, 2):
        for n in range(9):
            Image.new("RGB", (48, 32)).save(capture / f"images/{k}{n}.png")
    assert main(["inspect", str(capture)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "4 photos held out; alpha = 1/10 requires 9. Train with --holdout 3, which holds" in said
    assert main(["inspect", str(capture), "--holdout", "3"]) == 0
    said = capsys.readouterr().out
    assert "Calibration" not in said and "18 for training, 9 held out" in said


def test_names_are_held_out_in_every_command(pictures, tmp_path, capsys):
    named = ["--holdout", "images/01.png,images/04.png"]
    run = str(tmp_path / "run")
    assert main(["inspect", str(pictures), *named]) == 0
    assert "2 photos held out by name" in " ".join(capsys.readouterr().out.split())
    assert main(["train", str(pictures), "-o", run, *FAST, *named]) == 0
    save_ply(made_splats(2_000, sh_degree=1), tmp_path / "model.ply")
    model, cert = str(tmp_path / "model.ply"), str(tmp_path / "cert")
    assert main(["certify", str(pictures), model, "-o", cert, *FIT, *named]) == 0
    capsys.readouterr()
    for command in (["inspect"], ["train", "-o", run], ["certify", run, "-o", run]):
        line = [command[0], str(pictures), *command[1:], "--holdout", "images/01.png,images/x.png"]
        assert main(line) == 2
        said = capsys.readouterr().err
        assert "1 of 2 held-out names is not in the dataset: images/x.png" in said
