# SPDX-License-Identifier: Apache-2.0
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scene_writers import Colmap, reconstruction, write_colmap
from splatcert.errors import InputError
from splatcert.scene.lens import LensError
from splatcert.scene.load import load_scene
from splatcert.scene.readers.colmap import MODELS, ColmapError, lens_of, read_colmap
from splatcert.scene.readers.colmap_models import find_model

KINDS = ("bin", "txt")


def read(folder, model: Colmap, kind: str, **options):
    model.write(folder, kind)
    return read_colmap(folder, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_known_points_fall_on_known_pixels(tmp_path, kind):
    poses = write_colmap(tmp_path, kind)
    _, _, xyz = reconstruction()
    scene = load_scene(tmp_path, holdout=None)
    for view, pose in zip(scene.training, poses, strict=True):
        pixels, depth = view.camera.project(xyz)
        assert np.allclose(pixels, pose.project(xyz, 50, 51, 30, 25), atol=1e-9)
        assert (depth > 0).all()
        assert np.allclose(view.camera.centre, pose.centre)
        assert np.allclose(view.camera.forward, pose.rotation[:, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_points_and_observations_come_back_and_tracks_are_noted(tmp_path, kind):
    model, _, xyz = reconstruction()
    read_back = read(tmp_path, model, kind, observations=True)
    points = read_back.points
    assert points is not None and points.has_tracks and points.ids is not None
    assert np.array_equal(points.xyz, xyz)
    assert points.rgb[3].tolist() == [3, 6, 252]
    assert points.error is not None and (points.error == 0.5).all()
    assert len(set(points.ids.tolist())) == 20
    for image in read_back.images:
        assert image.point_ids is not None and image.points2d is not None
        assert set(image.point_ids.tolist()) == set(points.ids.tolist())
        assert image.points2d.shape == (20, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_images_without_observations_and_points_without_tracks(tmp_path, kind):
    model, _, _ = reconstruction()
    model.images = [(*image[:5], []) for image in model.images]
    model.points = [(*point[:4], []) for point in model.points]
    read_back = read(tmp_path, model, kind)
    assert len(read_back.images) == 9
    assert read_back.points is not None and not read_back.points.has_tracks


def test_text_and_binary_agree(tmp_path):
    model, _, _ = reconstruction()
    one, two = (read(tmp_path / kind, model, kind) for kind in KINDS)
    assert one.cameras == two.cameras
    for a, b in zip(one.images, two.images, strict=True):
        assert a.name == b.name and np.array_equal(a.world_to_camera, b.world_to_camera)


def test_names_with_spaces_and_folders(tmp_path):
    model, _, _ = reconstruction(count=2)
    model.images[0] = (*model.images[0][:4], "left camera/a b.png", model.images[0][5])
    for kind in KINDS:
        names = [i.name for i in read(tmp_path / kind, model, kind).images]
        assert names == ["left camera/a b.png", "photo_01.png"]


def test_images_are_sorted_by_name(tmp_path):
    model, _, _ = reconstruction()
    model.images.reverse()
    names = [i.name for i in read(tmp_path, model, "bin").images]
    assert names == sorted(names)


@pytest.mark.parametrize("place", ["sparse/0", "sparse", "colmap/sparse/0", "."])
def test_reconstruction_is_found_where_tools_put_it(tmp_path, place):
    write_colmap(tmp_path, "bin", place=place)
    assert find_model(tmp_path) == tmp_path / place
    assert len(load_scene(tmp_path).cameras) == 9


def test_photos_are_not_needed_to_read_a_model(tmp_path):
    model, _, _ = reconstruction()
    assert len(read(tmp_path, model, "bin").images) == 9


def test_points_may_be_absent(tmp_path):
    write_colmap(tmp_path)
    (tmp_path / "sparse/0/points3D.bin").unlink()
    assert load_scene(tmp_path).points is None


@pytest.mark.parametrize("stem", ["cameras", "images", "points3D"])
def test_every_truncation_of_a_binary_file_is_refused(tmp_path, stem):
    model, _, _ = reconstruction(count=3, points=3)
    model.write(tmp_path, "bin")
    file = tmp_path / f"{stem}.bin"
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match=stem):
            read_colmap(tmp_path)
    file.write_bytes(whole + b"\0")
    with pytest.raises(ColmapError, match="1 bytes left after the last"):
        read_colmap(tmp_path)


@pytest.mark.parametrize("stem", ["cameras", "images", "points3D"])
def test_text_cut_at_a_line_is_refused_by_its_own_count(tmp_path, stem):
    model, _, _ = reconstruction(count=3, points=3)
    model.write(tmp_path, "txt")
    file = tmp_path / f"{stem}.txt"
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:-2] if stem == "images" else lines[:-1]))
    with pytest.raises(ColmapError, match=r"promises \d+ .* and contains"):
        read_colmap(tmp_path)


