# SPDX-License-Identifier: Apache-2.0
"""A small project with every file and folder that the documentation's commands name."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import which

import numpy as np
from PIL import Image

from scene_writers import Colmap, Pose
from splat_layouts import (
    brush_table,
    gsplat_world,
    inria_table,
    moved_along,
    nerfstudio_state,
    write_gsplat_run,
    write_inria_folder,
    write_nerfstudio_run,
    write_table,
)
from splatcert.camera import Camera
from splatcert.raster.render import render
from splatcert.splats.files import save_ply
from splatcert.splats.formats.save import save_glb, save_spz
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import SH_CONSTANT
from splatcert.storage.png import to_pixels
from splatcert_bench.synthetic.scenes import made_cameras, made_splats
from ssh_keys import write_key

sys.path.insert(0, str(Path(__file__).parents[1] / "splats/formats"))
import packed_layouts

NERFSTUDIO_RUN = "outputs/truck/splatfacto/2026-01-01_120000"
EVALUATION = """
pipeline:
  datamanager:
    dataparser: {eval_mode: interval, eval_interval: 8}
  model: {background_color: black, rasterize_mode: classic}
"""
SMOKE = 'profile = "smoke"\n'
SCENES = """
[[scene]]
name = "hall"
family = "mine"
path = "hall"

[[scene]]
name = "yard"
family = "mine"
path = "yard"
"""


def write_project(folder: Path) -> None:
    """A COLMAP capture of made splats, and the same splats as every trainer leaves them."""
    splats, cameras = made_splats(600, sh_degree=1), made_cameras(24, 48, 32)
    cloud = write_capture(folder / "data/truck", splats, cameras)

    for name in ("point_cloud.ply", "scene.ply"):
        save_ply(splats, folder / name)
    save_spz(splats, folder / "scene.spz")
    save_glb(splats, folder / "scene.glb")
    comment = ("Exported from Brush",)
    write_table(folder / "brush.ply", brush_table(splats), comments=comment)
    write_table(folder / "postshot.ply", inria_table(splats), comments=("antialiased 0",))
    (folder / "scene.compressed.ply").write_bytes(packed_layouts.compressed_ply(splats))
    (folder / "scene.sog").write_bytes(packed_layouts.zipped(packed_layouts.sog(splats)))
    settings = "Namespace(sh_degree=1, white_background=False, eval=True)"
    write_inria_folder(folder / "output/truck", {30000: splats}, settings)
    poses = np.stack([np.linalg.inv(camera.world_to_camera) for camera in cameras])
    world = gsplat_world(poses, cloud.astype(np.float32).astype(np.float64))
    config = "test_every: 8\nnormalize_world_space: true\nantialiased: false\n"
    write_gsplat_run(folder / "results/truck", moved_along(splats, world), cfg=config)
    moved = np.diag([0.5, 0.5, 0.5, 1.0])
    write_nerfstudio_run(
        folder / NERFSTUDIO_RUN,
        nerfstudio_state(moved_along(splats, moved)),
        transform=np.eye(4),
        scale=0.5,
        config=EVALUATION,
    )
    (folder / "docs").mkdir()
    if which("ssh-keygen"):
        write_key(folder / "key")
        public = (folder / "key.pub").read_text()
        (folder / "allowed").write_text(f"ada@example.com {public}")


def write_bench(folder: Path) -> None:
    """Two captures with enough photographs for splits, and files that list scenes."""
    for seed, name in enumerate(("hall", "yard")):
        splats, cameras = made_splats(600, seed=seed, sh_degree=1), made_cameras(39, 48, 32)
        write_capture(folder / "captures" / name, splats, cameras)
    (folder / "smoke.toml").write_text(SMOKE)
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks/cpu.toml").write_text(SMOKE + SCENES)


def write_capture(folder: Path, splats: Splats, cameras: list[Camera]) -> np.ndarray:
    """Photographs and a COLMAP reconstruction; returns its points."""
    names = [f"{k:03d}.png" for k in range(len(cameras))]
    (folder / "images").mkdir(parents=True)
    for name, camera in zip(names, cameras, strict=True):
        photo = Image.fromarray(to_pixels(render(splats, camera).rgb.numpy()))
        photo.save(folder / "images" / name)
    cloud = splats.means[::2].double().numpy()
    colours = (255 * (0.5 + SH_CONSTANT * splats.sh[::2, 0])).clamp(0, 255).int().tolist()
    points = list(zip(cloud, colours, strict=True))
    reconstruction(cameras, names, points).write(folder / "sparse/0", "bin")
    return cloud


def reconstruction(
    cameras: list[Camera], names: list[str], points: list[tuple[np.ndarray, list[int]]]
) -> Colmap:
    lens = cameras[0]
    images = []
    for key, (camera, name) in enumerate(zip(cameras, names, strict=True), 1):
        pose = Pose(camera.world_to_camera[:3, :3].T, camera.centre)
        images.append((key, pose.quaternion, pose.translation, 1, name, []))
    intrinsics = [lens.fx, lens.fy, lens.cx, lens.cy]
    return Colmap(
        cameras=[(1, "PINHOLE", lens.width, lens.height, intrinsics)],
        images=images,
        points=[(key, xyz, tuple(rgb), 0.5, []) for key, (xyz, rgb) in enumerate(points, 1)],
    )
