# SPDX-License-Identifier: Apache-2.0
"""Path tracing, one view at a time: linear radiance [H, W, 3] in a file each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import drjit
import mitsuba as mi
import numpy as np
from cameras import FIELD_OF_VIEW, HEIGHT, WIDTH, Pose, poses
from numpy.typing import NDArray
from plans import Plan
from still_life import T, still_life

PASSES, SAMPLES = 4, 16
"""Samples a pixel are drawn in passes, which outvote single bright strays."""


def render(plan: Plan, folder: Path, views: Iterable[int]) -> None:
    """The views that are not there yet; one thread, so that several such processes share."""
    drjit.set_thread_count(1)
    mi.set_log_level(mi.LogLevel.Error)
    missing = [view for view in views if not radiance_path(folder, view).exists()]
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as meshes:
        scene = still_life(Path(meshes), plan)
    every = poses(plan)
    for view in missing:
        sensor = camera(every[view])
        passes = [
            np.array(mi.render(scene, sensor=sensor, seed=PASSES * view + k)) for k in range(PASSES)
        ]
        path = radiance_path(folder, view)
        aside = path.with_name(f".{os.getpid()}.npy")
        np.save(aside, without_strays(np.stack(passes)).astype(np.float16))
        aside.replace(path)
        print(f"{path} is there", flush=True)


def radiance_path(folder: Path, view: int) -> Path:
    """Where a view's radiance is kept between rendering and developing."""
    return folder / f"{view:03d}.npy"


def camera(pose: Pose) -> mi.Sensor:
    """A pinhole there; Mitsuba's own axes are left, up, forward."""
    to_world = np.eye(4)
    to_world[:3, :3] = pose.rotation * [-1, -1, 1]
    to_world[:3, 3] = pose.centre
    film = {
        "type": "hdrfilm",
        "width": WIDTH,
        "height": HEIGHT,
        "pixel_format": "rgb",
        "rfilter": {"type": "box"},
    }
    return mi.load_dict(
        {
            "type": "perspective",
            "fov": FIELD_OF_VIEW,
            "fov_axis": "x",
            "to_world": T(to_world),
            "film": film,
            "sampler": {"type": "multijitter", "sample_count": SAMPLES},
        }
    )


def without_strays(passes: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean over passes, each held near their median: light through glass comes in sparks."""
    median = np.median(passes, axis=0)
    return np.minimum(passes, 2.0 * median + 0.1).mean(axis=0)
