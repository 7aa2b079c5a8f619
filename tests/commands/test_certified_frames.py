# SPDX-License-Identifier: Apache-2.0
"""`splatcert render CERT`: the files hold what the certificate predicts, and a film plays."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certified_capture import HELD_OUT
from splatcert import cli, load_certificate, load_splats
from splatcert.commands.certificates.render import Render
from splatcert.frames import film
from splatcert.report.colours import WidthScale
from splatcert.scene.readers.camera_files import write_cameras
from splatcert.storage.png import to_pixels
from waiting import PATIENCE, until

STEM = Path(HELD_OUT[2]).stem


def render(certified: Path, out: Path, *options: str) -> int:
    return cli.main(["render", str(certified), "-o", str(out), *options])


@pytest.fixture(scope="module")
def views(certified, tmp_path_factory) -> Path:
    """The held-out views, rendered; not to be changed."""
    out = tmp_path_factory.mktemp("frames") / "out"
    assert render(certified, out) == 0
    return out


@pytest.fixture(scope="module")
def boxes(certified):
    certificate = load_certificate(certified, load_splats(certified.parent / "model.ply"))
    record = next(v for v in certificate.record.calibration if v.name == HELD_OUT[2])
    return certificate.predict(record.camera), WidthScale.of(certificate)


def test_float_maps_are_the_boxes_to_the_bit(views, boxes):
    maps = np.load(views / f"maps/{STEM}.npz")
    expected, _ = boxes
    for name, tensor in (
        ("rgb", expected.center),
        ("lower", expected.lower),
        ("upper", expected.upper),
        ("half_width", expected.half_width),
    ):
        assert maps[name].dtype == np.float32
        np.testing.assert_array_equal(maps[name], tensor.numpy())


def test_pictures_show_them(views, boxes):
    expected, scale = boxes

    def picture(kind):
        return np.asarray(Image.open(views / kind / f"{STEM}.png"))

    np.testing.assert_array_equal(picture("rgb"), to_pixels(expected.center.numpy()))
    np.testing.assert_array_equal(picture("lower"), to_pixels(expected.lower.numpy()))
    shown = scale.colours(expected.half_width.numpy())
    np.testing.assert_array_equal(picture("half_width"), shown)


def test_the_table_has_a_row_for_each_frame(views, boxes):
    with (views / "frames.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == HELD_OUT
    row, (expected, _) = rows[2], boxes
    assert float(row["view_factor"]) == expected.view_factor
    assert float(row["threshold"]) == expected.threshold
    assert float(row["mean_half_width"]) == pytest.approx(float(expected.half_width.mean()))
    assert row["support"] == "within"  # a calibration view is like itself
    assert json.loads((views / "frames.json").read_text())[2]["files"]["rgb"] == f"rgb/{STEM}.png"


def test_the_film_is_h264_that_browsers_play(views):
    av = pytest.importorskip("av", reason="PyAV is not installed: pip install splatcert[media]")
    with av.open(str(views / "film.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert stream.width % 2 == stream.height % 2 == 0
        first, *rest = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(rest) == len(HELD_OUT) - 1
    rows = json.loads((views / "frames.json").read_text())
    sheet = film.Film(views, rows, WidthScale(255)).frame(rows[0])
    panel = (slice(0, 200), slice(0, 320))
    assert np.abs(first[panel].astype(int) - sheet[panel]).mean() < 8  # render, left


def test_a_stopped_rendering_goes_on(certified, tmp_path, monkeypatch, capsys):
    out, made = tmp_path / "out", []
    from splatcert.frames.writer import CertifiedFrames

    write = CertifiedFrames.write

    def two(self, *arguments):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(arguments[1])
        return write(self, *arguments)

    monkeypatch.setattr(CertifiedFrames, "write", two)
    assert render(certified, out, "--no-film") == 130
    assert "same command again to resume" in capsys.readouterr().err
    monkeypatch.setattr(CertifiedFrames, "write", write)
    (out / f"rgb/{Path(made[0]).stem}.png").unlink()  # lost, so made again
    assert render(certified, out, "--no-film") == 0
    assert "1 were already finished" in capsys.readouterr().out
    assert render(certified, out, "--no-film") == 0
    assert f"{len(HELD_OUT)} were already finished" in capsys.readouterr().out


LONG = ("--cameras", "orbit", "--seconds", "600")  # a path of 18,000 frames
PRESSED_WHILE_A_KERNEL_TAKES_AN_ARRAY = """
import signal, sys, torch
from pathlib import Path
from splatcert.cli import run

hand_over, frames = torch.Tensor.__dlpack__, Path(sys.argv[-1]) / ".frames.jsonl"

def pressed(tensor, **options):
    torch.Tensor.__dlpack__ = pressed if (early := not frames.is_file()) else hand_over
    early or signal.raise_signal(signal.SIGINT)
    return hand_over(tensor, **options)

