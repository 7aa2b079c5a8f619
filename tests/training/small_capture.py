# SPDX-License-Identifier: Apache-2.0
"""A small made capture to train on."""

from __future__ import annotations

import numpy as np

from splatcert.raster.render import render
from splatcert.scene.dataset import SparsePoints
from splatcert.scene.scene import Scene, scene_from_tensors
from splatcert.splats.harmonics import SH_CONSTANT
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

WIDTH, HEIGHT = 72, 48


def made_scene(views: int = 16, held_out: int = 8, points: int = 400) -> Scene:
    """Pictures of a made splat from an arc, and some of its centres as sparse points."""
    truth = made_splats(3_000, sh_degree=1)
    cameras = made_cameras(views, WIDTH, HEIGHT, turn=60)
    names = [f"{k:03d}.png" for k in range(views)]
    pictures = {n: render(truth, c).rgb.clamp(0, 1) for n, c in zip(names, cameras, strict=True)}
    hidden = [n for k, n in enumerate(names) if k % held_out == 0]
    chosen = np.random.default_rng(0).choice(len(truth), points, replace=False)
    rgb = (truth.sh[chosen, 0] * SH_CONSTANT + 0.5).clamp(0, 1)
    sparse = SparsePoints(xyz=truth.means[chosen].double().numpy(), rgb=(255 * rgb).byte().numpy())
    return scene_from_tensors(
        dict(zip(names, cameras, strict=True)), pictures, held_out=hidden, points=sparse
    )
