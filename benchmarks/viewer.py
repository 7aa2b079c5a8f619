# SPDX-License-Identifier: Apache-2.0
"""Measure the viewer's frames per second while a camera moves, at full resolution.

python benchmarks/viewer.py        synthetic scene of 100,000 Gaussians, 640 x 420 pixels

A frame is what a client gets: rendered, coloured, encoded as JPEG by the server's own code,
with its gauge. Only the network is left out. "RGB only" renders a plain picture, as a viewer
without certificates would; the others are certified queries, whose gauge is live.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
import viser

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.certificate.certificate import Certificate
from splatcert.config import CertifyConfig, FieldConfig
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.predictor import ViewPredictor
from splatcert.pipeline import certify
from splatcert.raster import native
from splatcert.raster.render import open_view, render
from splatcert.scales.paper import PaperScale
from splatcert.scene.scene import scene_from_tensors
from splatcert_bench.synthetic.scenes import made_cameras, made_splats
from splatcert_viewer.cameras.viewpoint import Viewpoint, viewpoint_of
from splatcert_viewer.frame import DisplayMode, Mode, certified_pixels, draw, to_bytes
from splatcert_viewer.page import MOVING_QUALITY
from splatcert_viewer.schedule import BUDGET, RenderLoop
from splatcert_viewer.shown import ViewerState

WIDTH, HEIGHT, GAUSSIANS = 640, 420, 100_000
VIEWS, EVERY, PLACES = 30, 3, 120
NEVER = float("inf")
Draw = Callable[[Viewpoint, float], str]


def made_certificate() -> Certificate:
    """A synthetic certificate. Two steps of the fit do: its values do not change the cost."""
    splats, random = made_splats(GAUSSIANS), torch.Generator().manual_seed(0)
    names = [f"{k:03d}.png" for k in range(VIEWS)]
    cameras = dict(zip(names, made_cameras(VIEWS, WIDTH, HEIGHT), strict=True))
    photos = {}
    for name, camera in cameras.items():
        picture = render(splats, camera).rgb
        photos[name] = (picture + 0.02 * torch.randn(picture.shape, generator=random)).clamp(0, 1)
    scene = scene_from_tensors(cameras, photos, held_out=names[::EVERY])
    weights = 0.05 * np.random.default_rng(0).standard_normal(len(FEATURE_NAMES))
    half = Fraction(1, 2)
    predictor = ViewPredictor(weights, 0.0, half, half, 1.0, Fraction(1, 10), card={})
    return certify(
        scene,
        splats,
        unseen=names[::EVERY],
        scale=PaperScale(predictor),
        config=CertifyConfig(field=FieldConfig(max_steps=2)),
        remember=False,
    )


def certified(state: ViewerState, mode: Mode) -> Draw:
    """Frames as the page draws them."""
    display = DisplayMode(mode, state.pixel_scale)

    def paint(viewpoint: Viewpoint, share: float) -> str:
        frame = draw(state.certificate, viewpoint, display, share)
        send(frame.pixels)
        return state.gauge.html(frame, state.certificate.threshold)

    return paint


def plain(state: ViewerState) -> Draw:
    """Pictures alone."""
    splats, pixels = state.certificate.fitted.splats, certified_pixels(state.certificate)

    def paint(viewpoint: Viewpoint, share: float) -> str:
        full = viewpoint.camera(pixels)
        size = (round(side * share) for side in (full.width, full.height))
        view = open_view(splats, full.resized(*size))
        send(to_bytes(view.composite(view.colours())))
        return ""

    return paint


def send(pixels: Any) -> None:
    """All that the server does to a picture before it goes to the network."""
    nobody = SimpleNamespace(_websock_interface=SimpleNamespace(queue_message=lambda message: None))
    viser.SceneApi.set_background_image(
        cast(viser.SceneApi, nobody), pixels, format="jpeg", jpeg_quality=MOVING_QUALITY
    )


def rate(paint: Draw, places: list[Viewpoint], frames: int, budget: float) -> tuple[float, float]:
    """Frames a second of a loop whose client always has a newer camera, and their mean share."""
    way, shares, finished = cycle(places), [], threading.Event()
    failures: list[Exception] = []
    loop = RenderLoop(failures.append, budget=budget)

    def ask() -> None:
        viewpoint = next(way)

        def turn(share: float) -> None:
            paint(viewpoint, share)
            shares.append(share)
            finished.set() if len(shares) >= frames else ask()

        loop.ask("client", turn)

    started = time.perf_counter()
    ask()
    loop.start()
    finished.wait(60)
    elapsed = time.perf_counter() - started
    loop.stop()
    if failures:
        raise failures[0]
    return len(shares) / elapsed, sum(shares) / len(shares)


def measure(state: ViewerState, rounds: int, frames: int) -> dict[str, Any]:
    """All candidates in turn, so that a disturbance hits all of them."""
    places = [viewpoint_of(camera) for camera in made_cameras(PLACES, WIDTH, HEIGHT)]
    candidates = {
        "RGB only": (plain(state), NEVER),
        "half-width": (certified(state, "half-width"), NEVER),
        "RGB with gauge": (certified(state, "RGB"), NEVER),
        "upper": (certified(state, "upper"), NEVER),
        "half-width, adaptive": (certified(state, "half-width"), BUDGET),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for paint, budget in candidates.values():
        rate(paint, places, 3, budget)
    for _ in range(rounds):
        for name, (paint, budget) in candidates.items():
            found[name].append(rate(paint, places, frames, budget))
    return {
        name: {
            "frames_per_second_median": round(median(fps for fps, _ in runs), 1),
            "frames_per_second": [round(fps, 1) for fps, _ in runs],
            "mean_share_of_sides": round(float(np.mean([share for _, share in runs])), 3),
        }
        for name, runs in found.items()
    }


def main() -> None:
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/viewer.json"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=30)
    options = parser.parse_args()

    torch.set_num_threads(1)  # as the viewer does
    state = ViewerState.of(made_certificate(), None)
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "gaussians": GAUSSIANS,
        "width": WIDTH,
        "height": HEIGHT,
        "threads": native.threads(),
        "frames_a_round": options.frames,
        "shown": measure(state, options.rounds, options.frames),
    }
    for name, row in result["shown"].items():
        print(f"  {name:22} {row['frames_per_second_median']:6.1f} a second")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
