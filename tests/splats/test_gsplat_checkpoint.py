# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from splat_layouts import (
    assert_same_bits,
    gsplat_state,
    random_splats,
    write_gsplat_run,
)
from splatcert.errors import InputError
from splatcert.splats.files import describe_model, load_splats
from splatcert.splats.transform import FrameError, transform_splats

PLAIN = (
    "antialiased: {antialiased}\nnormalize_world_space: {normalize}\ntest_every: 8\n"
    "post_processing: {post}\npose_opt: {pose}\napp_opt: false\n"
    "strategy: !!python/object:gsplat.strategy.default.DefaultStrategy\n  verbose: true\n"
    "bilateral_grid_shape: !!python/tuple\n- 16\n- 16\n- 8\n"
)


def settings(antialiased="false", normalize="true", post="null", pose="false") -> str:
    return PLAIN.format(antialiased=antialiased, normalize=normalize, post=post, pose=pose)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("degree", [0, 3])
def test_all_ranks_of_the_last_step_are_one_model(tmp_path, ranks, degree):
    splats = random_splats(20, degree)
    write_gsplat_run(tmp_path, random_splats(5), step=6999)
    write_gsplat_run(tmp_path, splats, ranks=ranks, cfg=settings())
    ckpts = tmp_path / "ckpts"
    for path in (tmp_path, ckpts, ckpts / f"ckpt_29999_rank{ranks - 1}.pt", tmp_path / "cfg.yml"):
        assert_same_bits(load_splats(path, frame="model"), splats)
    early = load_splats(tmp_path, iteration=6999, frame="model")
    assert_same_bits(early, random_splats(5))


def test_a_missing_rank_is_noticed(tmp_path):
    write_gsplat_run(tmp_path, random_splats(9), ranks=3)
    (tmp_path / "ckpts" / "ckpt_29999_rank2.pt").unlink()
    with pytest.raises(InputError, match="rank 2"):
        load_splats(tmp_path, frame="model")
    (tmp_path / "stats").rename(tmp_path / "elsewhere")
    assert len(load_splats(tmp_path, frame="model")) == 6
    (tmp_path / "ckpts" / "ckpt_29999_rank0.pt").unlink()
    with pytest.raises(InputError, match="rank 0"):
        load_splats(tmp_path, frame="model")


def test_ranks_of_different_models_are_refused(tmp_path):
    write_gsplat_run(tmp_path, random_splats(9), ranks=2)
    other = {"step": 29999, "splats": gsplat_state(random_splats(4, 1))}
    torch.save(other, tmp_path / "ckpts" / "ckpt_29999_rank1.pt")
    with pytest.raises(InputError, match="differ in kind"):
        load_splats(tmp_path, frame="model")


def test_the_normalised_frame_is_not_passed_off_as_the_capture(tmp_path):
    splats = random_splats(6)
    write_gsplat_run(tmp_path, splats, cfg=settings())
    with pytest.raises(FrameError, match="gsplat_normalization"):
        load_splats(tmp_path)
    with pytest.raises(FrameError, match="'data', 'model' or a 4x4"):
        load_splats(tmp_path, frame="colmap")  # pyright: ignore[reportArgumentType]
    matrix = np.diag([0.5, 0.5, 0.5, 1.0])
    matrix[:3, 3] = (1, 2, 3)
    expected = transform_splats(splats, np.linalg.inv(matrix))
    assert_same_bits(load_splats(tmp_path, frame=matrix), expected)
    (tmp_path / "cfg.yml").unlink()
    with pytest.raises(FrameError, match="does not store the transform"):
        load_splats(tmp_path)


def test_a_run_without_normalisation_is_in_the_frame_of_the_capture(tmp_path):
    splats = random_splats(6)
    write_gsplat_run(tmp_path, splats, cfg=settings(antialiased="true", normalize="false"))
    loaded = load_splats(tmp_path)
    assert loaded.antialiased
    assert torch.equal(loaded.means, splats.means)
    info = describe_model(tmp_path)
    assert info.frame == "data" and info.antialiased and info.notes == ()


