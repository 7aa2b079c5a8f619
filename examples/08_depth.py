# SPDX-License-Identifier: Apache-2.0
"""Certified depth: rendered depth against a (synthetic) sensor, in metres."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

import splatcert as sc
from splatcert.conformal import Quantity, ViewConformal
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

Array = NDArray[np.float64]
rng = np.random.default_rng(0)

# The world, and a model of it whose Gaussians are slightly out of place.
world = made_splats(600, sh_degree=1)
random = torch.Generator().manual_seed(0)
shift = 0.02 * torch.randn(world.means.shape, generator=random)
model = replace(world, means=world.means + shift)


def depths(splats: sc.Splats, camera: sc.Camera) -> tuple[Array, Array]:
    """Rendered depth, and how opaque each pixel is."""
    shown = sc.render(splats, camera)
    return shown.depth.numpy().astype(np.float64), shown.alpha.numpy().astype(np.float64)


def compare(camera: sc.Camera) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Residual against the sensor, a scale that knows no sensor, and where both have depth."""
    true, seen = depths(world, camera)
    rendered, alpha = depths(model, camera)
    sensor = true + 0.005 * true * rng.standard_normal(true.shape)
    down: Array = np.diff(rendered, axis=0, append=rendered[-1:])
    across: Array = np.diff(rendered, axis=1, append=rendered[:, -1:])
    edges = np.hypot(down, across)  # depth is hard to tell where it jumps
    scale = 0.01 * rendered + 0.5 * edges + 1e-3
    return np.abs(sensor - rendered), scale, (seen > 0.5) & (alpha > 0.5)


# Sixty views drawn at random: twenty calibrate, the others test.
cameras = made_cameras(60, 60, 40)
order = [int(k) for k in rng.permutation(60)]
views = [compare(cameras[k]) for k in order]
residuals, scales, masks = (list(column) for column in zip(*views, strict=True))

depth = Quantity("depth", "m")
conformal = ViewConformal("1/10", "1/10", depth)
conformal.conformalize(residuals[:20], scales[:20], masks[:20])
print(conformal.guarantee())

found = conformal.evaluate(residuals[20:], scales[20:], masks[20:])
print(f"test views  {found.covered_views} of {found.views} covered, at a target of 90%")

# A new view needs its rendered depth and its scale, but no sensor.
rendered, _ = depths(model, cameras[order[20]])
boxes = conformal.predict_interval(rendered[..., None], scales[20], masks[20])
print(
    f"a view      {depth.half_width(float(np.median(boxes.half_width[masks[20]])))} at its median"
)
