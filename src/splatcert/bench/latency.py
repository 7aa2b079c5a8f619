# SPDX-License-Identifier: Apache-2.0
"""What a query costs: ours in one pass, in four passes, and ten models (tab:latency).

Timings are taken in turns, so that whatever else the machine does slows all of them alike,
and their ratios mean something even where the seconds do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from splatcert.baselines.fitted import Fitted
from splatcert.raster.interface import open_view
from splatcert.scene.cameras import Camera
from splatcert.view.query import pack

TEN = 10
"""Models of the ensemble that is timed."""
PASSES = ((0, 3), (3, 6), (6, 9), (9, 10))
"""Channels of a query, three at a time."""


def measure_latency(fitted: Fitted, cameras: Sequence[Camera], repeats: int) -> dict[str, float]:
    """Median seconds of one query, over cameras and repeats, and how large the picture is."""
    found: dict[str, list[float]] = {}
    for camera in cameras:
        ways = _ways(fitted, camera)
        for way in ways.values():
            way()  # caches and threads are warm from here on
        for _ in range(repeats):
            for name, way in ways.items():
                started = time.perf_counter()
                way()
                _settle(fitted)
                found.setdefault(name, []).append(time.perf_counter() - started)
    facts = {f"latency.{name}": float(np.median(seconds)) for name, seconds in found.items()}
    pixels = [camera.width * camera.height for camera in cameras]
    return facts | {
        "latency.members": float(TEN),
        "latency.megapixels": float(np.mean(pixels)) / 1e6,
    }


def _ways(fitted: Fitted, camera: Camera) -> Mapping[str, Callable[[], object]]:
    observed, splats = fitted.observed, fitted.observed.splats
    values = pack(open_view(splats, camera, fitted.backend), observed)

    def colour() -> None:
        view = open_view(splats, camera, fitted.backend)
        view.composite(view.colours())

    def four_passes() -> None:
        # Each pass is a call of a renderer: it projects and sorts again, as published code does.
        # What a Gaussian carries is given for nothing here, except its colour.
        colour()
        for first, last in PASSES[1:]:
            view = open_view(splats, camera, fitted.backend)
            view.composite(values[:, first:last].contiguous())

    def ensemble() -> None:
        for _ in range(TEN):
            colour()

    return {
        "one_pass": lambda: observed.query(camera, backend=fitted.backend),
        "four_passes": four_passes,
        "colour": colour,
        "ensemble": ensemble,
    }


def _settle(fitted: Fitted) -> None:
    if fitted.backend == "cuda":
        torch.cuda.synchronize()
