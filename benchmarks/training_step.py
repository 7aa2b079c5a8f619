# SPDX-License-Identifier: Apache-2.0
"""Break down the time of a training step: native kernels by name, and the rest.

python benchmarks/training_step.py DATA [--iterations 7000] [--at 2000]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert import _native
from splatcert.config import TrainConfig
from splatcert.raster import native
from splatcert.scene.load import load_scene
from splatcert.training.optimise import Trainer


class Stopwatch:
    """Seconds spent inside each native call."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def around(self, name: str, call):
        def timed(*args, **kwargs):
            start = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self.seconds[name] += time.perf_counter() - start

        return timed


class TimedView:
    """A prepared view whose methods are timed."""

    def __init__(self, view, watch: Stopwatch) -> None:
        self._view, self._watch = view, watch

    def __getattr__(self, name: str):
        value = getattr(self._view, name)
        return self._watch.around(name, value) if callable(value) else value


def watch_natives(watch: Stopwatch) -> None:
    """Time every call into the native module from here on."""
    make = watch.around("prepare", _native.PreparedView)
    native._native = type(
        "Watched",
        (),
        {
            **{k: getattr(_native, k) for k in dir(_native) if not k.startswith("__")},
            "PreparedView": staticmethod(lambda *a: TimedView(make(*a), watch)),
        },
    )
    _native.loss = watch.around("loss", _native.loss)
    _native.adam = watch.around("adam", _native.adam)


def main() -> None:
    """Train up to a step, then time the next ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--iterations", type=int, default=7_000)
    parser.add_argument("--at", type=int, default=2_000, help="step from which to measure")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--resolution", type=int, help="long side of the photographs")
    parser.add_argument("--density", default="fastgs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    torch.set_num_threads(1)
    scene = load_scene(options.data, resolution=options.resolution)
    config = TrainConfig(iterations=options.iterations, density=options.density)
    trainer = Trainer(scene, config)
    while trainer.steps_done < options.at:
        trainer.step()
    watch = Stopwatch()
    watch_natives(watch)
    start = time.perf_counter()
    for _ in range(options.steps):
        progress = trainer.step()
    total = time.perf_counter() - start
    per_step = {
        name: round(1e3 * s / options.steps, 3)
        for name, s in sorted(watch.seconds.items(), key=lambda item: -item[1])
    }
    inside = sum(watch.seconds.values())
    result = {
        "machine": describe_machine(),
        "scene": options.data.name,
        "steps": [options.at + 1, options.at + options.steps],
        "gaussians": progress.gaussians,
        "ms_per_step": round(1e3 * total / options.steps, 2),
        "native_share": round(inside / total, 3),
        "native_ms_per_step": per_step,
    }
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
