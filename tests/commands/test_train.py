# SPDX-License-Identifier: Apache-2.0
"""`splatcert train` as a person meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from splatcert.capture import open_capture
from splatcert.cli import main
from splatcert.commands import CaptureToTrain
from splatcert.raster.render import render
from splatcert.scene.load import load_scene
from splatcert.storage.png import to_pixels
from splatcert_bench.synthetic.scenes import made_splats
from waiting import until

FAST = ["--iterations", "40", "--sh-degree", "1", "--random-points", "300"]


@pytest.fixture
def photographs(capture: Path, cameras) -> Path:
    """The made capture with pictures of something."""
    truth = made_splats(2_000, sh_degree=1)
    for name, camera in cameras.items():
        Image.fromarray(to_pixels(render(truth, camera).rgb.numpy())).save(capture / name)
    return capture


def test_it_trains_measures_and_says_so(photographs, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", str(photographs), "-o", str(run), *FAST, "--preview-every", "20"]) == 0
    said = capsys.readouterr()
    assert "held-out views: PSNR" in said.out and str(run / "splats.ply") in said.out
    metrics = json.loads((run / "metrics.json").read_text())
    rule = "one random photo of every 8 in name order held out (seed 0)"
    assert rule in " ".join(said.out.split()) and metrics["split"] == rule
    expected = load_scene(photographs, holdout="random8").held_out.names
    assert set(metrics["per_view"]) == set(expected) and metrics["gaussians"] > 0
    assert metrics["holdout_check"] is None or "p_value" in metrics["holdout_check"]
    assert json.loads((run / "train.json").read_text())["split"] == rule
    assert Image.open(run / "preview.png").size == (48, 32)
    assert json.loads((run / "train.json").read_text())["result"]["gaussians"] > 0
    left = {p.name for p in run.iterdir()}
    assert left == {".lock", "train.json", "splats.ply", "metrics.json", "preview.png"}

    before = (run / "splats.ply").read_bytes()
    assert main(["train", str(photographs), "-o", str(run), *FAST]) == 0
    assert "already finished" in capsys.readouterr().out
    assert (run / "splats.ply").read_bytes() == before
    assert main(["train", str(photographs), "-o", str(run), *FAST, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == [{"path": str(run), **metrics}]


def test_a_random_hold_out_is_what_certify_calibrates_on(photographs, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", str(photographs), "-o", str(run), *FAST, "--holdout", "random2"]) == 0
    assert "Hold-out      No sign of a difference" in capsys.readouterr().out
    expected = load_scene(photographs, holdout="random2").held_out.names
    request = json.loads((run / "train.json").read_text())["request"]
    assert tuple(request["held_out_views"]) == expected
    for asked in ("auto", "random2"):
        capture = open_capture(photographs, run, holdout=asked)
        assert capture.scene.held_out.names == expected and capture.unseen_by == "model"


def test_every_8th_photo_stays_for_published_comparisons(photographs, tmp_path):
    run = tmp_path / "run"
    assert main(["train", str(photographs), "-o", str(run), *FAST, "--holdout", "8"]) == 0
    expected = load_scene(photographs, holdout=8).held_out.names
    request = json.loads((run / "train.json").read_text())["request"]
    assert tuple(request["held_out_views"]) == expected
    assert open_capture(photographs, run).scene.held_out.names == expected


@pytest.mark.parametrize("photos", [1, 2, 5])
def test_a_capture_of_a_few_photos_is_trained_too(photographs, photos):
    content = json.loads((photographs / "transforms.json").read_text())
    content["frames"] = content["frames"][:photos]
    (photographs / "transforms.json").write_text(json.dumps(content))
    scene = CaptureToTrain().load(photographs)
    assert len(scene.training) >= 1 and len(scene.held_out) == (photos > 1)


def test_other_settings_in_the_same_folder_are_refused(photographs, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", str(photographs), "-o", str(run), *FAST]) == 0
    assert main(["train", str(photographs), "-o", str(run), *FAST, "--seed", "5"]) == 2
    assert "different settings: seed" in capsys.readouterr().err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_members_have_folders_and_seeds_of_their_own(photographs, tmp_path, capsys, workers):
    run = tmp_path / "ensemble"
    arguments = ["train", str(photographs), "-o", str(run), *FAST, "--members", "2"]
    assert main([*arguments, "--workers", workers]) == 0
    files = [run / f"member_{k:02d}" / "splats.ply" for k in range(2)]
    assert files[0].read_bytes() != files[1].read_bytes()
    assert "member_01" in capsys.readouterr().out


def test_a_corrupt_photograph_in_the_middle_is_named(photographs, tmp_path, capsys):
    victim = sorted((photographs / "images").iterdir())[3]
    content = victim.read_bytes()
    victim.write_bytes(content[: len(content) // 2])
    assert main(["train", str(photographs), "-o", str(tmp_path / "run"), *FAST]) == 2
    said = capsys.readouterr().err
    assert victim.name in said and "Traceback" not in said


def test_a_folder_that_cannot_be_made_is_refused(photographs, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["train", str(photographs), "-o", str(tmp_path / "file" / "run"), *FAST]) == 2
    assert "cannot use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [(["--members", "0"], "--members must be at least 1"), (["--iterations", "0"], "iterations")],
)
def test_options_out_of_range_are_refused(photographs, tmp_path, capsys, option, message):
    arguments = ["train", str(photographs), "-o", str(tmp_path / "run"), *option]
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(photographs, tmp_path):
    settings = [
        *FAST[2:],
        "--iterations",
        "400",
        "--checkpoint-every",
        "30",
        "--density",
        "vanilla",
    ]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(["train", str(photographs), "-o", str(whole), *settings]) == 0
    command = [sys.executable, "-m", "splatcert.cli", "train", str(photographs), "-o", str(cut)]
    environment = os.environ | {"SPLATCERT_NUM_THREADS": "1"}
    for _ in range(3):
        child = subprocess.Popen(
            [*command, *settings],
            env=environment,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        before = _stamp(cut)
        until(
            lambda before=before, child=child: _stamp(cut) != before or child.poll() is not None,
            every=0.01,
        )
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert main(["train", str(photographs), "-o", str(cut), *settings]) == 0
    assert (cut / "splats.ply").read_bytes() == (whole / "splats.ply").read_bytes()
    assert not list(cut.glob("*.part")) and not list(cut.glob(".*.part"))


def _stamp(run: Path) -> float:
    """When the last checkpoint was written."""
    checkpoint = run / "checkpoint.safetensors"
    return checkpoint.stat().st_mtime if checkpoint.exists() else 0.0
