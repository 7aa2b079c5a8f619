# SPDX-License-Identifier: Apache-2.0
import json
import math

import numpy as np
import pytest
import torch
from PIL import Image

from scene_writers import cloud, edit_json, photo, ply, ring, write_transforms
from splatcert.errors import InputError
from splatcert.scene.dataset import PointsError
from splatcert.scene.load import load_scene
from splatcert.scene.readers.ply_points import read_ply_points
from splatcert.storage.ply_table import PlyError
from splatcert.storage.schema import JsonError

PINHOLE = {"fl_x": 50.0, "fl_y": 51.0, "cx": 30.0, "cy": 25.0, "w": 64, "h": 48}
SIZED = {"w": 64, "h": 48}


def cameras_match(scene, poses, fx, fy, cx, cy) -> None:
    """World points fall where the definition puts them, in every view."""
    points = cloud()
    for camera, pose in zip(scene.cameras.values(), poses, strict=True):
        pixels, depth = camera.project(points)
        assert np.allclose(pixels, pose.project(points, fx, fy, cx, cy), atol=1e-6)
        assert (depth > 0).all()


@pytest.mark.parametrize("rows", [3, 4])
def test_nerfstudio_poses_and_intrinsics(tmp_path, rows):
    poses = ring(6)
    write_transforms(tmp_path, poses, meta={"camera_model": "OPENCV", **PINHOLE})
    edit_json(tmp_path / "transforms.json", lambda m: keep_rows(m, rows))
    scene = load_scene(tmp_path, holdout=None)
    assert scene.format == "transforms"
    cameras_match(scene, poses, 50, 51, 30, 25)
    assert scene.training.names[0] == "images/frame_00.png"


def keep_rows(meta, rows) -> None:
    for frame in meta["frames"]:
        frame["transform_matrix"] = frame["transform_matrix"][:rows]


def test_per_frame_intrinsics_go_before_global_ones(tmp_path):
    poses = ring(4)
    write_transforms(tmp_path, poses, meta={"camera_angle_x": 0.7, "cx": 1.0}, frame=PINHOLE)
    cameras_match(load_scene(tmp_path, holdout=None), poses, 50, 51, 30, 25)


@pytest.mark.parametrize(
    ("meta", "fx", "fy"),
    [
        ({"camera_angle_x": 0.8}, 32 / math.tan(0.4), 32 / math.tan(0.4)),
        (
            {"camera_angle_x": 0.8, "camera_angle_y": 0.6},
            32 / math.tan(0.4),
            24 / math.tan(0.3),
        ),
        ({"x_fov": 60.0}, 32 / math.tan(math.pi / 6), 32 / math.tan(math.pi / 6)),
        ({"fl_y": 55.0}, 55.0, 55.0),
        ({"camera_angle_x": 0.8, "fl_x": 40.0}, 40.0, 40.0),
    ],
)
@pytest.mark.parametrize("sized", [True, False])
def test_instant_ngp_fields_of_view(tmp_path, meta, fx, fy, sized):
    poses = ring(4)
    extra = {"aabb_scale": 16, "scale": 0.33, "offset": [0.5, 0.5, 0.5]}
    write_transforms(tmp_path, poses, meta={**meta, **extra, **(SIZED if sized else {})})
    cameras_match(load_scene(tmp_path, holdout=None), poses, fx, fy, 32, 24)


def test_a_field_of_view_holds_for_reduced_photos(tmp_path):
    poses = ring(4)
    write_transforms(tmp_path, poses, (32, 24), meta={"camera_angle_x": 0.8, "w": 64, "h": 48})
    f = 16 / math.tan(0.4)
    cameras_match(load_scene(tmp_path, holdout=None), poses, f, f, 16, 12)