torch.Tensor.__dlpack__ = pressed
sys.exit(run())
"""


def frames_before_the_end(words: list[str], out: Path, press: bool = False) -> int:
    """Frames that a rendering finished before Ctrl-C ended it; this process may press it."""
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as command:
        try:
            until((out / ".frames.jsonl").is_file)
            if press:
                command.send_signal(signal.SIGINT)
            _, said = command.communicate(timeout=PATIENCE)
        finally:
            command.kill()
    assert command.returncode == 130
    assert "interrupted. Finished frames are kept" in said and "Traceback" not in said
    return (out / ".frames.jsonl").read_text().count('"key"')


def test_ctrl_c_ends_a_rendering_between_two_frames(certified, tmp_path):
    """As from a keyboard, long before all frames are done."""
    out = tmp_path / "out"
    words = ["-m", "splatcert.cli", "render", str(certified), *LONG, "-o", str(out)]
    assert frames_before_the_end(words, out, press=True) < 2_000


def test_ctrl_c_is_not_lost_while_a_kernel_takes_an_array(certified, tmp_path):
    """nanobind discards what `__dlpack__` raises, and goes on."""
    out = tmp_path / "out"
    script = ["-c", PRESSED_WHILE_A_KERNEL_TAKES_AN_ARRAY]
    words = [*script, "render", str(certified), *LONG, "-o", str(out)]
    assert frames_before_the_end(words, out) == 2  # pressed during the second


def test_a_film_prints_the_scope_of_the_guarantee(certified, tmp_path, capsys):
    asked = ("--cameras", "orbit", "--seconds", "0.1")
    assert render(certified, tmp_path / "out", *asked) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Guarantee None for a camera path: this certificate is about single views." in said


@pytest.mark.parametrize("path", ["orbit", "spline"])
def test_paths_become_films(certified, tmp_path, path, capsys):
    out = tmp_path / "out"
    assert render(certified, out, "--cameras", path, "--seconds", "0.2", "--json") == 0
    known = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in known["frames"]] == [f"{path}_{k:04d}" for k in range(6)]
    assert known["film"].endswith("film.mp4") and not (out / "maps").exists()


def test_cameras_of_files_and_their_size(certified, tmp_path, capsys):
    certificate = load_certificate(certified)
    large = certificate.record.calibration[0].camera.resized(120, 80)
    write_cameras(tmp_path, {"a/one.png": large})
    for file in ("cameras.json", "sparse/0", "sparse/0/images.txt"):
        out = tmp_path / "out" / file
        assert render(certified, out, "--cameras", str(tmp_path / file), "--json") == 0
        row = json.loads(capsys.readouterr().out)["frames"][0]
        assert (row["width"], row["support"]) == (60, "within")  # as it was certified
    options = ["--cameras", str(tmp_path / "cameras.json"), "--resolution", "1/1", "--json"]
    assert render(certified, tmp_path / "large", *options) == 0
    row = json.loads(capsys.readouterr().out)["frames"][0]
    assert row["support"] == "out" and "120 x 80 pixels" in row["reasons"][0]


def test_exr_has_a_layer_for_each_map(certified, boxes, tmp_path):
    openexr = pytest.importorskip("OpenEXR", reason="OpenEXR is not installed: splatcert[media]")
    assert render(certified, tmp_path / "out", "--maps", "exr", "--no-film") == 0
    with openexr.File(str(tmp_path / f"out/maps/{STEM}.exr"), separate_channels=True) as file:
        channels = {name: channel.pixels for name, channel in file.channels().items()}
    np.testing.assert_array_equal(channels["half_width.Y"], boxes[0].half_width.numpy())
    np.testing.assert_array_equal(channels["R"], boxes[0].center[..., 0].numpy())
    np.testing.assert_array_equal(channels["upper.B"], boxes[0].upper[..., 2].numpy())


def test_without_the_encoder_all_but_the_film_is_written(certified, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(film, "can_film", lambda: False)
    assert render(certified, tmp_path / "out") == 0
    assert "PyAV is not installed" in capsys.readouterr().out
    assert (tmp_path / "out/frames.csv").is_file()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--background", "0", "0", "0"], "fixes its background"),
        (["--cameras", "nowhere.json"], "no such file"),
        (["--cameras", "orbti"], "orbti: no such file or folder. Did you mean orbit?"),
        (["--model", "nowhere.ply"], "nowhere.ply"),
    ],
)
def test_bad_options_leave_no_folder(certified, tmp_path, options, named, capsys):
    assert render(certified, tmp_path / "out", *options) == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_certificate_without_its_model_says_what_to_give(certified, tmp_path, capsys):
    alone = shutil.copytree(certified, tmp_path / "elsewhere/cert")
    assert render(alone, tmp_path / "out") == 2
    assert "400 Gaussians): --model MODEL" in capsys.readouterr().err
    model = str(certified.parent / "model.ply")
    assert render(alone, tmp_path / "out", "--model", model, "--no-film") == 0


def test_a_stopped_rendering_has_something_to_say():
    assert Render.interrupted


def test_the_scale_holds_three_usual_half_widths(boxes, certified):
    _, scale = boxes
    usual = np.median(load_certificate(certified).usual_half_widths)
    assert 3 * usual <= scale.end < 2 * 3 * usual
    assert [text for _, text in scale.ticks()] == [
        "0",
        f"{scale.top / 2:g}",
        f"{scale.top} or more",
    ]
