# SPDX-License-Identifier: Apache-2.0
"""A model comes back to its capture's coordinates, whichever trainer moved it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from splatcert.commands.frames import load_for_scene
from splatcert.scene.dataset import WorldFrame
from splatcert.scene.points import SparsePoints
from splatcert.scene.scene import Scene, scene_from_tensors
from splatcert.splats.gsplat_frame import gsplat_normalization
from splatcert.splats.transform import transform_splats

TURNED = np.array([[1.0, 0, 0, 0.3], [0, 0, 1, -0.2], [0, -1, 0, 0.1], [0, 0, 0, 1]])


@pytest.fixture
def scene(splats, cameras) -> Scene:
    cloud = splats.means.numpy().astype(np.float64)
    points = SparsePoints(cloud, np.zeros(cloud.shape, np.uint8))
    black = {name: torch.zeros(c.height, c.width, 3) for name, c in cameras.items()}
    return scene_from_tensors(cameras, black, held_out=[next(iter(cameras))], points=points)


def same_place(found, expected) -> bool:
    return torch.allclose(found.means, expected.means, atol=1e-4) and torch.allclose(
        found.log_scales, expected.log_scales, atol=1e-4
    )


def test_a_ply_is_taken_as_it_is(model, scene, splats):
    found, words = load_for_scene(model, scene)
    assert same_place(found, splats)
    assert words == "as stored"


def test_the_normalisation_of_gsplat_is_rebuilt(tmp_path, scene, splats):
    poses = np.linalg.inv([camera.world_to_camera for camera in scene.cameras.values()])
    moved = transform_splats(splats, gsplat_normalization(poses, splats.means.numpy()))
    state = {
        "means": moved.means,
        "scales": moved.log_scales,
        "quats": moved.quats,
        "opacities": moved.logit_opacities,
        "sh0": moved.sh[:, :1].clone(),
        "shN": moved.sh[:, 1:].clone(),
    }
    torch.save({"step": 1, "splats": state}, tmp_path / "ckpt_1_rank0.pt")
    found, words = load_for_scene(tmp_path / "ckpt_1_rank0.pt", scene)
    assert same_place(found, splats)
    assert words.startswith("rebuilt from the capture")


def test_a_nerfstudio_model_follows_the_dataset_s_own_transform(tmp_path, scene, splats):
    """The stored way back ends at the original data, a step before the scene's frame."""
    frame = WorldFrame(applied_transform=TURNED, applied_scale=2.0)
    original = transform_splats(splats, np.linalg.inv(frame.original_to_scene))
    trained = transform_splats(original, np.diag([0.25, 0.25, 0.25, 1.0]))
    prefix = "_model.gauss_params."
    state = {
        prefix + "means": trained.means,
        prefix + "scales": trained.log_scales,
        prefix + "quats": trained.quats,
        prefix + "features_dc": trained.sh[:, 0].clone(),
        prefix + "features_rest": trained.sh[:, 1:].clone(),
        prefix + "opacities": trained.logit_opacities[:, None].clone(),
    }
    (tmp_path / "nerfstudio_models").mkdir()
    checkpoint = tmp_path / "nerfstudio_models" / "step-000000001.ckpt"
    torch.save({"step": 1, "pipeline": state}, checkpoint)
    way = {"transform": np.eye(4)[:3].tolist(), "scale": 0.25}
    (tmp_path / "dataparser_transforms.json").write_text(json.dumps(way))
    found, _ = load_for_scene(tmp_path, replace(scene, frame=frame))
    assert same_place(found, splats)