def test_windows_paths_and_missing_suffixes(tmp_path):
    poses = ring(3)
    names = [f"images/{k}.png" for k in range(3)]
    write_transforms(tmp_path, poses, meta=PINHOLE, names=names)
    edit_json(
        tmp_path / "transforms.json",
        lambda m: [
            f.update(file_path=n)
            for f, n in zip(m["frames"], ["images\\0.png", "./images/1", "images/2"], strict=True)
        ],
    )
    scene = load_scene(tmp_path, holdout=None)
    assert scene.training.names == ("images/0.png", "images/1", "images/2")
    assert all(view.image().shape == (48, 64, 3) for view in scene.training)


def test_other_folders_take_the_place_of_images(tmp_path):
    poses = ring(3)
    names = write_transforms(tmp_path, poses, meta=PINHOLE)
    for name in names:
        photo(tmp_path / name.replace("images", "images_2"), (32, 24))
    scene = load_scene(tmp_path, holdout=None, images="images_2")
    assert scene.training[0].image().shape == (24, 32, 3)
    cameras_match(scene, poses, 25, 25.5, 15, 12.5)


def test_distortion_is_undone(tmp_path):
    write_transforms(tmp_path, ring(3), meta={**PINHOLE, "k1": -0.1, "p1": 0.001})
    scene = load_scene(tmp_path, holdout=None)
    assert scene.describe()["lenses"] == {"brown, undistorted": 3}
    camera = scene.training[0].camera
    assert scene.training[0].image().shape == (camera.height, camera.width, 3)
    assert (camera.fx, camera.fy) == (50, 51)


@pytest.mark.parametrize("meta", [{"camera_model": "OPENCV_FISHEYE"}, {"is_fisheye": True}])
def test_fisheyes_are_undone(tmp_path, meta):
    write_transforms(tmp_path, ring(3), meta={**PINHOLE, **meta, "k1": 0.02, "k4": 0.001})
    scene = load_scene(tmp_path, holdout=None)
    assert scene.describe()["lenses"] == {"fisheye, undistorted": 3}


def test_scene_frame_is_the_files_and_the_original_is_known(tmp_path):
    poses = ring(4)
    swap = [[0, 1, 0, 1], [1, 0, 0, 2], [0, 0, -1, 3]]
    write_transforms(
        tmp_path, poses, meta={**PINHOLE, "applied_transform": swap, "applied_scale": 2.0}
    )
    scene = load_scene(tmp_path, holdout=None)
    assert np.allclose([c.centre for c in scene.cameras.values()], [p.centre for p in poses])
    original = np.array([5.0, 7.0, 11.0, 1.0])
    expected = 2 * (np.array(swap) @ original)
    assert np.allclose((scene.frame.original_to_scene @ original)[:3], expected)


def test_old_nerfstudio_files_are_known_to_be_swapped(tmp_path):
    write_transforms(tmp_path, ring(4), meta=PINHOLE)
    assert np.array_equal(load_scene(tmp_path).frame.applied_transform, np.eye(4))
    (tmp_path / "colmap/sparse/0").mkdir(parents=True)
    frame = load_scene(tmp_path).frame
    assert frame.applied_transform[:3, :3].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, -1]]