@pytest.mark.parametrize("stem", ["cameras", "images", "points3D"])
@pytest.mark.parametrize("count", [2**63, 2**40, 10**6])
def test_a_count_is_never_believed(tmp_path, stem, count):
    model, _, _ = reconstruction(count=2)
    model.write(tmp_path, "bin")
    file = tmp_path / f"{stem}.bin"
    file.write_bytes(struct.pack("<Q", count) + file.read_bytes()[8:])
    with pytest.raises(ColmapError, match=f"announces {count}") as caught:
        read_colmap(tmp_path)
    assert len(str(caught.value).splitlines()) <= 5


def test_huge_track_and_observation_counts_are_refused(tmp_path):
    model, _, _ = reconstruction(count=2, points=1)
    model.write(tmp_path, "bin")
    file = tmp_path / "points3D.bin"
    data = bytearray(file.read_bytes())
    data[8 + 43 : 8 + 51] = struct.pack("<Q", 2**61)
    file.write_bytes(data)
    with pytest.raises(ColmapError, match="announces 2305843009213693952 observations"):
        read_colmap(tmp_path)


def test_mislabelled_files_are_refused(tmp_path):
    model, _, _ = reconstruction()
    binary, text = model.binary(), model.text()
    model.write(tmp_path, "bin")
    (tmp_path / "cameras.bin").write_bytes(text["cameras"])
    with pytest.raises(ColmapError, match=r"text model: name it \.txt"):
        read_colmap(tmp_path)
    (tmp_path / "cameras.bin").write_bytes(binary["points3D"])
    with pytest.raises(ColmapError):
        read_colmap(tmp_path)
    folder = tmp_path / "text"
    model.write(folder, "txt")
    (folder / "images.txt").write_bytes(binary["images"])
    with pytest.raises(ColmapError, match=r"not text"):
        read_colmap(folder)


def test_unknown_model_ids_are_refused(tmp_path):
    model, _, _ = reconstruction(count=2)
    model.write(tmp_path, "bin")
    file = tmp_path / "cameras.bin"
    data = bytearray(file.read_bytes())
    data[12:16] = struct.pack("<i", 99)
    file.write_bytes(data)
    with pytest.raises(ColmapError, match="model id 99"):
        read_colmap(tmp_path)
    model.write(tmp_path / "text", "txt")
    file = tmp_path / "text/cameras.txt"
    file.write_text(file.read_text().replace("PINHOLE", "CAMERA_OBSCURA"))
    with pytest.raises(ColmapError, match=r"unknown model 'CAMERA_OBSCURA'(.|\n)*line 3"):
        read_colmap(tmp_path / "text")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda i: (i[0], np.full(4, np.nan), *i[2:]), "no usable pose"),
        (lambda i: (i[0], np.zeros(4), *i[2:]), "no usable pose"),
        (lambda i: (*i[:2], np.array([0, np.inf, 0]), *i[3:]), "no usable pose"),
        (lambda i: (*i[:4], "photo_00.png", i[5]), "appears twice"),
        (lambda i: (*i[:3], 7, *i[4:]), "taken by camera 7"),
    ],
)
def test_spoiled_photos_are_refused(tmp_path, kind, spoil, message):
    model, _, _ = reconstruction()
    model.images[4] = spoil(model.images[4])
    with pytest.raises(ColmapError, match=message) as caught:
        read(tmp_path, model, kind)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_points_that_are_not_finite_are_refused(tmp_path, kind):
    model, _, _ = reconstruction()
    model.points[5] = (105, np.array([0, np.nan, 0]), *model.points[5][2:])
    with pytest.raises(
        InputError, match=r"1 of 20 sparse points are not finite .* first at index 5"
    ):
        read(tmp_path, model, kind)


