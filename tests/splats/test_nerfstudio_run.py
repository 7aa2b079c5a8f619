# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from splat_layouts import (
    assert_same_bits,
    nerfstudio_state,
    random_splats,
    write_nerfstudio_run,
)
from splatcert.errors import InputError
from splatcert.splats.files import describe_model, load_splats
from splatcert.splats.harmonics import colours
from splatcert.splats.nerfstudio import open_nerfstudio, read_nerfstudio
from splatcert.splats.transform import FrameError, transform_splats

CONFIG = """!!python/object:nerfstudio.engine.trainer.TrainerConfig
_target: !!python/name:nerfstudio.engine.trainer.Trainer ''
data: !!python/object/apply:pathlib.PosixPath
- data
- truck
method_name: splatfacto
pipeline: !!python/object:nerfstudio.pipelines.base_pipeline.VanillaPipelineConfig
  datamanager: !!python/object:nerfstudio.data.datamanagers.FullImageDatamanagerConfig
    dataparser: !!python/object:nerfstudio.data.dataparsers.NerfstudioDataParserConfig
      {parser}
  model: !!python/object:nerfstudio.models.splatfacto.SplatfactoModelConfig
    background_color: {background}
    rasterize_mode: {mode}
    sh_degree: 3
    use_bilateral_grid: {grid}
    camera_optimizer: !!python/object:nerfstudio.cameras.camera_optimizers.CameraOptimizerConfig
      mode: {cameras}
"""


def config(
    parser="eval_mode: fraction\n      train_split_fraction: 0.9",
    background="random",
    mode="classic",
    grid="false",
    cameras="'off'",
) -> str:
    return CONFIG.format(
        parser=parser, background=background, mode=mode, grid=grid, cameras=cameras
    )


@pytest.mark.parametrize(
    "prefix",
    [
        "_model.gauss_params.",
        "_model.",
        "module._model.gauss_params.",
        "_model.module.gauss_params.",
        "module._model.",
    ],
)
@pytest.mark.parametrize("degree", [1, 3])
def test_old_and_new_names_are_read(tmp_path, prefix, degree):
    splats = random_splats(15, degree)
    write_nerfstudio_run(tmp_path, nerfstudio_state(splats, prefix), config=config())
    models = tmp_path / "nerfstudio_models"
    for path in (
        tmp_path,
        models,
        models / "step-000029999.ckpt",
        tmp_path / "config.yml",
    ):
        assert_same_bits(load_splats(path, frame="model"), splats)


def test_the_last_step_is_loaded_unless_another_is_asked_for(tmp_path):
    early, late = random_splats(3), random_splats(4)
    write_nerfstudio_run(tmp_path, nerfstudio_state(late), step=29999)
    write_nerfstudio_run(tmp_path, nerfstudio_state(early), step=1999)
    assert len(load_splats(tmp_path, frame="model")) == 4
    assert len(load_splats(tmp_path, iteration=1999, frame="model")) == 3
    with pytest.raises(InputError, match="no checkpoint of step 7; it has 1999, 29999"):
        load_splats(tmp_path, iteration=7, frame="model")


def test_without_harmonics_the_colour_is_a_sigmoid(tmp_path):
    splats = random_splats(8, 0)
    write_nerfstudio_run(tmp_path, nerfstudio_state(splats))
    loaded = load_splats(tmp_path, frame="model")
    shown = colours(loaded.sh, loaded.means, torch.tensor([9.0, 9.0, 9.0]))
    torch.testing.assert_close(shown, splats.sh[:, 0].sigmoid())


