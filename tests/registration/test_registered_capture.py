# SPDX-License-Identifier: Apache-2.0
"""A capture that records new photos calibrates on exactly these, whatever the trainer's rule."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from certified_capture import made_model, made_photos, made_truth
from scene_writers import reconstruction, write_colmap
from splat_layouts import write_inria_folder
from splatcert import cli
from splatcert.scene.added_photos import AddedPhoto, AddedPhotos, RegisteredError
from splatcert.scene.lens import Lens
from splatcert.scene.load import load_scene, read_photographs
from splatcert.scene.readers.colmap import ColmapCamera, read_colmap
from splatcert.scene.readers.colmap_append import append_model, camera_of, image_of, write_model
from splatcert.scene.split import HoldoutRuleError
from splatcert.splats.account import TrainedOnTheseError, TrainingAccount
from splatcert.splats.unseen import split_unseen
from splatcert.storage.png import save_png, to_pixels
from splatcert.storage.whole import file_hash

NEW = ("photo_02.png", "photo_05.png")


def record(root, names=NEW) -> None:
    photos = [
        AddedPhoto(
            name=name,
            sha256=file_hash(root / "images" / name),
            camera="shared",
            inliers=100,
            error=0.5,
        )
        for name in names
    ]
    AddedPhotos(photos=tuple(photos)).save(root)


@pytest.fixture
def capture(tmp_path):
    write_colmap(tmp_path)
    record(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "account",
    [
        TrainingAccount(),
        TrainingAccount(split="none"),
        TrainingAccount(split=4),
        TrainingAccount(seen=("photo_00.png",), kept_out=("photo_01.png",)),
    ],
)
def test_exactly_the_registered_photos_are_held_out(capture, account):
    scene, by = split_unseen(read_photographs(capture), "auto", account)
    assert scene.held_out.names == NEW and len(scene.training) == 7
    assert by == "registered"
    assert scene.details["split"] == "2 photos registered afterwards"


def test_a_run_that_lists_them_is_believed_first(capture):
    kept = TrainingAccount(seen=("photo_00.png",), kept_out=NEW)
    assert split_unseen(read_photographs(capture), "auto", kept)[1] == "model"
    seen = TrainingAccount(seen=("photo_05.png",), kept_out=())
    with pytest.raises(TrainedOnTheseError, match=r"1 of the 2 held-out photos: photo_05\.png"):
        split_unseen(read_photographs(capture), "auto", seen)


def test_another_hold_out_is_refused(capture):
    with pytest.raises(HoldoutRuleError, match="the 2 that splatcert register added"):
        split_unseen(read_photographs(capture), 4, TrainingAccount())


def test_a_record_that_does_not_match_its_photos_is_refused(capture):
    path = capture / "registered.json"
    good = json.loads(path.read_text())
    shutil.copy(capture / "images/photo_00.png", capture / "images/photo_02.png")
    with pytest.raises(RegisteredError, match=r"1 of 2 registered photos have changed since"):
        load_scene(capture)
    spoilt = {
        "photos that the reconstruction does not have": {
            "photos": [{**good["photos"][0], "name": "gone.png"}]
        },
        "photos must list at least one": {"photos": []},
        "schema 9 is not known": {"schema": 9},
        "16 finite numbers": {"original_to_scene": [1.0]},
        "photos must be a list": {"photos": "all"},
    }
    for message, change in spoilt.items():
        path.write_text(json.dumps({**good, **change}))
        with pytest.raises(RegisteredError, match=message):
            load_scene(capture)


@pytest.mark.parametrize("kind", ["bin", "txt"])
def test_photos_are_added_behind_an_unchanged_reconstruction(tmp_path, kind):
    model, _, _ = reconstruction()
    model.write(tmp_path / "before", kind)
    (tmp_path / "after").mkdir()
    pose = np.eye(4)
    pose[:3, 3] = (1.0, 2.0, 3.0)
    own = ColmapCamera(7, "SIMPLE_RADIAL", 64, 48, (50.0, 32.0, 24.0, 0.01))
    added = [image_of("new.png", 40, 7, pose), image_of("shared.png", 41, 1, pose)]
    append_model(tmp_path / "before", tmp_path / "after", [own], added)
    old = read_colmap(tmp_path / "before", observations=True)
    new = read_colmap(tmp_path / "after", observations=True)
    assert new.cameras == {**old.cameras, 7: own}
    assert [image.name for image in new.images][:2] == ["new.png", "photo_00.png"]
    by_name = {image.name: image for image in new.images}
    for image in old.images:
        same = by_name.pop(image.name)
        assert (same.id, same.camera_id) == (image.id, image.camera_id)
        for part in ("quaternion", "translation", "points2d", "point_ids"):
            assert np.array_equal(getattr(same, part), getattr(image, part))
    assert sorted(by_name) == ["new.png", "shared.png"]
    assert np.allclose(by_name["new.png"].world_to_camera, pose, atol=1e-15)
    assert len(new.points) == len(old.points)


def test_every_lens_survives_as_a_camera():
    grid = {"fx": 50.0, "fy": 51.0, "cx": 30.0, "cy": 25.0, "width": 64, "height": 48}
    models = {
        "PINHOLE": Lens(**grid),
        "OPENCV": Lens(**grid, kind="brown", distortion=(0.1, 0.0, 0.0, 0.0)),
        "FULL_OPENCV": Lens(**grid, kind="brown", distortion=(0.1, 0.0, 0.0, 0.0, 0.2)),
        "OPENCV_FISHEYE": Lens(**grid, kind="fisheye", distortion=(0.1, 0.0, 0.0, 0.0)),
    }
    for model, lens in models.items():
        camera = camera_of(lens, 3)
        assert camera.model == model
        assert camera.params[: 4 + len(lens.distortion)] == (
            50.0,
            51.0,
            30.0,
            25.0,
            *lens.distortion,
        )


def test_a_model_that_has_seen_every_photo_is_certified_on_registered_ones(tmp_path, capsys):
    cameras, photos = made_photos()
    (tmp_path / "data/images").mkdir(parents=True)
    (tmp_path / "data/sparse/0").mkdir(parents=True)
    images, lenses = [], []
    names = {name: f"{index:02d}.png" for index, name in enumerate(cameras)}
    for key, (name, camera) in enumerate(cameras.items(), 1):
        save_png(tmp_path / "data/images" / names[name], to_pixels(photos[name].numpy()))
        grid = {side: getattr(camera, side) for side in ("fx", "fy", "cx", "cy", "width", "height")}
        lenses.append(camera_of(Lens(**grid), key))
        images.append(image_of(names[name], key, key, camera.world_to_camera))
    write_model(tmp_path / "data/sparse/0", lenses, images, None)
    settings = "Namespace(eval=False, sh_degree=1, white_background=False, resolution=-1)"
    write_inria_folder(tmp_path / "model", {7: made_model(made_truth())}, settings)
    data, model, out = (str(tmp_path / name) for name in ("data", "model", "cert"))
    arguments = ["certify", data, model, "-o", out, "--predictor", "none"]
    assert cli.main(arguments) == 2
    assert "splatcert register" in capsys.readouterr().err
    chosen = tuple(names.values())[::3]
    record(tmp_path / "data", chosen)
    assert cli.main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["views"]["calibration"] == len(chosen)
    assert told["scene"]["held_out_by"] == "registered"
    assert told["scene"]["split"] == f"{len(chosen)} photos registered afterwards"
    assert cli.main(["verify", out, "--data", data, "--model", model, "--verbose"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the calibration photos were registered after the capture was made" in said
    assert cli.main(["report", out, "-o", str(tmp_path / "report.html"), "--model", model]) == 0
    assert "registered after the capture was made" in (tmp_path / "report.html").read_text()
