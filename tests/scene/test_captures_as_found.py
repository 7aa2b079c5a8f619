# SPDX-License-Identifier: Apache-2.0
"""Captures as they lie around: several COLMAP models, photos that are missing or not registered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scene_writers import photo, reconstruction, ring, write_colmap, write_transforms
from splatcert.errors import InputError
from splatcert.scene.load import load_scene, read_photographs
from splatcert.scene.pixels import ImageError
from splatcert.scene.readers.colmap import ColmapError, read_colmap
from splatcert.scene.readers.colmap_models import find_model, models_in
from splatcert.scene.split import HoldoutRuleError

LENS = {"fl_x": 50.0, "fl_y": 50.0, "w": 64, "h": 48}


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """COLMAP's output where the mapper began thrice: models of 3, 9 and 4 photos."""
    write_colmap(tmp_path, place="sparse/1")
    for place, count, kind in (("sparse/0", 3, "bin"), ("sparse/10", 4, "txt")):
        reconstruction(count)[0].write(tmp_path / place, kind)
    photo(tmp_path / "images/unregistered.JPG", (64, 48))
    (tmp_path / "images/notes.txt").write_text("not a photo")
    return tmp_path


def test_the_model_with_the_most_photos_is_read_and_named(several):
    assert [one.name for one in models_in(several)] == ["0", "1", "10"]
    scene = load_scene(several)
    assert len(scene.cameras) == 9 and scene.details["sparse"] == "sparse/1"
    assert scene.registered is not None and scene.registered.is_notable
    said = scene.registered.words()
    assert said.startswith("9 of 10 photos are registered; model sparse/1 of 3")
    assert "sparse/0: 3 photos, sparse/10: 4 photos" in said and "--sparse N" in said


@pytest.mark.parametrize(("sparse", "count"), [(0, 3), (10, 4), ("sparse/10", 4), ("first", 3)])
def test_another_model_is_read_on_request(several, sparse, count):
    assert len(load_scene(several, sparse=sparse).cameras) == count


def test_a_model_that_is_not_there_is_refused_with_those_that_are(several, tmp_path):
    with pytest.raises(ColmapError, match=r"no COLMAP model 2(.|\n)*sparse/1 \(9 photos\)"):
        load_scene(several, sparse=2)
    write_transforms(tmp_path / "other", ring(3), meta=LENS)
    with pytest.raises(InputError, match="not a colmap dataset"):
        load_scene(tmp_path / "other", sparse=0)


def test_nerfstudio_keeps_its_models_below_colmap(tmp_path):
    write_transforms(tmp_path, ring(5), meta=LENS)
    reconstruction(3)[0].write(tmp_path / "colmap/sparse/0", "bin")
    reconstruction(4)[0].write(tmp_path / "colmap/sparse/1", "bin")
    for index in range(4):
        photo(tmp_path / f"images/photo_{index:02d}.png", (64, 48))
    assert load_scene(tmp_path).format == "transforms"
    assert len(load_scene(tmp_path, format="colmap").cameras) == 4
    assert len(load_scene(tmp_path, sparse=0).cameras) == 3


def test_a_single_model_is_not_notable_where_every_photo_is_registered(tmp_path):
    write_colmap(tmp_path)
    registered = load_scene(tmp_path).registered
    assert registered is not None and not registered.is_notable
    assert registered.words() == "9 of 9 photos are registered"


def test_a_damaged_model_among_others_is_called_unreadable(several):
    for content in (b"", b"\x01", b"\xff" * 8):
        (several / "sparse/0/images.bin").write_bytes(content)
        scene = load_scene(several)
        assert scene.registered is not None
        assert "sparse/0: unreadable" in scene.registered.words()
    for name in ("1", "10"):
        for file in (several / "sparse" / name).iterdir():
            file.unlink()
    assert find_model(several) == several / "sparse/0"


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("images.bin", r"has no images\.bin"),
        ("cameras.bin", r"has no cameras\.bin"),
        ("images.txt", r"has no images\.txt"),
    ],
)
def test_the_file_that_is_missing_is_the_one_that_is_named(tmp_path, gone, message):
    reconstruction()[0].write(tmp_path / "sparse/0", gone.rpartition(".")[2])
    (tmp_path / "sparse/0" / gone).unlink()
    with pytest.raises(ColmapError, match=message):
        load_scene(tmp_path)