@pytest.mark.parametrize("layout", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_sparse_points_come_from_the_named_cloud(tmp_path, layout):
    write_transforms(tmp_path, ring(4), meta={**PINHOLE, "ply_file_path": "points.ply"})
    xyz = cloud(7).astype(np.float32)
    rgb = np.arange(21, dtype=np.uint8).reshape(7, 3)
    (tmp_path / "points.ply").write_bytes(ply(xyz, rgb, layout))
    points = load_scene(tmp_path).points
    assert points is not None
    assert np.allclose(points.xyz, xyz, atol=1e-7)
    assert np.array_equal(points.rgb, rgb)


@pytest.mark.parametrize("layout", ["ascii", "binary_little_endian"])
def test_damaged_clouds_are_refused(tmp_path, layout):
    whole = ply(cloud(7), np.zeros((7, 3), dtype=np.uint8), layout)
    path = tmp_path / "points.ply"
    # The last byte of a text is its final line break.
    for length in range(0, len(whole) - (2 if layout == "ascii" else 0), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(PlyError):
            read_ply_points(path)
    path.write_bytes(whole.replace(b"vertex 7", b"vertex 99999999999"))
    with pytest.raises(PlyError, match="99999999999 rows of vertex"):
        read_ply_points(path)
    path.write_bytes(whole.replace(b"property float z", b"property float depth"))
    with pytest.raises(PointsError, match="no property 'z'"):
        read_ply_points(path)
    path.write_bytes(whole.replace(b"property float z", b"property quad z"))
    with pytest.raises(PlyError, match="quad z': unknown property type"):
        read_ply_points(path)


def test_a_cloud_may_be_empty_and_write_whole_numbers_as_decimals(tmp_path):
    header = "ply\nformat ascii 1.0\nelement vertex {}\n"
    header += "".join(f"property float {n}\n" for n in "xyz")
    header += "".join(f"property uchar {n}\n" for n in ("red", "green", "blue")) + "end_header\n"
    path = tmp_path / "p.ply"
    path.write_text(header.format(0))
    assert len(read_ply_points(path)) == 0
    path.write_text(header.format(1) + "1 2 3 128.0 0 255\n")
    assert read_ply_points(path).rgb.tolist() == [[128, 0, 255]]
    for wrong in ("256", "-1", "0.5", "nan"):
        path.write_text(header.format(1) + f"1 2 3 128 0 {wrong}\n")
        with pytest.raises(PlyError, match="blue cannot be"):
            read_ply_points(path)


def test_clouds_without_colours_are_grey(tmp_path):
    header = "ply\nformat ascii 1.0\nelement vertex 1\n"
    header += "".join(f"property double {n}\n" for n in "xyz") + "end_header\n"
    (tmp_path / "p.ply").write_text(header + "1 2 3")
    points = read_ply_points(tmp_path / "p.ply")
    assert points.xyz.tolist() == [[1, 2, 3]] and points.rgb.tolist() == [[128] * 3]
    (tmp_path / "p.ply").write_text(header + "1 nan 3")
    with pytest.raises(PointsError, match="not finite"):
        read_ply_points(tmp_path / "p.ply")


def test_own_split_of_the_file(tmp_path):
    names = write_transforms(tmp_path, ring(6), meta=PINHOLE)
    lists = {"train_filenames": names[:3], "val_filenames": names[3:4], "test_filenames": names[4:]}
    edit_json(tmp_path / "transforms.json", lambda m: m.update(lists))
    for holdout in ("auto", "format"):
        scene = load_scene(tmp_path, holdout=holdout)
        assert scene.training.names == tuple(n[2:] for n in names[:3])
        assert scene.held_out.names == tuple(n[2:] for n in names[4:])
        assert scene.describe()["unused"] == 1
    assert len(load_scene(tmp_path, holdout=3).held_out) == 2
    edit_json(tmp_path / "transforms.json", lambda m: m.pop("test_filenames"))
    assert load_scene(tmp_path).held_out.names == (names[3][2:],)
    edit_json(tmp_path / "transforms.json", lambda m: m.pop("train_filenames"))
    assert len(load_scene(tmp_path).training) == 5


def test_wrong_splits_of_the_file_are_refused(tmp_path):
    names = write_transforms(tmp_path, ring(4), meta=PINHOLE)
    edit_json(tmp_path / "transforms.json", lambda m: m.update(test_filenames=["images/no.png"]))
    with pytest.raises(JsonError, match=r"names photos without a frame: images/no\.png"):
        load_scene(tmp_path)
    both = {"train_filenames": names, "test_filenames": names[:1]}
    edit_json(tmp_path / "transforms.json", lambda m: m.update(both))
    with pytest.raises(JsonError, match=r"both training and held out: images/frame_00"):
        load_scene(tmp_path)
    edit_json(tmp_path / "transforms.json", lambda m: m.update(test_filenames="images"))
    with pytest.raises(JsonError, match="must be a list"):
        load_scene(tmp_path)


def sheared(matrix):
    matrix[0][0] += 0.3


def mirrored(matrix):
    for row in matrix[:3]:
        row[0] = -row[0]


def blank(matrix):
    matrix[:] = [[0.0] * 4] * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["frames"][2]["transform_matrix"][1].__setitem__(3, math.nan), "frame_02"),
        (lambda m: m["frames"][2].pop("transform_matrix"), "frame_02"),
        (lambda m: m["frames"][2].update(transform_matrix=[[1, 2], [3]]), "finite 4 x 4"),
        (lambda m: m["frames"][2].update(transform_matrix="eye"), "finite 4 x 4"),
        (lambda m: sheared(m["frames"][2]["transform_matrix"]), "sheared"),
        (lambda m: mirrored(m["frames"][2]["transform_matrix"]), "mirrored"),
        (lambda m: blank(m["frames"][2]["transform_matrix"]), "sheared"),
        (lambda m: m["frames"][2].pop("file_path"), "frame 2 has no 'file_path'"),
        (lambda m: m["frames"].append(m["frames"][0]), "two frames"),
        (lambda m: m["frames"].append(3), "frame 4 must be an object"),
        (lambda m: m.update(frames=[]), "at least one frame"),
        (lambda m: m.pop("frames"), "at least one frame"),
        (lambda m: [m.pop("fl_x"), m.pop("fl_y")], "no focal length"),
        (lambda m: m.update(fl_x="wide"), "'fl_x' must be a number"),
        (lambda m: m.update(fl_x=math.inf), "'fl_x' must be finite"),
        (lambda m: m.update(fl_x=-3), "focal lengths positive"),
        (lambda m: m.update(w=0), "picture size is 0 x 48"),
        (lambda m: m.update(cx=900), "far outside"),
        (lambda m: [m.pop("w"), m.pop("h"), m.update(cx=300)], "does not fit the 64 x 48 photo"),
        (lambda m: m.update(camera_model="EQUIRECTANGULAR"), "'EQUIRECTANGULAR' is not a lens"),
        (lambda m: m.update(latlong=True), "'latlong' is not a lens"),
        (lambda m: m.update(k5=0.1), "brown lens with k5"),
        (lambda m: m.update(is_fisheye=True, p2=0.1), "fisheye lens with p2"),
        (lambda m: m.update(applied_scale=0), "'applied_scale' must be positive"),
        (lambda m: m.update(applied_transform=[1, 2]), "'applied_transform' must be"),
        (lambda m: m.update(ply_file_path="no.ply"), "no point cloud"),
    ],
)
def test_spoiled_files_are_refused(tmp_path, change, message):
    write_transforms(tmp_path, ring(4), meta=PINHOLE)
    edit_json(tmp_path / "transforms.json", change)
    with pytest.raises(InputError, match=message) as caught:
        load_scene(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5


def test_every_truncation_of_the_file_is_refused(tmp_path):
    write_transforms(tmp_path, ring(2), meta=PINHOLE)
    path = tmp_path / "transforms.json"
    whole = path.read_text()
    for length in range(0, len(whole), 7):
        path.write_text(whole[:length])
        with pytest.raises(JsonError, match="not valid JSON"):
            load_scene(tmp_path)
    path.write_text("[" * 200_000)
    with pytest.raises(JsonError, match="not valid JSON"):
        load_scene(tmp_path)
    path.write_text(json.dumps([1]))
    with pytest.raises(JsonError, match="JSON object"):
        load_scene(tmp_path)


def test_masks_named_by_the_file(tmp_path):
    write_transforms(tmp_path, ring(3), meta=PINHOLE, frame={"mask_path": "m/a.png"})
    (tmp_path / "m").mkdir()
    mask = np.zeros((48, 64), dtype=np.uint8)
    mask[:10] = 255
    Image.fromarray(mask).save(tmp_path / "m/a.png")
    view = load_scene(tmp_path, holdout=None).training[0]
    assert view.has_mask and view.mask().sum() == 640
    assert not load_scene(tmp_path, holdout=None, masks=False).training[0].has_mask
    (tmp_path / "m/a.png").unlink()
    with pytest.raises(InputError, match=r"the mask 'm/a\.png' of"):
        load_scene(tmp_path)


def write_blender(root, *, val: bool = True) -> dict[str, list]:
    poses = {"train": ring(5), "test": ring(3, seed=4), "val": ring(2, seed=9)}
    for split, group in poses.items():
        if split == "val" and not val:
            continue
        names = [f"./{split}/r_{k}" for k in range(len(group))]
        write_transforms(
            root, group, meta={"camera_angle_x": 0.7}, names=names,
            file=f"transforms_{split}.json", photos=False,
        )  # fmt: skip
        for index, name in enumerate(names):
            rgba = np.random.default_rng(index).integers(0, 256, (40, 40, 4), dtype=np.uint8)
            (root / name).parent.mkdir(exist_ok=True)
            Image.fromarray(rgba).save(root / f"{name}.png")
    return poses


def test_blender_has_its_own_split_and_a_white_background(tmp_path):
    poses = write_blender(tmp_path)
    scene = load_scene(tmp_path)
    assert scene.format == "blender"
    assert scene.training.names == tuple(f"train/r_{k}" for k in range(5))
    assert scene.held_out.names == tuple(f"test/r_{k}" for k in range(3))
    f = 20 / math.tan(0.35)
    cameras_match(scene, [*poses["test"], *poses["train"]], f, f, 20, 20)
    rgba = np.asarray(Image.open(tmp_path / "train/r_1.png")).astype(float) / 255
    for background, colour in ((None, 1.0), ("black", 0.0), ((0.5, 0.5, 0.5), 0.5)):
        image = load_scene(tmp_path, background=background).training["train/r_1"].image()
        expected = rgba[..., :3] * rgba[..., 3:] + colour * (1 - rgba[..., 3:])
        assert np.abs(image.numpy() - expected).max() < 0.51 / 255
    assert not scene.training[0].has_mask
    masked = load_scene(tmp_path, masks="alpha").training["train/r_1"]
    assert torch.equal(masked.mask(), torch.tensor(rgba[..., 3] > 0.5))


def test_blender_holds_out_val_where_there_is_no_test(tmp_path):
    write_blender(tmp_path)
    (tmp_path / "transforms_test.json").unlink()
    assert load_scene(tmp_path).held_out.names == ("val/r_0", "val/r_1")
    assert len(load_scene(tmp_path, holdout=None).training) == 7


def test_blender_held_out_photos_may_be_missing(tmp_path):
    poses = write_blender(tmp_path, val=False)
    for file in (tmp_path / "test").iterdir():
        file.unlink()
    scene = load_scene(tmp_path)
    f = 20 / math.tan(0.35)
    cameras_match(scene, [*poses["test"], *poses["train"]], f, f, 20, 20)
    assert scene.held_out.with_photo == ()


def test_blender_photos_on_both_sides_are_refused(tmp_path):
    write_blender(tmp_path)
    (tmp_path / "transforms_test.json").write_text((tmp_path / "transforms_train.json").read_text())
    with pytest.raises(JsonError, match="5 photos are both training and held out"):
        load_scene(tmp_path)


def test_blender_scales_of_objects_move_no_pixel(tmp_path):
    poses = write_blender(tmp_path, val=False)

    def scale(meta):
        for frame in meta["frames"]:
            matrix = np.array(frame["transform_matrix"])
            matrix[:3, :3] *= 2.5
            frame["transform_matrix"] = matrix.tolist()

    edit_json(tmp_path / "transforms_train.json", scale)
    f = 20 / math.tan(0.35)
    cameras_match(load_scene(tmp_path), [*poses["test"], *poses["train"]], f, f, 20, 20)
