# SPDX-License-Identifier: Apache-2.0
"""How fast a back end is: renders, certified queries and steps of the field's solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from splatcert.checkup.scenes import MadeScene, timing_scene
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.raster.render import Backend, open_view, render

ENOUGH, SLOW = 0.4, 0.5
"""Seconds after which a measurement ends; a first run that takes longer is the measurement."""
BLACK = (0.0, 0.0, 0.0)
FAST = 0.1
"""Seconds for the small scene within which a back end is timed on the large one."""


@dataclass(frozen=True)
class Speed:
    """Runs per second on the timing scene."""

    renders: float
    """Plain renders: colour, opacity and depth."""
    queries: float
    """Certified queries: picture, residual field, and the statistics of a descriptor."""
    field_steps: float
    """One view's share of a step of the field's solver, the view being prepared."""
    scene: str
    """Size of the scene that was timed."""


def measure_speed(backend: Backend) -> Speed:
    """Time one back end; on a small scene if that one takes it long already."""
    scene = timing_scene(small=True)
    warm = [_seconds(lambda: render(scene.splats, scene.camera, backend=backend)) for _ in range(2)]
    return _speed(backend, scene if warm[1] > FAST else timing_scene())


def _speed(backend: Backend, scene: MadeScene) -> Speed:
    splats, camera, traits = scene.splats, scene.camera, scene.traits
    result = torch.zeros(traits.coefficients.shape, dtype=torch.float64)
    prepared = open_view(splats, camera, backend)

    def query() -> Tensor:
        maps = open_view(splats, camera, backend).query(traits, BLACK, EPSILON0)
        return maps.field.cpu()

    def picture() -> Tensor:
        return render(splats, camera, backend=backend).rgb.cpu()

    return Speed(
        renders=_rate(picture),
        queries=_rate(query),
        field_steps=_rate(lambda: prepared.field_normal(traits.coefficients, None, result)),
        scene=scene.size,
    )


def _rate(run: Callable[[], object]) -> float:
    """Runs per second: the median of as many as fit, after one to warm up."""
    seconds = [_seconds(run)]
    if seconds[0] < SLOW:
        seconds = [_seconds(run)]
        while sum(seconds) < ENOUGH:
            seconds.append(_seconds(run))
    return 1 / max(median(seconds), 1e-9)


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
