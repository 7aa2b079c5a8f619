# SPDX-License-Identifier: Apache-2.0
import builtins
import io
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from scene_writers import edit_json, photo, reconstruction, ring, write_colmap, write_transforms
from splatcert.camera import camera_hash
from splatcert.errors import InputError
from splatcert.scene.dataset import Dataset, Shot
from splatcert.scene.lens import Lens
from splatcert.scene.load import load_scene, read_photographs
from splatcert.scene.photo_files import FilePathError
from splatcert.scene.pixels import ImageError
from splatcert.scene.recognise import SceneError
from splatcert.scene.split import HoldoutRuleError, split

NAMES = [f"photo_{k:02d}.png" for k in range(9)]


@pytest.fixture
def capture(tmp_path):
    root = tmp_path / "capture"
    write_colmap(root)
    return root


# Splits


def test_every_eighth_name_is_held_out(capture):
    for holdout in (8, "8", "auto"):
        scene = load_scene(capture, holdout=holdout)
        assert scene.held_out.names == (NAMES[0], NAMES[8])
        assert scene.training.names == tuple(NAMES[1:8])
    assert load_scene(capture, holdout=4).held_out.names == (NAMES[0], NAMES[4], NAMES[8])


def made_names(count, stem="photo"):
    """A dataset of names alone."""
    pose = np.eye(4)
    lens = Lens(fx=1, fy=1, cx=1, cy=1, width=2, height=2)
    shots = tuple(
        Shot(f"{stem}_{k:04d}.png", lens, pose, "images", f"{k}.png") for k in range(count)
    )
    return Dataset(format="colmap", root=Path(), source=Path(), shots=shots)


def held_out_places(count, rule, stem="photo"):
    """Indices of the photos that a rule holds out, and its words."""
    parts, words = split(made_names(count, stem), rule)
    return [k for k, part in enumerate(parts.values()) if part == "held out"], words


