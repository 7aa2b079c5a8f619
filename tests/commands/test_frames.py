# SPDX-License-Identifier: Apache-2.0
"""A model comes back to its capture's coordinates, whichever trainer moved it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from splat_layouts import nerfstudio_state, write_gsplat_run, write_nerfstudio_run
from splatcert.raster.placement import load_for_scene
from splatcert.raster.render import render
from splatcert.scene.dataset import SparsePoints, WorldFrame
from splatcert.scene.scene import Scene, scene_from_tensors
from splatcert.splats.files import save_ply
from splatcert.splats.gaussians import Splats
from splatcert.splats.gsplat_frame import gsplat_normalization
from splatcert.splats.transform import FrameError, transform_splats

TURNED = np.array([[1.0, 0, 0, 0.3], [0, 0, 1, -0.2], [0, -1, 0, 0.1], [0, 0, 0, 1]])


@pytest.fixture
def scene(splats, cameras) -> Scene:
    cloud = splats.means.numpy().astype(np.float64)
    points = SparsePoints(cloud, np.zeros(cloud.shape, np.uint8))
    photos = {name: render(splats, c).rgb.clamp(0, 1) for name, c in cameras.items()}
    return scene_from_tensors(cameras, photos, held_out=[next(iter(cameras))], points=points)


@pytest.fixture
def normalised(scene, splats) -> Splats:
    """The splats in the frame of gsplat's trainer."""
    poses = np.linalg.inv([camera.world_to_camera for camera in scene.cameras.values()])
    return transform_splats(splats, gsplat_normalization(poses, splats.means.numpy()))


def same_place(found, expected) -> bool:
    return torch.allclose(found.means, expected.means, atol=1e-4) and torch.allclose(
        found.log_scales, expected.log_scales, atol=1e-4
    )


def unlike(scene: Scene) -> Scene:
    """The same cameras with photographs of something else."""
    photos = {view.name: view.image().flip(0) for view in scene.training}
    held_out = scene.held_out.names
    return scene_from_tensors(scene.cameras, photos, held_out=held_out, points=scene.points)


def test_a_ply_is_taken_as_it_is_and_compared_with_the_photos(model, scene, splats):
    placed = load_for_scene(model, scene)
    assert same_place(placed.splats, splats)
    assert re.fullmatch(r"as stored; \d+\.\d dB on 4 training photos", placed.words())
    assert "do not look like the photos" in load_for_scene(model, unlike(scene)).words()


def test_the_normalisation_of_gsplat_is_rebuilt_and_checked(tmp_path, scene, splats, normalised):
    path = write_gsplat_run(tmp_path / "run", normalised)
    placed = load_for_scene(path, scene)
    assert same_place(placed.splats, splats)
    assert placed.words().startswith("rebuilt from the capture (gsplat")
    assert placed.next_best is not None and placed.fit.psnr > placed.next_best + 10
    with pytest.raises(FrameError, match="the model does not match"):
        load_for_scene(path, unlike(scene))


def test_a_ply_that_gsplat_exported_is_recognised_by_the_photos(
    tmp_path, scene, splats, normalised
):
    save_ply(normalised, tmp_path / "export.ply")
    placed = load_for_scene(tmp_path / "export.ply", scene)
    assert same_place(placed.splats, splats)
    assert placed.how.startswith("rebuilt from the capture (gsplat")


def test_a_nerfstudio_model_follows_the_dataset_s_own_transform(tmp_path, scene, splats):
    """The stored way back ends at the original data, a step before the scene's frame."""
    frame = WorldFrame(applied_transform=TURNED, applied_scale=2.0)
    original = transform_splats(splats, np.linalg.inv(frame.original_to_scene))
    trained = transform_splats(original, np.diag([0.25, 0.25, 0.25, 1.0]))
    write_nerfstudio_run(tmp_path, nerfstudio_state(trained), transform=np.eye(4), scale=0.25)
    placed = load_for_scene(tmp_path, replace(scene, frame=frame))
    assert same_place(placed.splats, splats)
