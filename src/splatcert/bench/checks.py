# SPDX-License-Identifier: Apache-2.0
"""Facts of a model that need no label: exact packing, and whether visibility has directions."""

from __future__ import annotations

import torch
from torch import Tensor

from splatcert.baselines.fitted import Fitted
from splatcert.baselines.visibility import KAPPAS, VisibilityField
from splatcert.evaluate.study import DIRECTIONS
from splatcert.field.operator import directions
from splatcert.raster.interface import View, open_view
from splatcert.scene.cameras import Camera
from splatcert.scene.scene import Scene
from splatcert.view.query import finish, pack, summarise

PASS = 3
"""Channels of one pass of a renderer that knows colours only."""


def separate_passes(view: View, values: Tensor) -> Tensor:
    """The same channels, three at a time."""
    parts = [view.composite(part.contiguous()) for part in values.split(PASS, dim=1)]
    return torch.cat(parts, dim=2)


def packing(fitted: Fitted, cameras: list[Camera]) -> dict[str, float]:
    """Largest relative differences between one pass and four."""
    maps, features = 0.0, 0.0
    background = fitted.observed.background
    for camera in cameras:
        view = open_view(fitted.observed.splats, camera, fitted.backend)
        values = pack(view, fitted.observed)
        images = view.composite(values), separate_passes(view, values)
        one, four = (finish(image, background) for image in images)
        for a, b in ((one.field, four.field), (images[0][..., 3], images[1][..., 3])):
            maps = max(maps, _difference(a.double(), b.double()))
        numbers = [
            torch.tensor([*summarise(found.maps), *found.moments], dtype=torch.float64)
            for found in (one, four)
        ]
        features = max(features, _difference(*numbers))
    return {"packing.maps": maps, "packing.features": features}


def _difference(a: Tensor, b: Tensor) -> float:
    size = torch.maximum(a.abs(), b.abs())
    return float(torch.where(size > 0, (a - b).abs() / size.clamp(min=1e-30), 0).max())


def visibility_facts(scene: Scene, fitted: Fitted, seed: int = 0) -> dict[str, float]:
    """Mean visibility of what is seen, along four kinds of directions.

    Gaussians count by their weight in the picture. Random and opposite directions replace
    those of training views; as many training views are taken as there are held-out ones.
    """
    splats = fitted.observed.splats
    fields = {kappa: VisibilityField(fitted.visibility, kappa) for kappa in KAPPAS}
    step = max(1, len(scene.training) // max(1, len(scene.held_out)))
    seen = list(scene.training.cameras[::step])
    random = torch.Generator().manual_seed(seed)
    sums = {(kappa, kind): 0.0 for kappa in KAPPAS for kind in DIRECTIONS}
    weight: dict[str, float] = dict.fromkeys(DIRECTIONS, 0.0)
    by_camera = (("training", "random", "opposite"), seen), (("test",), scene.held_out.cameras)
    for kinds, cameras in by_camera:
        for camera in cameras:
            view = open_view(splats, camera, fitted.backend)
            ones = torch.ones(camera.height, camera.width, 1)
            shown = view.scatter(ones.to(splats.means))[:, 0].double().cpu()
            towards = directions(splats.means, camera).double().cpu()
            for kind in kinds:
                along = _turned(kind, towards, random)
                weight[kind] += float(shown.sum())
                for kappa, field in fields.items():
                    sums[kappa, kind] += float((shown * field.towards(along)).sum())
    return {
        f"visibility.{kappa}.{kind}": total / max(weight[kind], 1e-30)
        for (kappa, kind), total in sums.items()
    }


def _turned(kind: str, towards: Tensor, random: torch.Generator) -> Tensor:
    if kind == "opposite":
        return -towards
    if kind == "random":
        drawn = torch.randn(towards.shape, generator=random, dtype=torch.float64)
        return torch.nn.functional.normalize(drawn, dim=1)
    return towards
