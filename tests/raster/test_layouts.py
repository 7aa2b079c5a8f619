# SPDX-License-Identifier: Apache-2.0
"""One model in every layout, written by test code, gives the pictures of the original."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from splat_layouts import (
    brush_table,
    gsplat_world,
    moved_along,
    nerfstudio_state,
    write_gsplat_run,
    write_inria_folder,
    write_nerfstudio_run,
    write_table,
)
from splatcert.raster.placement import load_for_scene
from splatcert.raster.render import render
from splatcert.scene.dataset import SparsePoints
from splatcert.scene.scene import Scene, scene_from_tensors
from splatcert.splats.gaussians import Splats
from splatcert_bench.synthetic.scenes import made_cameras, made_splats


@pytest.fixture(scope="module")
def splats() -> Splats:
    return made_splats(3_000)


@pytest.fixture(scope="module")
def scene(splats: Splats) -> Scene:
    """Photographs of the model, with every third Gaussian's centre for a sparse point."""
    cameras = {f"{k:02d}.png": camera for k, camera in enumerate(made_cameras(12, 96, 63))}
    photos = {name: render(splats, camera).rgb.clamp(0, 1) for name, camera in cameras.items()}
    cloud = splats.means[::3].double().numpy()
    points = SparsePoints(cloud, np.zeros(cloud.shape, np.uint8))
    return scene_from_tensors(cameras, photos, held_out=["00.png", "08.png"], points=points)


def inria(folder: Path, splats: Splats, scene: Scene) -> Path:
    cfg = "Namespace(sh_degree=3, white_background=False, eval=True)"
    return write_inria_folder(folder, {7000: splats[:10], 30000: splats}, cfg)


def gsplat(folder: Path, splats: Splats, scene: Scene) -> Path:
    assert scene.points is not None
    poses = np.stack([np.linalg.inv(c.world_to_camera) for c in scene.cameras.values()])
    world = gsplat_world(poses, scene.points.xyz.astype(np.float32).astype(np.float64))
    return write_gsplat_run(folder, moved_along(splats, world), ranks=3)


def nerfstudio(folder: Path, splats: Splats, scene: Scene) -> Path:
    transform, scale = np.eye(4), 0.21
    transform[:3, :3] = Rotation.from_rotvec([0.4, -1.1, 0.3]).as_matrix()
    transform[:3, 3] = (0.7, -0.2, 0.4)
    state = nerfstudio_state(moved_along(splats, np.diag([scale] * 3 + [1.0]) @ transform))
    return write_nerfstudio_run(folder, state, transform=transform, scale=scale)


def brush(folder: Path, splats: Splats, scene: Scene) -> Path:
    folder.mkdir()
    return write_table(folder / "export_30000.ply", brush_table(splats))


@pytest.mark.parametrize("write", [inria, gsplat, nerfstudio, brush])
def test_every_layout_gives_the_pictures_of_the_original(
    write: Callable[[Path, Splats, Scene], Path], splats, scene, tmp_path
):
    path = write(tmp_path / "run", splats, scene)
    loaded = load_for_scene(path, scene, background=(0.0, 0.0, 0.0)).splats
    for name in ("00.png", "03.png", "08.png"):
        camera = scene.cameras[name]
        ours, original = render(loaded, camera), render(splats, camera)
        assert (ours.rgb - original.rgb).abs().max() <= 1e-5
        assert (ours.alpha - original.alpha).abs().max() <= 1e-5
        assert (ours.depth - original.depth).abs().max() <= 1e-5 * original.depth.max()
