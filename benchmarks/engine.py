# SPDX-License-Identifier: Apache-2.0
"""Time the CPU renderer against its own scalar path and against plain torch.

make bench                       synthetic scene of 100,000 Gaussians at 640 x 420
python benchmarks/engine.py --data SCENE --model SPLATS   and a real one
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine
from timing import interleave, ratio
from torch_tiles import TorchTiles

from splatcert import _native
from splatcert.camera import Camera
from splatcert.raster import native
from splatcert.raster.native import NativeView, render_differentiable
from splatcert.raster.native_autograd import ScreenGradients
from splatcert.splats.gaussians import Splats
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

PARAMETERS = ("means", "quats", "log_scales", "logit_opacities", "sh")


def on_threads(count: int, run):
    """The same work on this many native threads; torch gets one, because its threads spin."""

    def timed():
        torch.set_num_threads(1)
        native.set_threads(count)
        return run()

    return timed


def training_step(splats: Splats, camera: Camera, pull: torch.Tensor, absolute: bool):
    """Project, sort, colour and composite, then compute gradients for every parameter."""
    fresh = {name: getattr(splats, name).detach().clone().requires_grad_() for name in PARAMETERS}
    leaf = replace(splats, **fresh)

    def run():
        for tensor in fresh.values():
            tensor.grad = None
        screen = ScreenGradients(want_absolute=absolute)
        render_differentiable(leaf, camera, screen=screen).backward(pull)

    return run


def scalar_composite(view: NativeView, values: torch.Tensor):
    """The scalar per-pixel loop of the same core."""

    def run():
        before = native.isa()
        native.set_isa("scalar")
        try:
            return view.composite(values)
        finally:
            native.set_isa(before)

    return run


def torch_composite(view: TorchTiles, values: torch.Tensor):
    """Plain torch with two threads."""

    def run():
        torch.set_num_threads(2)
        return view.composite(values)

    return run


def measure_view(splats: Splats, camera: Camera, *, rounds: int, yardsticks: bool) -> dict:
    """Every pass of one view at one and two threads, interleaved."""
    view = NativeView(splats, camera)
    colours = view.colours()
    generator = torch.Generator().manual_seed(0)
    values = {d: torch.randn(len(splats), d, generator=generator) for d in (1, 3, 10)}
    images = {
        d: torch.randn(camera.height, camera.width, d, generator=generator) for d in (1, 3, 10)
    }
    work = {
        "prepare": lambda: NativeView(splats, camera),
        "colours": view.colours,
        "composite_1": lambda: view.composite(values[1]),
        "composite_3": lambda: view.composite(values[3]),
        "composite_10": lambda: view.composite(values[10]),
        "scatter_1": lambda: view.scatter(images[1]),
        "scatter_3": lambda: view.scatter(images[3]),
        "normal_1": lambda: view.normal(values[1]),
        "forward_backward": training_step(splats, camera, images[3], False),
        "forward_backward_absolute": training_step(splats, camera, images[3], True),
        "loss_and_gradient": lambda: loss(images[3]),
    }
    target = torch.rand(camera.height, camera.width, 3, generator=generator)

    def loss(image: torch.Tensor) -> None:
        plain = image.detach().contiguous()
        _native.loss(plain, target, 0.8, 0.2, None, False, torch.empty_like(plain))

    candidates = {
        f"{name}/{threads}": on_threads(threads, run)
        for name, run in work.items()
        for threads in (1, 2)
    }
    if yardsticks:
        slow = TorchTiles(splats, camera)
        candidates["scalar_composite_3/1"] = on_threads(1, scalar_composite(view, colours))
        candidates["scalar_composite_3/2"] = on_threads(2, scalar_composite(view, colours))
        candidates["torch_composite_3/2"] = torch_composite(slow, colours)
    timings = interleave(candidates, rounds=rounds, budget=120)
    native.set_threads(0)
    pairs_listed, pairs_in_tiles = view._prepared.pairs
    result = {
        "gaussians": len(splats),
        "width": camera.width,
        "height": camera.height,
        "drawn": len(view._prepared.drawn()),
        "tile_entries": view._prepared.entries,
        "pairs_in_tiles": pairs_in_tiles,
        "pairs_in_listed_half_rows": pairs_listed,
        "view_bytes": view.nbytes,
        "timings": timings,
        "ratios": {
            "composite_10_over_3": ratio(timings, "composite_10/2", "composite_3/2"),
            "normal_over_composite_1": ratio(timings, "normal_1/2", "composite_1/2"),
            "scatter_over_composite_1": ratio(timings, "scatter_1/2", "composite_1/2"),
            "two_threads_over_one": ratio(timings, "composite_3/2", "composite_3/1"),
        },
    }
    if yardsticks:
        result["ratios"] |= {
            "scalar_1_thread_over_ours_2_threads": ratio(
                timings, "scalar_composite_3/1", "composite_3/2"
            ),
            "scalar_2_threads_over_ours_2_threads": ratio(
                timings, "scalar_composite_3/2", "composite_3/2"
            ),
            "torch_over_ours_2_threads": ratio(timings, "torch_composite_3/2", "composite_3/2"),
        }
    return result


def measure_growth(rounds: int) -> dict:
    """Cost over pixels at fixed Gaussians, and over Gaussians at fixed pixels."""
    splats = made_splats(100_000)
    rows: dict[str, list] = {"pixels": [], "gaussians": []}
    for width, height in ((320, 210), (640, 420), (1280, 840), (1744, 1145)):
        rows["pixels"].append(growth_point(splats, made_cameras(1, width, height)[0], rounds))
    camera = made_cameras(1, 640, 420)[0]
    for count in (10_000, 100_000, 500_000, 2_000_000):
        rows["gaussians"].append(growth_point(made_splats(count), camera, rounds))
    return rows


def growth_point(splats: Splats, camera: Camera, rounds: int) -> dict:
    """Time prepare, composite and scatter at one size."""
    view = NativeView(splats, camera)
    values = view.colours()
    image = torch.ones(camera.height, camera.width, 1)
    timings = interleave(
        {
            "prepare": lambda: NativeView(splats, camera),
            "composite_3": lambda: view.composite(values),
            "scatter_1": lambda: view.scatter(image),
        },
        rounds=rounds,
        budget=20,
    )
    return {
        "gaussians": len(splats),
        "megapixels": round(camera.width * camera.height / 1e6, 4),
        "timings": timings,
    }


def report(name: str, result: dict) -> None:
    """Print the main figures."""
    print(f"\n{name}: {result['gaussians']:,} Gaussians, {result['width']} x {result['height']}, "
          f"{result['drawn']:,} drawn, {result['tile_entries']:,} tile entries")  # fmt: skip
    for key, timing in result["timings"].items():
        low, high = timing["quartiles_ms"]
        print(f"  {key:28} {timing['min_ms']:9.2f} ms   quartiles {low:.2f} to {high:.2f}")
    for key, value in result["ratios"].items():
        print(f"  {key:42} {value:8.2f}")


def main() -> None:
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/engine.json"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--data", type=Path, help="a scene to render with --model")
    parser.add_argument("--model", type=Path, help="splats of that scene")
    parser.add_argument("--no-growth", action="store_true")
    options = parser.parse_args()

    results: dict = {"machine": describe_machine()}
    results["made"] = measure_view(
        made_splats(100_000), made_cameras(1, 640, 420)[0], rounds=options.rounds, yardsticks=True
    )
    report("made scene", results["made"])
    if options.data and options.model:
        from splatcert import load_scene, load_splats

        scene, splats = load_scene(options.data), load_splats(options.model)
        camera = scene.training[len(scene.training) // 2].camera
        results["real"] = measure_view(splats, camera, rounds=options.rounds, yardsticks=False)
        results["real"]["scene"] = options.data.name
        report(options.data.name, results["real"])
    if not options.no_growth:
        results["growth"] = measure_growth(max(5, options.rounds // 2))
        for axis, points in results["growth"].items():
            print(f"\ngrowth over {axis}")
            for point in points:
                cost = {k: t["min_ms"] for k, t in point["timings"].items()}
                print(f"  {point['gaussians']:>9,} Gaussians {point['megapixels']:7.3f} MP  {cost}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    aside = options.out.with_suffix(".part")
    aside.write_text(json.dumps(results, indent=1) + "\n")
    aside.replace(options.out)
    print(f"\nwrote {options.out}")


if __name__ == "__main__":
    main()