@pytest.mark.parametrize(("count", "every"), [(96, 8), (97, 8), (103, 8), (50, 5), (9, 2)])
def test_a_random_hold_out_has_one_photo_of_every_run(count, every):
    places, words = held_out_places(count, f"random{every}")
    assert words == f"one random photo of every {every} in name order held out (seed 0)"
    runs = [place // every for place in places]
    assert runs[: count // every] == list(range(count // every))
    assert len(set(runs)) == len(runs)
    assert (places, words) == held_out_places(count, f"random{every}")


def test_a_random_hold_out_follows_the_names_and_no_rhythm():
    places = np.array(held_out_places(8_000, "random8")[0])
    counts = np.bincount(places % 8, minlength=8)
    assert counts.sum() == 1_000 and abs(counts - 125).max() < 4 * np.sqrt(125 * 7 / 8)
    assert places.tolist() != held_out_places(8_000, "random8", "other")[0]
    # Kept for good: a certificate names the rule, and anybody may draw again.
    assert held_out_places(40, "random8")[0] == [4, 12, 21, 26, 32]


def test_a_random_hold_out_is_loaded_like_any_other(capture):
    scene = load_scene(capture, holdout="random4")
    assert len(scene.held_out) in (2, 3)
    assert scene.details["split"] == "one random photo of every 4 in name order held out (seed 0)"
    assert scene.held_out.names == load_scene(capture, holdout="random4").held_out.names


def test_names_are_sorted_as_strings(tmp_path):
    model, _, _ = reconstruction(count=12)
    model.images = [(*i[:4], f"{k}.png", i[5]) for k, i in enumerate(model.images)]
    model.write(tmp_path / "sparse/0", "bin")
    for k in range(12):
        photo(tmp_path / f"images/{k}.png", (64, 48))
    scene = load_scene(tmp_path, holdout=4)
    assert scene.held_out.names == ("0.png", "2.png", "6.png")
    assert list(scene.cameras)[:4] == ["0.png", "1.png", "10.png", "11.png"]


@pytest.mark.parametrize("holdout", [None, 0])
def test_nothing_need_be_held_out(capture, holdout):
    scene = load_scene(capture, holdout=holdout)
    assert len(scene.training) == 9 and len(scene.held_out) == 0


def test_a_list_names_what_is_held_out(capture):
    listing = capture / "held.txt"
    listing.write_text(f"# chosen by hand\n{NAMES[5]}\n\n  {NAMES[2]}  \n")
    for holdout in (listing, str(listing), "held.txt"):
        assert load_scene(capture, holdout=holdout).held_out.names == (NAMES[2], NAMES[5])


def test_unknown_names_in_a_list_are_refused_by_name(capture):
    listing = capture / "held.txt"
    listing.write_text(f"{NAMES[5]}\nphoto_99.png\n")
    with pytest.raises(
        HoldoutRuleError, match=r"1 of 2 .* photo_99\.png(.|\n)*line 2(.|\n)*Did you mean"
    ):
        load_scene(capture, holdout=listing)


@pytest.mark.parametrize(
    ("holdout", "message"),
    [
        (1, "leaves nothing to train on"),
        (-3, "leaves nothing to train on"),
        (True, "the hold-out must be 8 for every 8th"),
        ("format", "does not define a split"),
        ("random1", "random1 cannot split 9 photos"),
        ("random10", "random10 cannot split 9 photos"),
        ("random0", "random0 cannot split 9 photos"),
        ("random", "'random' is neither a rule"),
        ("nowhere.txt", "'nowhere.txt' is neither a rule"),
    ],
)
def test_impossible_splits_are_refused(capture, holdout, message):
    with pytest.raises(HoldoutRuleError, match=message):
        load_scene(capture, holdout=holdout)


def test_a_list_of_everything_is_refused(capture):
    (capture / "all.txt").write_text("\n".join(NAMES))
    with pytest.raises(HoldoutRuleError, match="none of the 9 photos is left for training"):
        load_scene(capture, holdout="all.txt")


def test_colmap_has_a_split_of_its_own_beside_the_model(capture):
    (capture / "sparse/0/test.txt").write_text(NAMES[3])
    assert load_scene(capture, holdout="format").held_out.names == (NAMES[3],)
    assert load_scene(capture).held_out.names == (NAMES[0], NAMES[8])


# Photos


def test_held_out_photos_may_be_missing(capture):
    whole = load_scene(capture)
    for name in whole.held_out.names:
        (capture / "images" / name).unlink()
    scene = load_scene(capture)
    assert len(scene.held_out) == 2 and scene.held_out.with_photo == ()
    assert scene.describe()["held-out photos missing"] == 2
    for view in scene.held_out:
        assert np.array_equal(view.camera.K, whole.cameras[view.name].K)


def test_missing_held_out_photos_take_the_size_of_the_others(capture):
    for name in NAMES[1:8]:
        photo(capture / "images_2" / name, (32, 24))
    scene = load_scene(capture, images="images_2", resolution="1/2")
    assert {(c.width, c.height) for c in scene.cameras.values()} == {(16, 12)}
    assert np.allclose(scene.held_out[0].camera.K, scene.training[0].camera.K)


def test_missing_training_photos_are_counted_and_named(capture):
    for name in NAMES[1:6]:
        (capture / "images" / name).unlink()
    with pytest.raises(ImageError, match=r"5 of 7 training photos are missing: photo_01") as caught:
        load_scene(capture)
    assert "and 2 more" in str(caught.value) and str(capture / "images") in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5


@pytest.mark.parametrize("factor", [2, 4, 8])
def test_reduced_folders_scale_the_intrinsics(tmp_path, factor):
    """Rounded sizes, as the tools leave them; K follows the actual size."""
    size = (101, 75)
    write_colmap(tmp_path, size=size, params=(80.0, 82.0, 49.0, 38.0))
    small = (round(size[0] / factor), size[1] // factor)
    for name in NAMES:
        photo(tmp_path / f"images_{factor}" / name, small)
    view = load_scene(tmp_path, images=f"images_{factor}").training[0]
    assert (view.camera.width, view.camera.height) == small
    assert view.camera.fx == pytest.approx(80 * small[0] / 101)
    assert view.camera.cy == pytest.approx(38 * small[1] / 75)
    assert view.image().shape == (small[1], small[0], 3)


def test_a_reduced_folder_may_hold_another_file_type(capture):
    for name in NAMES:
        photo(capture / "images_2" / name.replace(".png", ".jpg"), (32, 24))
    assert load_scene(capture, images="images_2").training[0].image().shape == (24, 32, 3)


def test_an_unknown_folder_lists_those_there_are(capture):
    with pytest.raises(ImageError, match=r"no folder 'images_4'(.|\n)*images, sparse"):
        load_scene(capture, images="images_4")


def test_a_size_that_disagrees_with_the_camera_is_refused(capture):
    photo(capture / "images" / NAMES[4], (64, 40))
    with pytest.raises(ImageError, match=r"64 x 40 pixels, its camera 64 x 48, which is not a"):
        load_scene(capture)


@pytest.mark.parametrize(
    ("resolution", "size"),
    [(None, (64, 48)), (32, (32, 24)), ("32", (32, 24)), (50, (50, 38)), ("1/2", (32, 24)),
     ("3/4", (48, 36)), (1000, (64, 48)), ("1/1", (64, 48))],
)  # fmt: skip
def test_resolution_reduces_picture_and_camera_together(capture, resolution, size):
    view = load_scene(capture, resolution=resolution).training[0]
    assert (view.camera.width, view.camera.height) == size
    assert view.image().shape == (size[1], size[0], 3)
    assert view.camera.fx == pytest.approx(50 * size[0] / 64)
    assert view.camera.cy == pytest.approx(25 * size[1] / 48)


@pytest.mark.parametrize("resolution", [0, -5, "2/1", "1/0", "half", 0.5, True, "0/3"])
def test_impossible_resolutions_are_refused(capture, resolution):
    with pytest.raises(SceneError, match="resolution"):
        load_scene(capture, resolution=resolution)


@pytest.mark.parametrize("background", ["pink", (1, 2, 3), (0.5,), 7, (0.1, float("nan"), 0)])
def test_impossible_backgrounds_are_refused(capture, background):
    with pytest.raises(SceneError, match="background must be"):
        load_scene(capture, background=background)


# Masks


@pytest.mark.parametrize("naming", ["{stem}.png", "{name}.png", "{name}"])
def test_masks_beside_the_photos_are_found(tmp_path, naming):
    model, _, _ = reconstruction()
    names = [f"side/photo_{k:02d}.jpg" for k in range(9)]
    model.images = [(*i[:4], n, i[5]) for i, n in zip(model.images, names, strict=True)]
    model.write(tmp_path / "sparse/0", "bin")
    mask = np.zeros((48, 64), dtype=np.uint8)
    mask[:, :20] = 255
    for name in names:
        photo(tmp_path / "images" / name, (64, 48))
        file = tmp_path / "masks" / naming.format(name=name, stem=name[:-4])
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(mask).save(file, "PNG")
    scene = load_scene(tmp_path)
    assert scene.describe()["masks"] == 9
    counted = scene.training[0].mask()
    assert counted.dtype == torch.bool and torch.equal(counted, torch.tensor(mask > 0))
    assert not load_scene(tmp_path, masks=False).training[0].has_mask
    (tmp_path / "masks").rename(tmp_path / "people")
    assert not load_scene(tmp_path).training[0].has_mask
    assert load_scene(tmp_path, masks="people").training[0].has_mask


def test_masks_that_were_asked_for_and_are_nowhere_are_refused(capture):
    (capture / "people").mkdir()
    for masks in ("people", "alpha"):
        with pytest.raises(SceneError, match="none of 9 photos has one"):
            load_scene(capture, masks=masks)


def test_masks_of_another_shape_are_refused(capture):
    (capture / "masks").mkdir()
    Image.new("L", (64, 40)).save(capture / "masks" / NAMES[1])
    with pytest.raises(ImageError, match=r"has 64 x 40 pixels, its photo photo_01\.png 64 x 48"):
        load_scene(capture)


def test_alpha_says_what_counts_unless_a_background_is_given(capture):
    rgba = np.random.default_rng(0).integers(0, 256, (48, 64, 4), dtype=np.uint8)
    Image.fromarray(rgba).save(capture / "images" / NAMES[1])
    view = load_scene(capture).training[NAMES[1]]
    assert torch.equal(view.mask(), torch.tensor(rgba[..., 3] >= 128))
    assert torch.equal(view.image(), torch.tensor(rgba[..., :3]) / 255)
    view = load_scene(capture, background="black").training[NAMES[1]]
    assert not view.has_mask and view.mask().all()
    expected = rgba[..., :3] * (rgba[..., 3:] / 255) / 255
    assert np.abs(view.image().numpy() - expected).max() < 0.51 / 255
    assert not load_scene(capture, masks=False).training[NAMES[1]].has_mask


# Paths


@pytest.mark.parametrize("kind", ["absolute", "parent", "link", "linked folder"])
def test_files_outside_the_dataset_are_refused(tmp_path, kind):
    outside = tmp_path / "private"
    photo(outside / "secret.png", (64, 48))
    root = tmp_path / "data"
    meta = {"fl_x": 50, "w": 64, "h": 48}
    if kind in ("absolute", "parent"):
        name = str(outside / "secret.png") if kind == "absolute" else "../private/secret.png"
        write_transforms(root, ring(1), meta=meta, names=[name], photos=False)
    else:
        write_transforms(root, ring(1), meta=meta, names=["images/secret.png"], photos=False)
        if kind == "link":
            (root / "images").mkdir()
            (root / "images/secret.png").symlink_to(outside / "secret.png")
        else:
            (root / "images").symlink_to(outside)
    with pytest.raises(FilePathError, match=r"outside the dataset(.|\n)*Copy the file") as caught:
        load_scene(root, holdout=None)
    assert "secret.png" in str(caught.value)
    assert ("a link to" in str(caught.value)) == ("link" in kind)
    scene = load_scene(root, holdout=None, allow_outside=True)
    assert scene.training[0].image().shape == (48, 64, 3)


def test_clouds_masks_and_names_outside_are_refused(tmp_path):
    meta = {"fl_x": 50, "w": 64, "h": 48}
    write_transforms(tmp_path / "a", ring(1), meta={**meta, "ply_file_path": "../x.ply"})
    with pytest.raises(FilePathError, match=r"x\.ply"):
        load_scene(tmp_path / "a", holdout=None)
    write_transforms(tmp_path / "b", ring(1), meta=meta, frame={"mask_path": "/etc/hostname"})
    with pytest.raises(FilePathError, match="hostname"):
        load_scene(tmp_path / "b", holdout=None)
    model, _, _ = reconstruction(count=2)
    model.images[0] = (*model.images[0][:4], "../../secret.png", [])
    model.write(tmp_path / "c/sparse/0", "bin")
    with pytest.raises(FilePathError, match=r"secret\.png"):
        load_scene(tmp_path / "c")


def test_links_inside_the_dataset_and_linked_datasets_are_fine(capture, tmp_path):
    (capture / "images").rename(capture / "photos")
    (capture / "images").symlink_to(capture / "photos")
    (tmp_path / "link").symlink_to(capture)
    assert len(load_scene(tmp_path / "link").cameras) == 9


def test_a_folder_that_the_user_names_may_lie_elsewhere(capture, tmp_path):
    (capture / "images").rename(tmp_path / "elsewhere")
    scene = load_scene(capture, images=str(tmp_path / "elsewhere"))
    assert scene.training[0].image().shape == (48, 64, 3)


# Formats


def test_a_folder_that_is_no_dataset_says_what_was_looked_for(tmp_path):
    (tmp_path / "images.txt").write_text("a list, not a reconstruction")
    for path in (tmp_path, tmp_path / "images.txt"):
        with pytest.raises(SceneError) as caught:
            load_scene(path)
        message = str(caught.value)
        for word in ("sparse/0", "transforms.json", "transforms_train.json", str(path)):
            assert word in message
        assert len(message.splitlines()) <= 5
    with pytest.raises(SceneError, match="no such file or folder"):
        load_scene(tmp_path / "nowhere")


def test_formats_are_told_apart_and_can_be_chosen(capture):
    assert load_scene(capture).format == "colmap"
    write_transforms(capture, ring(3), meta={"fl_x": 50, "w": 64, "h": 48})
    assert load_scene(capture).format == "colmap"
    assert load_scene(capture, format="transforms").format == "transforms"
    assert load_scene(capture / "transforms.json").format == "transforms"
    with pytest.raises(SceneError, match="not a blender dataset"):
        load_scene(capture, format="blender")


def test_nerfstudio_folders_are_read_as_nerfstudio_reads_them(tmp_path):
    write_colmap(tmp_path, place="colmap/sparse/0")
    write_transforms(tmp_path, ring(3), meta={"fl_x": 50, "w": 64, "h": 48})
    assert load_scene(tmp_path).format == "transforms"
    assert len(load_scene(tmp_path, format="colmap").cameras) == 9


def test_blender_folders_cannot_be_replaced(tmp_path):
    write_transforms(
        tmp_path, ring(2), meta={"camera_angle_x": 0.8}, file="transforms_train.json",
        names=["train/a.png", "train/b.png"],
    )  # fmt: skip
    with pytest.raises(SceneError, match="Pass --resolution to read smaller"):
        load_scene(tmp_path, images="train")
    assert load_scene(tmp_path / "transforms_train.json").format == "blender"


# The scene as a whole


def test_extent_is_that_of_the_training_cameras(capture):
    scene = load_scene(capture, holdout=2)
    centres = np.array([view.camera.centre for view in scene.training])
    farthest = max(np.linalg.norm(c - centres.mean(axis=0)) for c in centres)
    assert scene.extent == pytest.approx(1.1 * farthest)


def test_a_scene_describes_itself(capture):
    scene = load_scene(capture, resolution=32)
    facts = scene.describe()
    assert json.loads(json.dumps(facts)) is not None
    assert (facts["training"], facts["held out"], facts["format"]) == (7, 2, "colmap")
    assert facts["sizes"] == {"32x24": 9}
    assert facts["points"] == {"count": 20, "mean reprojection error": 0.5, "tracks": True}
    assert facts["split"] == "index % 8 == 0 of the sorted names held out"
    summary = scene.summary()
    assert "held out" in summary and "32x24: 9" in summary
    assert scene.path == capture


def test_views_are_found_by_position_name_and_slice(capture):
    training = load_scene(capture).training
    assert training[0] is training[NAMES[1]]
    assert training[2:4].names == tuple(NAMES[3:5])
    assert len(training.cameras) == len(list(training)) == 7


@contextmanager
def opened_files(monkeypatch):
    """Every file that is opened meanwhile, by PIL, pathlib or Python itself."""
    names, usual = [], io.open

    def noted(file, *arguments, **options):
        names.append(str(file))
        return usual(file, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(io, "open", noted)
        patched.setattr(builtins, "open", noted)
        yield names


@pytest.mark.parametrize("kind", ["colmap", "transforms"])
def test_other_split_rules_open_no_file_again(tmp_path, monkeypatch, kind):
    if kind == "colmap":
        write_colmap(tmp_path, "bin")
    else:
        write_transforms(tmp_path, ring(9), meta={"fl_x": 50, "fl_y": 50})
    (tmp_path / "masks").mkdir()
    photographs = read_photographs(tmp_path)
    assert list(photographs.names) == sorted(photographs.names)
    assert len(photographs.names) == 9 and not photographs.own_split
    with opened_files(monkeypatch) as names:
        first = photographs.scene()
        assert len(names) == (9 if kind == "colmap" else 0)  # transforms.json states no size
        names.clear()
        chosen = photographs.names[2:4]
        second, third = photographs.scene(3), photographs.scene(chosen)
    assert names == []
    assert (len(first.held_out), len(second.held_out), third.held_out.names) == (2, 3, chosen)
    alone = load_scene(tmp_path, holdout=3)
    assert second.describe() == alone.describe()
    for name, camera in alone.cameras.items():
        assert camera_hash(camera) == camera_hash(second.cameras[name])
    assert second.training[0].source.cache is third.training[0].source.cache
    assert second.held_out.ledger is not third.held_out.ledger


def test_photographs_know_whether_the_format_brings_a_split(tmp_path):
    names = write_transforms(tmp_path, ring(6), meta={"fl_x": 50, "w": 64, "h": 48})
    lists = {"train_filenames": names[:4], "test_filenames": names[4:]}
    edit_json(tmp_path / "transforms.json", lambda m: m.update(lists))
    photographs = read_photographs(tmp_path)
    assert photographs.own_split and len(photographs.names) == 6
    assert len(photographs.scene().held_out) == 2
    with pytest.raises(TypeError, match="unknown_option"):
        load_scene(tmp_path, unknown_option=1)


def test_three_hundred_photos_load_from_their_headers(tmp_path, monkeypatch):
    """No picture is decoded: the files end right after their headers."""
    model, _, _ = reconstruction(count=300, points=5)
    model.write(tmp_path / "sparse/0", "bin")
    photo(tmp_path / "one.png", (64, 48))
    head = (tmp_path / "one.png").read_bytes()[:80]
    (tmp_path / "images").mkdir()
    for image in model.images:
        (tmp_path / "images" / image[4]).write_bytes(head)
    with opened_files(monkeypatch) as names:
        scene = load_scene(tmp_path)
    assert len(names) == 300 + 3 and len(set(names)) == len(names)
    assert len(scene.training) == 262
    with pytest.raises(InputError):
        scene.training[0].image()


def test_cameras_of_different_sizes_live_in_one_scene(tmp_path):
    model, _, _ = reconstruction(count=4)
    model.cameras.append((2, "SIMPLE_PINHOLE", 40, 60, [45.0, 20.0, 30.0]))
    model.images[2] = (*model.images[2][:3], 2, *model.images[2][4:])
    model.write(tmp_path / "sparse/0", "txt")
    for index, image in enumerate(model.images):
        photo(tmp_path / "images" / image[4], (40, 60) if index == 2 else (64, 48))
    scene = load_scene(tmp_path, holdout=None)
    assert scene.training[2].image().shape == (60, 40, 3)
    assert scene.describe()["sizes"] == {"64x48": 3, "40x60": 1}
    shutil.rmtree(tmp_path / "images")
    with pytest.raises(ImageError, match="4 of 4 training photos"):
        load_scene(tmp_path, holdout=None)
