# SPDX-License-Identifier: Apache-2.0
"""New photos find their poses, wrong ones are refused by name, and the capture stays as it was."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from textured_room import FOCAL, SIZE, save_photos, viewpoints

from scene_writers import Colmap, write_transforms
from splatcert.cli import main, parse
from splatcert.registration.verdict import CELLS, ERROR, INLIERS, RATIO, TURN
from splatcert.scene.load import load_scene
from splatcert.scene.readers.colmap import read_colmap

CAMERA = [FOCAL, FOCAL, SIZE[0] / 2, SIZE[1] / 2]


def named(prefix: str, count: int, seed: int) -> dict:
    return {f"{prefix}{k:02d}.png": pose for k, pose in enumerate(viewpoints(count, seed))}


@pytest.fixture(scope="session")
def room(tmp_path_factory):
    """A capture, three new photos of it, and one of another place."""
    root = tmp_path_factory.mktemp("room")
    known, new = named("known", 12, 0), named("new", 3, 1)
    save_photos(root / "data/images", known)
    save_photos(root / "new", new)
    save_photos(root / "new", named("elsewhere", 1, 2), seed=7)
    images = [
        (k, pose.quaternion, pose.translation, 1, name, [(1.0, 2.0, -1)])
        for k, (name, pose) in enumerate(known.items(), 1)
    ]
    Colmap([(1, "PINHOLE", *SIZE, CAMERA)], images, []).write(root / "data/sparse/0", "bin")
    return root, known, new


@pytest.fixture(scope="session")
def registered(room, tmp_path_factory):
    pytest.importorskip("pycolmap", reason="the extra splatcert[register] is not installed")
    out = tmp_path_factory.mktemp("registered") / "data2"
    arguments = ["register", str(room[0] / "data"), str(room[0] / "new"), "-o", str(out)]
    assert main([*arguments, "--threads", "2"]) == 0
    return out, arguments


def offsets(root, truth) -> list[tuple[float, float]]:
    """Degrees and distance between the poses of a capture and the true ones."""
    found = {image.name: image.world_to_camera for image in read_colmap(root / "sparse/0").images}
    rows = []
    for name, pose in truth.items():
        turn = found[name][:3, :3] @ pose.rotation
        angle = np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1)))
        centre = -found[name][:3, :3].T @ found[name][:3, 3]
        rows.append((angle, float(np.linalg.norm(centre - pose.centre))))
    return rows


def test_new_photos_get_their_true_poses_and_others_are_refused(room, registered):
    out, _ = registered
    _, known, new = room
    assert all(angle < 0.2 and apart < 0.02 for angle, apart in offsets(out, new))
    record = json.loads((out / "registered.json").read_text())
    assert [photo["name"] for photo in record["photos"]] == sorted(new)
    assert {photo["camera"] for photo in record["photos"]} == {"shared"}
    scene = load_scene(out)
    assert set(scene.held_out.names) == set(new) and set(scene.training.names) == set(known)
    assert scene.details["split"] == "3 photos registered afterwards"


def test_the_capture_is_unchanged_bit_for_bit(room, registered):
    out, _ = registered
    before, after = ((where / "sparse/0") for where in (room[0] / "data", out))
    assert (after / "cameras.bin").read_bytes() == (before / "cameras.bin").read_bytes()
    assert (after / "points3D.bin").read_bytes() == (before / "points3D.bin").read_bytes()
    old = (before / "images.bin").read_bytes()[8:]
    assert (after / "images.bin").read_bytes()[8:].startswith(old)
    for path in (room[0] / "data/images").iterdir():
        assert (out / "images" / path.name).read_bytes() == path.read_bytes()


def test_a_second_run_finds_its_features_and_gives_the_same(registered, capsys, monkeypatch):
    out, arguments = registered
    from splatcert.registration.features import FeatureDatabase

    def again(*_):
        raise AssertionError("features were found again")

    monkeypatch.setattr(FeatureDatabase, "_extract", again)
    before = (out / "sparse/0/images.bin").read_bytes()
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["registered"], told["refused"], told["known"]) == (3, 1, 12)
    refused = [photo for photo in told["photos"] if not photo["registered"]]
    assert refused[0]["name"] == "elsewhere00.png" and refused[0]["doubts"]
    assert (out / "sparse/0/images.bin").read_bytes() == before


@pytest.mark.parametrize("stage", ["features", "matches"])
def test_an_interrupted_run_resumes_to_the_same_bits(room, registered, tmp_path, stage):
    from splatcert.registration.register import register

    def interrupt(label: str, done: int, _of: int, _note: str = "", /) -> None:
        if label == stage and done > 0:
            raise KeyboardInterrupt

    asked = room[0] / "data", room[0] / "new", tmp_path / "data2"
    with pytest.raises(KeyboardInterrupt):
        register(*asked, threads=2, on=interrupt)
    assert not (tmp_path / "data2/registered.json").exists()
    register(*asked, threads=2)
    for name in ("sparse/0/images.bin", "sparse/0/cameras.bin", "registered.json"):
        assert (tmp_path / "data2" / name).read_bytes() == (registered[0] / name).read_bytes()


def test_poses_from_a_transforms_file_work_as_well(room, registered, tmp_path, capsys):
    root, known, new = room
    meta = {"fl_x": FOCAL, "fl_y": FOCAL, "cx": CAMERA[2], "cy": CAMERA[3]}
    meta |= {"w": SIZE[0], "h": SIZE[1]}
    names = [f"images/{name}" for name in known]
    write_transforms(tmp_path, list(known.values()), SIZE, meta=meta, names=names, photos=False)
    shutil.copytree(root / "data/images", tmp_path / "images")
    out = tmp_path / "data2"
    new_folder = tmp_path / "new"
    new_folder.mkdir()
    shutil.copy(root / "new/new00.png", new_folder)
    assert main(["register", str(tmp_path), str(new_folder), "-o", str(out)]) == 0
    assert all(a < 0.2 and d < 0.02 for a, d in offsets(out, {"new00.png": new["new00.png"]}))
    scene, before = load_scene(out), load_scene(tmp_path, holdout=None)
    assert set(scene.training.names) == set(before.training.names)
    for view in before.training:
        after = scene.training[view.name].camera.world_to_camera
        assert np.abs(after - view.camera.world_to_camera).max() < 1e-12


def test_a_camera_of_its_own_is_estimated(room, registered, tmp_path, capsys):
    root, _, _ = room
    zoomed = named("zoomed", 3, 3)
    save_photos(tmp_path / "new", zoomed, size=(400, 240), focal=420.0)
    out = tmp_path / "out"
    assert main(["register", str(root / "data"), str(tmp_path / "new"), "-o", str(out)]) == 0
    assert "own" in capsys.readouterr().out
    model = read_colmap(out / "sparse/0")
    (added,) = (camera for key, camera in model.cameras.items() if key > 1)
    assert added.params[0] == pytest.approx(420, rel=0.02)
    assert all(angle < 0.5 and apart < 0.1 for angle, apart in offsets(out, zoomed))


def test_copies_and_wrong_folders_are_refused(room, registered, tmp_path, capsys):
    root, _, _ = room
    data, out = str(root / "data"), str(tmp_path / "out")
    shutil.copytree(root / "new", tmp_path / "copies")
    shutil.copy(root / "data/images/known00.png", tmp_path / "copies/holiday.png")
    (tmp_path / "none").mkdir()
    taken = tmp_path / "taken"
    shutil.copytree(root / "data", taken)
    cases = {
        (data, str(tmp_path / "copies"), out): "holiday.png is known00.png of the capture",
        (data, str(tmp_path / "none"), out): "contains no photos",
        (data, str(root / "new"), str(taken)): "already contains",
        (data, str(root / "new"), data): "is part of the capture",
        (data, str(root / "new"), f"{data}/images/out"): "is part of the capture",
        (data, str(root / "new"), out, "--sparse", "3"): "no COLMAP model 3",
        (str(registered[0]), str(root / "new"), out): "already contains 3 registered photos",
        (data, str(root / "new"), out, "--threads", "-1"): "--threads must be 0 or more",
    }
    for (first, second, output, *more), message in cases.items():
        assert main(["register", first, second, "-o", output, *more]) == 2
        told = capsys.readouterr().err
        assert message in told and told.count("\n") <= 5


def test_a_capture_with_missing_photos_needs_them_left_out(room, registered, tmp_path, capsys):
    root, known, new = room
    shutil.copytree(root / "data", tmp_path / "data")
    (tmp_path / "data/images/known03.png").unlink()
    (tmp_path / "new").mkdir()
    shutil.copy(root / "new/new00.png", tmp_path / "new")
    out = tmp_path / "out"
    arguments = ["register", str(tmp_path / "data"), str(tmp_path / "new"), "-o", str(out)]
    assert main(arguments) == 2
    assert "--skip-missing" in capsys.readouterr().err
    assert main([*arguments, "--skip-missing"]) == 0
    assert "MODEL -o CERT --skip-missing" in " ".join(capsys.readouterr().out.split())
    assert all(a < 0.2 and d < 0.02 for a, d in offsets(out, {"new00.png": new["new00.png"]}))
    scene = load_scene(out, skip_missing=True)
    assert len(scene.training) == len(known) - 1 and scene.held_out.names == ("new00.png",)


def test_photos_of_another_place_alone_are_an_error(room, registered, tmp_path, capsys):
    root, _, _ = room
    (tmp_path / "new").mkdir()
    shutil.copy(root / "new/elsewhere00.png", tmp_path / "new")
    arguments = ["register", str(root / "data"), str(tmp_path / "new")]
    assert main([*arguments, "-o", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert "elsewhere00.png" in told.out and "could be registered" in told.err
    assert not (tmp_path / "out/sparse").exists()


def test_the_page_about_it_names_commands_and_options_that_exist(capsys):
    page = (Path(__file__).parents[2] / "docs/new-photos.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith("splatcert ")]
    commands = [type(parse(shlex.split(line)[1:])).__name__ for line in lines]
    assert commands == ["Register", "Certify"]
    limits = (INLIERS, f"{RATIO:.0%}".replace("%", " %"), f"{ERROR:.1%}".replace("%", " %"))
    table = page.partition("| criterion |")[2].partition("## ")[0]
    assert all(str(limit) in table for limit in (*limits, CELLS, f"{TURN}°", "1 % of the extent"))


def test_the_figures_of_the_page_are_those_that_were_measured():
    root = Path(__file__).parents[2]
    page = (root / "docs/new-photos.md").read_text(encoding="utf-8")
    scenes = json.loads((root / "benchmarks/results/register.json").read_text())["scenes"]
    assert scenes
    for one in scenes:
        change = one.get("q_change_percent")
        row = (
            f"| {one['scene']} | {one['registered']} of {one['new_photos']} "
            f"| {one['median_degrees']:.3f}° | {one['median_extent_percent']:.3f} % "
            f"| {'not measured' if change is None else f'{change:+.1f} %'} "
            f"| {one['elapsed_seconds']:.0f} s | {one['processor_seconds']:.0f} s |"
        )
        assert row in page and one["elsewhere_refused"]


def test_without_pycolmap_the_message_names_the_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycolmap", None)
    assert main(["register", str(tmp_path), str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    assert "pip install 'splatcert[register]'" in capsys.readouterr().err