def test_text_without_observation_lines_is_refused(tmp_path):
    model, _, _ = reconstruction()
    model.images = [(*image[:5], []) for image in model.images]
    model.write(tmp_path, "txt")
    file = tmp_path / "images.txt"
    file.write_text("\n".join(line for line in file.read_text().splitlines() if line.strip()))
    with pytest.raises(ColmapError, match="must hold its 2D points"):
        read_colmap(tmp_path)


def test_empty_models_and_lone_files_are_refused(tmp_path):
    model, _, _ = reconstruction()
    model.write(tmp_path / "lone", "bin")
    (tmp_path / "lone/cameras.bin").unlink()
    with pytest.raises(ColmapError, match=r"has no cameras\.bin"):
        read_colmap(tmp_path / "lone")
    model.images.clear()
    with pytest.raises(ColmapError, match="registers no photo"):
        read(tmp_path / "empty", model, "bin")


def test_other_lenses_are_refused_with_the_command_to_run(tmp_path):
    write_colmap(tmp_path, model="FOV", params=(50, 50, 32, 24, 0.5))
    with pytest.raises(ColmapError, match="colmap image_undistorter --image_path") as caught:
        load_scene(tmp_path)
    assert "FOV" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5


@pytest.mark.parametrize("bad", [(np.nan, 50, 32, 24), (-5, 50, 32, 24), (50, 50, 3200, 24)])
def test_impossible_intrinsics_are_refused(tmp_path, bad):
    write_colmap(tmp_path, params=(50, 50, 32, 24))
    model, _, _ = reconstruction(params=bad)
    model.write(tmp_path / "sparse/0", "bin")
    with pytest.raises((ColmapError, LensError), match="camera 1 in"):
        load_scene(tmp_path)


def test_every_known_model_is_either_used_or_refused_by_name(tmp_path):
    from splatcert.scene.readers.colmap import ColmapCamera

    usable = set()
    for name, number in MODELS.values():
        params = (50.0, 50.0, 32.0, 24.0, *[0.0] * 12)[:number]
        if "SIMPLE" in name or name in ("RADIAL", "RADIAL_FISHEYE"):
            params = (50.0, 32.0, 24.0, *[0.0] * 12)[:number]
        try:
            lens_of(ColmapCamera(1, name, 64, 48, params), tmp_path, tmp_path / "images")
            usable.add(name)
        except ColmapError as error:
            assert name in str(error)
    assert usable == {
        "SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV", "FULL_OPENCV",
        "OPENCV_FISHEYE", "SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE", "SIMPLE_FISHEYE", "FISHEYE",
    }  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_bytes_either_load_or_say_what_is_wrong(tmp_path, data):
    model, _, _ = reconstruction(count=3, points=4)
    kind = data.draw(st.sampled_from(KINDS))
    model.write(tmp_path / kind, kind)
    stem = data.draw(st.sampled_from(["cameras", "images", "points3D"]))
    file = tmp_path / kind / f"{stem}.{kind}"
    damaged = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(damaged)
    try:
        read_colmap(tmp_path / kind)
    except InputError as error:
        assert len(str(error).splitlines()) <= 5
