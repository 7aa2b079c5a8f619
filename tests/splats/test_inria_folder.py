# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from splat_layouts import (
    assert_same_bits,
    inria_table,
    random_splats,
    write_inria_folder,
    write_table,
)
from splatcert.camera import Camera
from splatcert.errors import InputError
from splatcert.splats.files import describe_model, load_splats
from splatcert.splats.inria import as_inria, open_inria, trained_size

CFG = (
    "Namespace(sh_degree=3, source_path='/captures/truck', model_path='./output/1', "
    "images='images', depths='', resolution=-1, white_background=False, "
    "train_test_exp=False, data_device='cuda', eval=True)"
)


@pytest.fixture
def folder(tmp_path):
    models = {n: random_splats(10 + n // 1000, 3, seed=n) for n in (7000, 30000, 900)}
    return write_inria_folder(tmp_path / "output", models, CFG), models


def test_the_largest_iteration_is_loaded_unless_another_is_asked_for(folder):
    path, models = folder
    assert_same_bits(load_splats(path), models[30000])
    assert_same_bits(load_splats(path, iteration=7000), models[7000])
    with pytest.raises(InputError, match="no iteration 8000; it has 900, 7000, 30000"):
        load_splats(path, iteration=8000)


@pytest.mark.parametrize("name", ["cfg_args", "point_cloud/iteration_30000"])
def test_paths_inside_the_folder_lead_to_the_model(folder, name):
    path, models = folder
    assert_same_bits(load_splats(path / name), models[30000])


def test_settings_are_reported(folder):
    path, _ = folder
    info = describe_model(path)
    assert (info.format, info.count, info.sh_degree, info.iteration) == ("inria", 40, 3, 30000)
    assert info.background == (0, 0, 0) and info.frame == "data"
    assert info.held_out == "every 8th image by name"
    assert any("cx and cy" in note for note in info.notes)
    run = open_inria(path)
    assert run.source_path == "/captures/truck" and run.images == "images"
    assert run.sh_degree == 3 and run.resolution == -1 and not run.has_exposure


def test_without_eval_or_without_cfg_args_the_notes_say_so(tmp_path):
    models = {1: random_splats(2, 0)}
    told = CFG.replace("eval=True", "eval=False").replace("ground=False", "ground=True")
    kept = write_inria_folder(tmp_path / "a", models, told.replace("exp=False", "exp=True"))
    info = describe_model(kept)
    assert info.background == (1, 1, 1) and info.held_out == "none"
    assert any("without --eval" in note for note in info.notes)
    assert any("exposure" in note for note in info.notes)
    bare = describe_model(write_inria_folder(tmp_path / "b", models, None))
    assert bare.background is None and bare.held_out is None
    assert any("no cfg_args" in note for note in bare.notes)


def test_an_uncertainty_model_keeps_its_field_as_extra_columns(tmp_path):
    """3DGS-U writes change_0 ... change_15 after the rotation."""
    table = inria_table(random_splats(4, 3))
    table |= {f"change_{k}": np.full(4, k, np.float32) for k in range(16)}
    place = tmp_path / "point_cloud" / "error_3000"
    place.mkdir(parents=True)
    path = write_table(place / "point_cloud.ply", table)
    names = tuple(f"change_{k}" for k in range(16))
    assert tuple(load_splats(path).extra) == names
    assert describe_model(path).extra == names


def test_cameras_are_world_to_camera_with_a_centred_principal_point(folder):
    path, _ = folder
    turn = Rotation.random(random_state=1).as_matrix()
    entry = {
        "id": 0,
        "img_name": "IMG_01.jpg",
        "width": 1957,
        "height": 1091,
        "position": [1.0, 2.0, 3.0],
        "rotation": turn.tolist(),
        "fy": 1163.25,
        "fx": 1156.28,
    }
    (path / "cameras.json").write_text(json.dumps([entry]))
    run = open_inria(path)
    camera = run.cameras["IMG_01.jpg"]
    np.testing.assert_allclose(camera.centre, [1, 2, 3], atol=1e-12)
    np.testing.assert_allclose(camera.world_to_camera[:3, :3], turn.T)
    assert (camera.cx, camera.cy) == (978.5, 545.5)
    trained = run.as_trained(camera)
    assert (trained.width, trained.height) == (1600, 891)
    assert trained.fx == pytest.approx(1156.28 * 1600 / 1957)


@pytest.mark.parametrize(
    "entries", ["{}", "[{}]", '[{"img_name": "a", "rotation": [1], "position": [0, 0, 0]}]']
)
def test_broken_cameras_are_refused(folder, entries):
    path, _ = folder
    (path / "cameras.json").write_text(entries)
    with pytest.raises(InputError, match=r"cameras\.json"):
        _ = open_inria(path).cameras


@pytest.mark.parametrize(
    ("size", "resolution", "expected"),
    [
        ((979, 546), -1, (979, 546)),
        ((4946, 3286), -1, (1600, 1063)),
        ((4946, 3286), 1, (4946, 3286)),
        ((4946, 3286), 4, (1236, 822)),
        ((4946, 3286), 8, (618, 411)),
        ((4000, 3000), 1000, (1000, 750)),
    ],
)
def test_trained_sizes(size, resolution, expected):
    assert trained_size(*size, resolution) == expected


def test_a_capture_camera_as_inria_sees_it():
    camera = Camera(
        world_to_camera=np.eye(4), fx=800, fy=810, cx=333, cy=222, width=800, height=600
    )
    seen = as_inria(camera, 2)
    assert (seen.width, seen.height, seen.cx, seen.cy) == (400, 300, 200, 150)
    assert (seen.fx, seen.fy) == (400, 405)
    with pytest.raises(InputError, match="resolution"):
        as_inria(camera, -3)