def test_the_capture_frame_is_restored(tmp_path):
    """x_model = scale * (transform @ [x, 1]), as nerfstudio moves its seed points."""
    original = random_splats(20, 3)
    transform = np.eye(4)
    transform[:3, :3] = Rotation.random(random_state=3).as_matrix()
    transform[:3, 3] = (0.3, -1.2, 4.0)
    scale = 0.21
    points = original.means.numpy().astype(np.float64)
    homogeneous = np.column_stack([points, np.ones(len(points))])
    moved = scale * (homogeneous @ transform[:3].T)
    similarity = np.vstack([scale * transform[:3], [0, 0, 0, 1]])
    model = transform_splats(original, similarity)
    np.testing.assert_allclose(model.means, moved, atol=1e-5)
    write_nerfstudio_run(tmp_path, nerfstudio_state(model), transform=transform, scale=scale)
    loaded = load_splats(tmp_path)
    torch.testing.assert_close(loaded.means, original.means, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(loaded.sh, original.sh, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(loaded.log_scales, original.log_scales, rtol=1e-5, atol=1e-5)
    assert torch.equal(load_splats(tmp_path, frame="model").means, model.means)
    assert describe_model(tmp_path).frame == "data"


def test_without_the_way_back_the_capture_frame_is_refused(tmp_path):
    write_nerfstudio_run(tmp_path, nerfstudio_state(random_splats(3)))
    with pytest.raises(FrameError, match=r"dataparser_transforms\.json"):
        load_splats(tmp_path)
    assert describe_model(tmp_path).frame == "model"
    (tmp_path / "dataparser_transforms.json").write_text('{"transform": [[1]]}')
    with pytest.raises(InputError, match="3x4"):
        load_splats(tmp_path)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, (False, (0.1490, 0.1647, 0.2157), "fraction, 0.9 for training")),
        (
            {"mode": "antialiased", "background": "white", "parser": "eval_mode: all"},
            (True, (1, 1, 1), "all"),
        ),
        (
            {"background": "black", "parser": "eval_mode: interval\n      eval_interval: 8"},
            (False, (0, 0, 0), "interval 8"),
        ),
        ({"parser": "train_split_fraction: 0.8"}, (False, None, "fraction, 0.8 for training")),
        ({"parser": "data: x"}, (False, None, None)),
    ],
)
def test_settings_are_reported(tmp_path, more, expected):
    write_nerfstudio_run(tmp_path, nerfstudio_state(random_splats(5, 2)), config=config(**more))
    info = describe_model(tmp_path)
    assert (info.format, info.count, info.sh_degree, info.iteration) == (
        "nerfstudio",
        5,
        2,
        29999,
    )
    antialiased, background, held_out = expected
    assert info.antialiased is antialiased and info.held_out == held_out
    if background is not None:
        assert info.background == background
    assert load_splats(tmp_path, frame="model").antialiased is antialiased


def test_what_changes_pictures_is_noted(tmp_path):
    text = config(grid="true", cameras="SO3xR3", parser="eval_mode: all")
    write_nerfstudio_run(tmp_path, nerfstudio_state(random_splats(2)), config=text)
    notes = " ".join(describe_model(tmp_path).notes)
    assert "random backgrounds" in notes and "bilateral" in notes
    assert "moved the training cameras" in notes and "every image" in notes
    (tmp_path / "config.yml").unlink()
    assert "no config.yml" in " ".join(describe_model(tmp_path).notes)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("features_dc", None, "lacks features_dc"),
        ("means", torch.zeros(3, 2), "means has shape"),
        ("means", torch.tensor(0.0), "means has shape"),
        ("scales", torch.zeros(2, 3), "scales has shape"),
        ("features_rest", torch.zeros(3, 15), "features_rest has shape"),
        ("features_dc", torch.zeros(3, 4), "features_dc does not fit 3"),
        ("opacities", torch.zeros(4, 1), "opacities does not fit 3"),
        ("means", torch.full((3, 3), float("inf")), "means: 3 of 3"),
    ],
)
def test_broken_tensors_are_refused_by_name(tmp_path, name, value, message):
    state = nerfstudio_state(random_splats(3))
    state["_model.gauss_params." + name] = value
    write_nerfstudio_run(tmp_path, state)
    with pytest.raises(InputError, match=message):
        load_splats(tmp_path, frame="model")


def test_other_methods_are_refused(tmp_path):
    write_nerfstudio_run(tmp_path, {"_model.field.weight": torch.zeros(2)})
    with pytest.raises(InputError, match="not a splatfacto model"):
        load_splats(tmp_path, frame="model")
    torch.save({"pipeline": 3}, tmp_path / "nerfstudio_models" / "step-000029999.ckpt")
    with pytest.raises(InputError, match="no entry 'pipeline'"):
        load_splats(tmp_path, frame="model")


def test_loaded_tensors_do_not_depend_on_the_file(tmp_path):
    """Checkpoints are mapped; a model must survive the file it came from."""
    splats = random_splats(200, 3)
    write_nerfstudio_run(tmp_path, nerfstudio_state(splats))
    run = open_nerfstudio(tmp_path)
    loaded = read_nerfstudio(run)
    run.checkpoint.write_bytes(b"\0" * run.checkpoint.stat().st_size)
    assert_same_bits(loaded, splats)


def test_an_empty_model_is_legal(tmp_path):
    write_nerfstudio_run(tmp_path, nerfstudio_state(random_splats(0, 1)))
    assert len(load_splats(tmp_path, frame="model")) == 0
