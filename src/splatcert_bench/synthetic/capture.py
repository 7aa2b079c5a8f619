# SPDX-License-Identifier: Apache-2.0
"""A synthetic scene as a capture on disk: renders of the courtyard, for the smoke profile."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from splatcert.raster.render import render
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import SH_CONSTANT
from splatcert.storage.whole import replacing, write_text_whole
from splatcert_bench.run.layout import Bench
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

OPENCV_TO_OPENGL = np.diag([1.0, -1.0, -1.0, 1.0])


def make_capture(bench: Bench, scene: str) -> None:
    """Write photographs and a transforms.json, the same on every machine."""
    seed, size = bench.entry(scene).made, bench.config.made
    assert seed is not None
    folder = bench.capture(scene)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    splats = made_splats(size.gaussians, seed=seed, sh_degree=1)
    # Each scene's ring is turned a little, so that no two share a camera.
    cameras = made_cameras(size.views, size.width, size.height, turn=330.0 - 9.0 * (seed % 17))
    frames = []
    for index, camera in enumerate(cameras):
        name = f"images/{index:03d}.png"
        pixels = (render(splats, camera).rgb.clamp(0, 1) * 255).round().byte().numpy()
        with replacing(folder / name) as aside:
            Image.fromarray(pixels).save(aside, format="png")
        to_world = np.linalg.inv(camera.world_to_camera) @ OPENCV_TO_OPENGL
        frames.append({"file_path": name, "transform_matrix": to_world.tolist()})
    write_points(folder / "points.ply", splats)
    lens = cameras[0]
    shared = {"fl_x": lens.fx, "fl_y": lens.fy, "cx": lens.cx, "cy": lens.cy}
    size_of = {"w": lens.width, "h": lens.height, "ply_file_path": "points.ply"}
    content = {**shared, **size_of, "frames": frames}
    write_text_whole(folder / "transforms.json", json.dumps(content, indent=1) + "\n")


def write_points(path: Path, splats: Splats) -> None:
    """Write every third centre with its colour, as structure from motion would."""
    xyz = splats.means[::3].tolist()
    rgb = ((splats.sh[::3, 0] * SH_CONSTANT + 0.5).clamp(0, 1) * 255).round().int().tolist()
    names = [f"property float {axis}" for axis in "xyz"]
    names += [f"property uchar {colour}" for colour in ("red", "green", "blue")]
    header = ["ply", "format ascii 1.0", f"element vertex {len(xyz)}", *names, "end_header"]
    rows = [" ".join(map(str, (*p, *c))) for p, c in zip(xyz, rgb, strict=True)]
    write_text_whole(path, "\n".join([*header, *rows]) + "\n")


def capture_files(bench: Bench, scene: str) -> tuple[Path, ...]:
    """The files that `make_capture` writes."""
    folder = bench.capture(scene)
    pictures = (folder / f"images/{k:03d}.png" for k in range(bench.config.made.views))
    return (folder / "transforms.json", folder / "points.ply", *pictures)
