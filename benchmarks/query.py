# SPDX-License-Identifier: Apache-2.0
"""Measure what a certified query costs over a plain render, in one run.

python benchmarks/query.py                                synthetic scene of 100,000 Gaussians
python benchmarks/query.py --data SCENE --model SPLATS    a real scene
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine
from timing import interleave, ratio

from splatcert import _native
from splatcert.camera import Camera
from splatcert.difficulty.descriptor import EPSILON0, CameraGeometry
from splatcert.field.fit import ResidualField
from splatcert.field.fitted_scene import FittedScene
from splatcert.field.support import Support
from splatcert.raster import native
from splatcert.raster.render import open_view
from splatcert.raster.view import View
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import directions
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

OBSERVERS = 24
"""Training cameras whose exposures make the support."""
BACKGROUND = (0.0, 0.0, 0.0)


def observe(splats: Splats, cameras: Sequence[Camera], extent: float) -> FittedScene:
    """A fitted scene; the residual field is random, which does not change its cost."""
    generator = torch.Generator().manual_seed(0)
    exposure, direction = torch.zeros(len(splats)), torch.zeros(len(splats), 3)
    for camera in cameras[:: max(1, len(cameras) // OBSERVERS)]:
        seen = open_view(splats, camera).scatter(torch.ones(camera.height, camera.width, 1))
        exposure += seen[:, 0]
        direction += seen * directions(splats.means, camera)
    error = 0.1 * exposure * torch.rand(len(splats), generator=generator)
    coefficients = 0.02 * torch.randn(len(splats), 9, generator=generator)
    coefficients[:, 0] += 0.2
    return FittedScene(
        splats=splats,
        field=cast(ResidualField, SimpleNamespace(coefficients=coefficients)),
        support=Support(exposure, direction, error),
        geometry=CameraGeometry(cameras, extent),
    )


def rgb_only(observed: FittedScene, camera: Camera) -> Tensor:
    """A plain render, without any certificate."""
    view = open_view(observed.splats, camera)
    return view.composite(view.colours()).clamp_(0, 1)


def certified(observed: FittedScene, camera: Camera) -> Tensor:
    """Picture, all auxiliaries, descriptor and half-widths."""
    return 0.1 * observed.query(camera).shape(0.5)


def four_passes(observed: FittedScene, camera: Camera) -> list[Tensor]:
    """The paper's way, three channels at a time; rendering alone, without maps or descriptor."""
    view = open_view(observed.splats, camera)
    values = view.pack(observed.traits)
    columns = ([0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 9, 9])
    return [view.composite(values[:, some]) for some in columns]


def steps_of(observed: FittedScene, camera: Camera) -> dict[str, Callable[[], Any]]:
    """The parts of a picture and of a query, one by one."""
    view = open_view(observed.splats, camera)
    colours, values = view.colours(), view.pack(observed.traits)
    found = view.query(observed.traits, BACKGROUND, EPSILON0)
    query = observed.query(camera)
    return {
        "open_view": lambda: open_view(observed.splats, camera),
        "colours": view.colours,
        "composite_3": lambda: view.composite(colours),
        "composite_10": lambda: view.composite(values),
        "query": lambda: view.query(observed.traits, BACKGROUND, EPSILON0),
        "summarise_maps": lambda: _native.summarise_maps(found.maps),
        "geometry": lambda: observed.geometry.features(camera),
        "half_width": lambda: 0.1 * query.shape(0.5),
    }


def packing_difference(view: View, values: Tensor) -> float:
    """Largest difference between ten channels together and one at a time."""
    together = view.composite(values)
    alone = [view.composite(values[:, k : k + 1].contiguous()) for k in range(values.shape[1])]
    return float((together - torch.cat(alone, dim=2)).abs().max())


def measure(observed: FittedScene, cameras: Sequence[Camera], rounds: int) -> dict[str, Any]:
    """Time whole queries over all cameras, then the parts of one."""
    whole = {
        run.__name__: lambda run=run: [run(observed, camera) for camera in cameras]
        for run in (rgb_only, certified, four_passes)
    }
    timings = interleave(whole, rounds=rounds, budget=120)
    middle = cameras[len(cameras) // 2]
    view = open_view(observed.splats, middle)
    return {
        "gaussians": len(observed.splats),
        "drawn": [len(open_view(observed.splats, c)._prepared.drawn()) for c in cameras],  # type: ignore[attr-defined]
        "width": middle.width,
        "height": middle.height,
        "cameras": len(cameras),
        "threads": native.threads(),
        "timings_of_all_cameras": timings,
        "ratios": {
            "certified_over_rgb_only": ratio(timings, "certified", "rgb_only"),
            "four_passes_over_rgb_only": ratio(timings, "four_passes", "rgb_only"),
            "certified_over_rgb_only_by_medians": round(
                timings["certified"]["median_ms"] / timings["rgb_only"]["median_ms"], 3
            ),
        },
        "steps": interleave(steps_of(observed, middle), rounds=rounds, budget=60),
        "packing_difference": packing_difference(view, view.pack(observed.traits)),
    }


def scene_of(options: argparse.Namespace) -> tuple[str, FittedScene, Sequence[Camera]]:
    """The chosen scene, and cameras spread over it."""
    if bool(options.data) != bool(options.model):
        raise SystemExit("--data and --model go together")
    if options.data:
        from splatcert import load_scene, load_splats

        scene, splats = load_scene(options.data), load_splats(options.model)
        name, cameras, extent = options.data.name, scene.training.cameras, scene.extent
    else:
        name, splats = "made", made_splats(100_000)
        cameras = made_cameras(24, 640, 420)
        centres = np.array([camera.centre for camera in cameras])
        extent = 1.1 * float(np.linalg.norm(centres - centres.mean(axis=0), axis=1).max())
    chosen = cameras[:: max(1, len(cameras) // options.cameras)][: options.cameras]
    return name, observe(splats, cameras, extent), chosen


def main() -> None:
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/query.json"))
    parser.add_argument("--data", type=Path, help="a scene to render with --model")
    parser.add_argument("--model", type=Path, help="splats of that scene")
    parser.add_argument("--cameras", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()

    torch.set_num_threads(1)  # torch's threads would spin on the cores the kernels use
    name, observed, cameras = scene_of(options)
    result = {"machine": describe_machine(), "scene": name}
    result |= measure(observed, cameras, options.rounds)
    for key, timing in result["steps"].items():
        print(f"  {key:14} {timing['min_ms']:8.2f} ms")
    for key, timing in result["timings_of_all_cameras"].items():
        print(f"  {key:14} {timing['min_ms'] / len(cameras):8.2f} ms a view")
    for key, value in result["ratios"].items():
        print(f"  {key:36} {value:6.3f}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
