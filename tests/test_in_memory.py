# SPDX-License-Identifier: Apache-2.0
"""Parameters, pictures and cameras that never were in a file."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import splatcert as sc
from splatcert.camera import CameraError
from splatcert.scene.scene import PictureError
from splatcert.splats.gaussians import SplatsError
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

GRID = {"fx": 50.0, "fy": 51.0, "cx": 30.0, "cy": 20.0, "width": 60, "height": 40}


@pytest.mark.parametrize("activated", [True, False])
def test_gsplat_parameters_there_and_back(activated):
    splats = made_splats(50, sh_degree=2)
    again = sc.Splats.from_gsplat(splats.to_gsplat(activated=activated), activated=activated)
    for name in ("means", "quats", "log_scales", "logit_opacities", "sh"):
        found, given = getattr(again, name), getattr(splats, name)
        torch.testing.assert_close(found, given, rtol=1e-4, atol=1e-5)  # logits of large opacities


def test_the_trainers_layout_is_gsplats():
    params = made_splats(5, sh_degree=2).to_gsplat(activated=False)
    shapes = {name: list(tensor.shape) for name, tensor in params.items()}
    assert shapes == {
        "means": [5, 3],
        "quats": [5, 4],
        "scales": [5, 3],
        "opacities": [5],
        "sh0": [5, 1, 3],
        "shN": [5, 8, 3],
    }


def test_logarithms_are_not_taken_for_scales():
    with pytest.raises(SplatsError, match="say that they are not activated"):
        sc.Splats.from_gsplat(made_splats(5).to_gsplat(activated=False), activated=True)


def test_missing_parameters_are_named():
    with pytest.raises(SplatsError, match="lack quats, shN"):
        params = made_splats(5).to_gsplat(activated=False)
        sc.Splats.from_gsplat(
            {n: t for n, t in params.items() if n not in ("quats", "shN")}, activated=False
        )


def test_a_colmap_pose_is_world_to_camera():
    half = np.sqrt(0.5)  # a quarter turn about z
    camera = sc.Camera.from_colmap([half, 0, 0, half], [1, 2, 3], **GRID)
    np.testing.assert_allclose(
        camera.world_to_camera[:3], [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3]], atol=1e-12
    )
    with pytest.raises(CameraError, match="length zero"):
        sc.Camera.from_colmap([0, 0, 0, 0], [1, 2, 3], **GRID)


@pytest.mark.parametrize("camera", made_cameras(3, 60, 40))
def test_opengl_and_nerfstudio_describe_the_same_camera(camera):
    to_world = np.linalg.inv(camera.world_to_camera) * np.array([1.0, -1.0, -1.0, 1.0])
    grid = {name: getattr(camera, name) for name in GRID}
    theirs = SimpleNamespace(  # as nerfstudio's Cameras are after indexing: numbers of shape [1]
        camera_to_worlds=torch.tensor(to_world[:3]),
        distortion_params=torch.zeros(6),
        **{name: torch.tensor([value]) for name, value in grid.items()},
    )
    for found in (
        sc.Camera.from_opengl(to_world, **grid),
        sc.Camera.from_opengl(to_world[:3], **grid),
        sc.Camera.from_nerfstudio(theirs),
    ):
        np.testing.assert_allclose(found.world_to_camera, camera.world_to_camera, atol=1e-6)
        assert (found.width, found.height) == (camera.width, camera.height)
        assert found.fx == pytest.approx(camera.fx, rel=1e-6)
    with pytest.raises(CameraError, match="distortion"):
        sc.Camera.from_nerfstudio(SimpleNamespace(**vars(theirs) | {"distortion_params": [0.1]}))


def test_pictures_are_bytes_or_floats():
    cameras = made_cameras(3, 6, 4)
    random = np.random.default_rng(0).integers(0, 256, (3, 4, 6, 3), dtype=np.uint8)
    scene = sc.Scene.from_arrays(list(random), cameras, held_out=[1])
    floats = sc.Scene.from_arrays(list(random / 255), cameras, held_out=["view_0001"])
    assert scene.training.names == floats.training.names == ("view_0000", "view_0002")
    assert scene.held_out.names == ("view_0001",)
    for one, other in zip(scene.training, floats.training, strict=True):
        torch.testing.assert_close(one.image(), other.image())


@pytest.mark.parametrize(
    ("picture", "why"),
    [
        (np.zeros((4, 6)), "expected height, width, 3"),
        (np.zeros((4, 6, 4), np.uint8), "expected height, width, 3"),
        (np.full((4, 6, 3), 200.0), "floats from 0 to 1"),
        (np.full((4, 6, 3), np.nan), "floats from 0 to 1"),
        (np.zeros((4, 6, 3), np.int32), "must be uint8"),
        (np.zeros((5, 6, 3), np.uint8), "its camera 4 x 6"),
    ],
)
def test_pictures_that_are_none(picture, why):
    with pytest.raises(PictureError, match=why):
        sc.Scene.from_arrays([picture], made_cameras(1, 6, 4), held_out=[])


def test_views_that_do_not_exist():
    cameras = made_cameras(2, 6, 4)
    with pytest.raises(PictureError, match="1 held-out views have no camera: view_0007"):
        sc.Scene.from_arrays([], cameras, held_out=[7])
    with pytest.raises(PictureError, match="1 pictures have no camera: a"):
        sc.Scene.from_arrays({"a": np.zeros((4, 6, 3))}, {"b": cameras[0]}, held_out=["b"])
