# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from splat_layouts import (
    assert_same_bits,
    inria_table,
    random_splats,
    write_inria_folder,
    write_table,
)
from splatcert.errors import InputError
from splatcert.splats.files import describe_model, load_splats
from splatcert.splats.inria import open_inria

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
    assert not open_inria(path).has_exposure


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
