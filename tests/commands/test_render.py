# SPDX-License-Identifier: Apache-2.0
"""`splatcert render`: which views, where, and the pixels themselves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from splatcert import cli, render
from splatcert.commands.certificates.render import picture_names
from splatcert.errors import InputError
from splatcert.field.fit import one_torch_thread
from splatcert.storage.png import to_pixels


def pictures(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.png"))


def test_held_out_views_are_rendered_as_the_api_renders_them(
    model, capture, cameras, splats, tmp_path
):
    out = tmp_path / "out"
    assert cli.main(["render", str(model), "--data", str(capture), "-o", str(out)]) == 0
    assert pictures(out) == ["images/00.png", "images/08.png"]
    written = np.asarray(Image.open(out / "images/08.png"))
    expected = render(splats, cameras["images/08.png"]).rgb.numpy()
    np.testing.assert_array_equal(written, to_pixels(expected))


@pytest.mark.parametrize(("asked", "count"), [("held-out", 2), ("training", 7), ("all", 9)])
def test_the_views_asked_for(model, capture, tmp_path, asked, count):
    out = tmp_path / "out"
    options = ["--cameras", asked, "--backend", "reference"]
    assert cli.main(["render", str(model), "--data", str(capture), "-o", str(out), *options]) == 0
    assert len(pictures(out)) == count


def test_a_run_is_rendered_at_the_photos_it_kept_out(model, capture, cameras, tmp_path, capsys):
    run, out = tmp_path / "run", tmp_path / "out"
    run.mkdir()
    shutil.copy(model, run / "splats.ply")
    kept_out = ["images/03.png", "images/07.png"]
    request = {
        "training_views": sorted({*cameras} - {*kept_out}),
        "held_out_views": kept_out,
        "sizes": [[24, 16]],
        "config": {"background": [0.0, 0.5, 1.0]},
    }
    (run / "train.json").write_text(json.dumps({"request": request, "result": {"psnr": 20}}))
    assert cli.main(["render", str(run), "--data", str(capture), "-o", str(out)]) == 0
    assert pictures(out) == kept_out
    assert Image.open(out / kept_out[0]).size == (24, 16)
    assert "0 0.5 1, from the training run" in capsys.readouterr().out


def test_cameras_of_a_list_see_the_same(model, camera_list, cameras, splats, tmp_path):
    out = tmp_path / "out"
    assert cli.main(["render", str(model), "--cameras", str(camera_list), "-o", str(out)]) == 0
    assert len(pictures(out)) == len(cameras)
    written = np.asarray(Image.open(out / "03.png")).astype(int)
    expected = to_pixels(render(splats, cameras["images/03.png"]).rgb.numpy()).astype(int)
    assert np.abs(written - expected).max() <= 1


def test_resolution_and_background(model, capture, tmp_path, capsys):
    out = tmp_path / "out"
    options = ["--resolution", "1/2", "--background", "1", "0.5", "0"]
    assert cli.main(["render", str(model), "--data", str(capture), "-o", str(out), *options]) == 0
    assert Image.open(out / "images/00.png").size == (24, 16)
    assert "1 0.5 0, as requested" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--fps", "0"], "--fps must be 1 to 240"),
        (["--seconds", "-1", "--cameras", "orbit"], "--seconds must be above 0"),
        (["--data", "a", "--background", "0", "0", "2"], "three numbers from 0 to 1"),
    ],
)
def test_options_that_do_not_fit_together(options, named, capsys):
    assert cli.main(["render", "model.ply", "-o", "out", *options]) == 2
    assert named in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_model_alone_has_no_cameras_and_no_boxes(model, tmp_path, capsys):
    out = ["-o", str(tmp_path / "out")]
    assert cli.main(["render", str(model), *out]) == 2
    assert "--cameras held-out requires a capture" in capsys.readouterr().err
    assert cli.main(["render", str(model), *out, "--maps", "npz"]) == 2
    assert "go with a certificate" in capsys.readouterr().err


def test_a_wrong_path_leaves_no_output_folder(model, tmp_path, capsys):
    out = tmp_path / "out"
    missing = str(tmp_path / "nowhere")
    assert cli.main(["render", str(model), "--data", missing, "-o", str(out)]) == 2
    assert missing in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "is not valid JSON"),
        ("{}", "is not a list of cameras"),
        ("[]", "is not a list of cameras"),
        ('[{"img_name": "a"}]', "camera 0 has no width, height"),
    ],
)
def test_a_camera_list_that_is_none(model, tmp_path, capsys, text, named):
    path = tmp_path / "cameras.json"
    path.write_text(text)
    out = tmp_path / "out"
    assert cli.main(["render", str(model), "--cameras", str(path), "-o", str(out)]) == 2
    assert named in capsys.readouterr().err


def test_picture_names_stay_apart_and_inside():
    assert picture_names(["a/1.jpg", "2.png"]) == {"a/1.jpg": "a/1", "2.png": "2"}
    assert picture_names(["1.jpg", "1.png"]) == {"1.jpg": "1.jpg", "1.png": "1.png"}
    for name in ("../1.jpg", "/1.jpg", "a/../../1.jpg"):
        with pytest.raises(InputError, match="outside the output folder"):
            picture_names([name])


def test_a_certificate_is_rendered_with_another_back_end_which_is_said(certified, tmp_path, capsys):
    out = tmp_path / "out"
    asked = ["render", str(certified)]
    asked += ["-o", str(out), "--no-film", "--maps", "none", "--resolution", "1/2"]
    assert cli.main([*asked, "--json"]) == 0
    own = json.loads(capsys.readouterr().out)["frames"]
    with one_torch_thread():
        assert cli.main([*asked, "--backend", "reference"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Back end reference, certified with cpu: scores bounded by both renders" in told
    assert "were already finished" not in told  # boxes of another back end are other frames
    assert cli.main([*asked, "--backend", "auto", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["frames"] == own