def test_a_whole_text_model_is_read_beside_a_part_of_a_binary_one(tmp_path):
    model, _, _ = reconstruction()
    model.write(tmp_path, "txt")
    (tmp_path / "cameras.bin").write_bytes(model.binary()["cameras"])
    assert len(read_colmap(tmp_path).images) == 9


@pytest.fixture
def fox(tmp_path: Path) -> Path:
    """Laid out as instant-ngp's fox: more frames than photos, and no points."""
    names = [f"images/{k:04d}.jpg" for k in range(1, 24)]
    meta = {"camera_angle_x": 0.77, "k1": 0.03, "k2": -0.03, "cx": 32.5, "cy": 24.3, **LENS}
    write_transforms(tmp_path, ring(23), meta={**meta, "aabb_scale": 4}, names=names)
    for name in names[4::5]:
        (tmp_path / name).unlink()
    return tmp_path


def test_missing_photos_are_counted_and_the_refusal_names_the_way_out(fox):
    with pytest.raises(ImageError, match=r"4 of 20 training photos are missing") as caught:
        load_scene(fox)
    assert "--skip-missing" in str(caught.value) and "--images FOLDER" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5


def test_poses_without_a_photo_are_left_out_on_request(fox):
    scene = load_scene(fox, skip_missing=True)
    assert len(scene.cameras) == 19 and len(scene.held_out) == 3
    assert scene.held_out.names == tuple(sorted(scene.cameras)[::8])
    assert scene.registered is not None
    said = scene.registered.words()
    assert (
        said == "19 of 19 photos are registered; 4 of 23 poses left out: their photos are missing"
    )


def test_a_split_of_the_format_loses_the_same_photos(tmp_path):
    names = [f"images/{k}.png" for k in range(6)]
    meta = {**LENS, "train_filenames": names[:4], "test_filenames": names[4:]}
    write_transforms(tmp_path, ring(6), meta=meta, names=names)
    for gone in (names[1], names[5]):
        (tmp_path / gone).unlink()
    scene = load_scene(tmp_path, skip_missing=True)
    assert scene.training.names == (names[0], names[2], names[3])
    assert scene.held_out.names == (names[4],)


def test_nothing_is_left_out_where_every_photo_is_missing(fox):
    for file in (fox / "images").iterdir():
        file.unlink()
    with pytest.raises(ImageError, match="none of the 23 photos") as caught:
        load_scene(fox, skip_missing=True)
    assert "--images FOLDER" in str(caught.value)
    with pytest.raises(ImageError) as caught:
        load_scene(fox, holdout=None)
    assert "--skip-missing" not in str(caught.value)


def test_names_separated_by_commas_are_held_out(several):
    held_out = "photo_02.png, photo_05.png,photo_05.png"
    assert load_scene(several, holdout=held_out).held_out.names == ("photo_02.png", "photo_05.png")
    assert load_scene(several, holdout="photo_07.png").held_out.names == ("photo_07.png",)
    with pytest.raises(HoldoutRuleError, match=r"1 of 2 .*: photo_77\.png(.|\n)*Did you mean"):
        load_scene(several, holdout="photo_02.png,photo_77.png")
    with pytest.raises(HoldoutRuleError, match=r"3000 of 3000 held-out names"):
        load_scene(several, holdout=",".join(f"{k}.png" for k in range(3000)))
    (several / "a,b.txt").write_text("photo_01.png\n")
    assert load_scene(several, holdout="a,b.txt").held_out.names == ("photo_01.png",)


def test_options_of_reading_are_kept_for_the_certificate(several):
    photographs = read_photographs(several, sparse=10, skip_missing=True)
    details = photographs.scene().details
    assert (details["sparse"], details["skip missing"]) == ("sparse/10", True)
    json.dumps(photographs.scene().describe())