def test_description(tmp_path):
    cfg = settings(post="bilateral_grid", pose="true")
    write_gsplat_run(tmp_path, random_splats(31, 2), ranks=2, cfg=cfg)
    info = describe_model(tmp_path)
    assert (info.format, info.count, info.sh_degree, info.iteration) == ("gsplat", 31, 2, 29999)
    assert info.background == (0, 0, 0) and info.held_out == "every 8th image by name"
    assert info.frame == "model" and len(info.files) == 2
    text = " ".join(info.notes)
    assert "bilateral_grid" in text and "pose_adjust" in text and "normalised world" in text


def test_entries_that_change_pictures_are_reported_even_without_cfg(tmp_path):
    state = {"step": 1, "splats": gsplat_state(random_splats(3)), "scene_id": "garden"}
    state |= {"pose_adjust": {"embeds.weight": torch.zeros(2, 9)}, "post_processing": {}}
    torch.save(state, tmp_path / "mine.pt")
    text = " ".join(describe_model(tmp_path / "mine.pt").notes)
    assert "pose_adjust" in text and "post_processing" in text and "no cfg.yml" in text


def test_appearance_models_and_flat_discs_are_refused(tmp_path):
    state = gsplat_state(random_splats(3))
    del state["sh0"], state["shN"]
    state |= {"features": torch.zeros(3, 32), "colors": torch.zeros(3, 3)}
    path = tmp_path / "ckpts" / "ckpt_1_rank0.pt"
    path.parent.mkdir()
    torch.save({"step": 1, "splats": state, "app_module": {}}, path)
    with pytest.raises(InputError, match="app_opt"):
        load_splats(tmp_path, frame="model")
    torch.save({"step": 1, "splats": gsplat_state(random_splats(3))}, path)
    (tmp_path / "cfg.yml").write_text("model_type: 2dgs\n")
    with pytest.raises(InputError, match="flat discs"):
        load_splats(tmp_path, frame="model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sh0": None}, "lacks sh0"),
        ({"means": torch.zeros(3, 2)}, "means has shape"),
        ({"means": torch.tensor(1.0)}, "means has shape"),
        ({"quats": torch.zeros(2, 4)}, "quats has shape"),
        ({"opacities": torch.zeros(5)}, "5 opacities for 3"),
        ({"shN": torch.zeros(3, 7, 3)}, "match no degree"),
        ({"shN": torch.zeros(3)}, "shN has shape"),
        ({"quats": torch.zeros(3, 4)}, "length zero"),
    ],
)
def test_broken_tensors_are_refused_by_name(tmp_path, change, message):
    state = gsplat_state(random_splats(3)) | change
    torch.save({"splats": state}, tmp_path / "ckpt_5_rank0.pt")
    with pytest.raises(InputError, match=message):
        load_splats(tmp_path, frame="model")


def test_further_columns_are_kept_and_parameters_are_detached(tmp_path):
    state = gsplat_state(random_splats(3))
    state["means"] = torch.nn.Parameter(state["means"])
    state["opacities"] = state["opacities"][:, None]
    state["age"] = torch.arange(3, dtype=torch.int32)
    torch.save({"splats": state}, tmp_path / "ckpt_5_rank0.pt")
    splats = load_splats(tmp_path, frame="model")
    assert not splats.means.requires_grad
    assert splats.extra["age"].dtype == torch.int32
    assert describe_model(tmp_path).extra == ("age",)


def test_wrong_entries_and_steps_are_named(tmp_path):
    torch.save({"model": 1}, tmp_path / "ckpt_5_rank0.pt")
    with pytest.raises(InputError, match="no entry 'splats'; found model"):
        load_splats(tmp_path, frame="model")
    with pytest.raises(InputError, match="no checkpoint of step 6; it has 5"):
        load_splats(tmp_path, iteration=6, frame="model")
    with pytest.raises(InputError, match="this is a single file"):
        load_splats(tmp_path / "ckpt_5_rank0.pt", iteration=5, frame="model")


def test_an_empty_model_is_legal(tmp_path):
    write_gsplat_run(tmp_path, random_splats(0, 1), cfg=settings(normalize="false"))
    assert len(load_splats(tmp_path)) == 0
    assert json.loads(next((tmp_path / "stats").iterdir()).read_text()) == {"num_GS": 0}
