# SPDX-License-Identifier: Apache-2.0
"""Facts about a model that require no label: packing, visibility by direction and latency."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.raster.query_maps import finish
from splatcert.raster.render import open_view
from splatcert.raster.view import View
from splatcert.scales.guided import GuidedScale
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import directions
from splatcert_bench.baselines.baseline import Fitted, Members
from splatcert_bench.baselines.gavis import KAPPAS, VisibilityField
from splatcert_bench.run.entries import ENSEMBLE, FULL_ENSEMBLE
from splatcert_bench.studies.study import DIRECTIONS

PASS = 3
"""Channels per pass of a renderer for colours only."""


def separate_passes(view: View, values: Tensor) -> Tensor:
    """Composite the same channels, three at a time."""
    parts = [view.composite(part.contiguous()) for part in values.split(PASS, dim=1)]
    return torch.cat(parts, dim=2)


def packing(fitted: Fitted, cameras: list[Camera]) -> dict[str, float]:
    """Largest relative differences between the deployed query, one pass, and four passes."""
    maps, features = 0.0, 0.0
    background = fitted.scene.background
    for camera in cameras:
        view = open_view(fitted.scene.splats, camera, fitted.backend)
        one = view.query(fitted.scene.traits, background, EPSILON0)
        image = separate_passes(view, view.pack(fitted.scene.traits))
        four = finish(image, background, EPSILON0)
        for a, b in ((one.field, four.field), (one.opacity, four.opacity)):
            maps = max(maps, _difference(a.double().cpu(), b.double().cpu()))
        numbers = [
            torch.tensor([*found.statistics, *found.moments], dtype=torch.float64)
            for found in (one, four)
        ]
        features = max(features, _difference(*numbers))
    return {"packing.maps": maps, "packing.features": features}


def _difference(a: Tensor, b: Tensor) -> float:
    size = torch.maximum(a.abs(), b.abs())
    return float(torch.where(size > 0, (a - b).abs() / size.clamp(min=1e-30), 0).max())


def visibility_facts(scene: Scene, fitted: Fitted, seed: int = 0) -> dict[str, float]:
    """Mean visibility of the visible Gaussians, along four kinds of directions.

    Gaussians are weighted by their share of the image. Random and opposite directions replace
    those of training views; about as many training views are used as there are held-out ones.
    """
    splats = fitted.scene.splats
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


PASSES = ((0, 3), (3, 6), (6, 9), (9, 10))
"""Channels of a query, three at a time."""


def measure_latency(fitted: Fitted, cameras: Sequence[Camera], repeats: int) -> dict[str, float]:
    """Median seconds per query, over cameras and repeats, and the size of the image."""
    pixels = [camera.width * camera.height for camera in cameras]
    return _medians(fitted, {camera: _ways(fitted, camera) for camera in cameras}, repeats) | {
        **{f"latency.members.{n}": float(len(m.splats)) for n, m in _timed(fitted).items()},
        "latency.megapixels": float(np.mean(pixels)) / 1e6,
    }


def guided_latency(
    fitted: Fitted, cameras: Sequence[Camera], repeats: int, scales: Mapping[str, GuidedScale]
) -> dict[str, float]:
    """Median seconds per query of guided scales by name, over cameras and repeats."""
    looks = {
        camera: {
            name: partial(scale.look, fitted.scene, camera, fitted.backend)
            for name, scale in scales.items()
        }
        for camera in cameras
    }
    return _medians(fitted, looks, repeats)


def _medians(
    fitted: Fitted, ways: Mapping[Camera, Mapping[str, Callable[[], object]]], repeats: int
) -> dict[str, float]:
    """Median seconds of each way, timed in turn so that all see the same load."""
    found: dict[str, list[float]] = {}
    for known in ways.values():
        for way in known.values():
            way()  # caches and threads are warm from here on
        for _ in range(repeats):
            for name, way in known.items():
                started = time.perf_counter()
                way()
                _settle(fitted)
                found.setdefault(name, []).append(time.perf_counter() - started)
    return {f"latency.{name}": float(np.median(seconds)) for name, seconds in found.items()}


def _ways(fitted: Fitted, camera: Camera) -> dict[str, Callable[[], object]]:
    observed, splats = fitted.scene, fitted.scene.splats
    values = open_view(splats, camera, fitted.backend).pack(observed.traits)

    def colour() -> None:
        _colour(splats, camera, fitted)

    def four_passes() -> None:
        # Each pass calls the renderer, which projects and sorts again, as published code does.
        # The values of the Gaussians, except colours, are given and not timed.
        colour()
        for first, last in PASSES[1:]:
            view = open_view(splats, camera, fitted.backend)
            view.composite(values[:, first:last].contiguous())

    def ensemble(members: Members) -> None:
        own = members.camera(camera)
        for one in members.splats:
            _colour(one, own, fitted)

    return {
        "one_pass": lambda: observed.query(camera, backend=fitted.backend),
        "four_passes": four_passes,
        "colour": colour,
        **{name: partial(ensemble, members) for name, members in _timed(fitted).items()},
    }


def _colour(splats: Splats, camera: Camera, fitted: Fitted) -> None:
    view = open_view(splats, camera, fitted.backend)
    view.composite(view.colours())


def _timed(fitted: Fitted) -> dict[str, Members]:
    """The ensembles, each rendered with all its members at their own resolution."""
    known = {ENSEMBLE: fitted.members, FULL_ENSEMBLE: fitted.full_members}
    return {name: members for name, members in known.items() if members is not None}


def _settle(fitted: Fitted) -> None:
    if fitted.backend == "cuda":
        torch.cuda.synchronize()
