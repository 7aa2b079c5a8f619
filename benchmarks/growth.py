# SPDX-License-Identifier: Apache-2.0
"""Measure how time and memory grow with Gaussians, pixels, training views and threads.

python benchmarks/growth.py            everything, into benchmarks/results/growth.json
python benchmarks/growth.py --figure docs/images/growth.svg    draw the stored results

Processor time, the least of a few runs, because other programs may share the machine; memory is
the peak of a process that does nothing else. Slopes are least squares in logarithms: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.config import FieldConfig
from splatcert.field.fit import fit_field
from splatcert.raster import native
from splatcert.raster.render import open_view, render
from splatcert.scene.roles import TrainingView
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

RESULTS = Path(__file__).parent / "results" / "growth.json"
GAUSSIANS = (50_000, 150_000, 500_000, 1_500_000, 3_000_000)
PICTURES = ((560, 368), (1120, 736), (1600, 1056), (2416, 1648))
VIEWS = (50, 300, 2_000)
SMALL, LARGE = (48, 32), (192, 128)
RUNS = 3


class MadePhoto:
    """A photograph made when it is asked for, so that none is kept."""

    path, has_mask = None, False

    def __init__(self, seed: int, size: tuple[int, int]) -> None:
        self.seed, self.size = seed, size

    def image(self) -> torch.Tensor:
        """[H, W, 3]."""
        generator = torch.Generator().manual_seed(self.seed)
        return torch.rand(self.size[1], self.size[0], 3, generator=generator)

    def mask(self) -> torch.Tensor:
        """All pixels count, [H, W]."""
        return torch.ones(self.size[1], self.size[0], dtype=torch.bool)


def least(run: Callable[[], object]) -> float:
    """Milliseconds of processor time."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - start))
    return round(min(times), 2)


def rendering(count: int, size: tuple[int, int], threads: int) -> dict[str, Any]:
    """Preparing and rendering one view."""
    native.set_threads(threads)
    splats, camera = made_splats(count), made_cameras(1, *size)[0]
    view = open_view(splats, camera)
    row = {
        "gaussians": count,
        "pixels": size[0] * size[1],
        "threads": threads,
        "drawn": len(view._prepared.drawn()),  # type: ignore[attr-defined]
        "prepare_ms": least(lambda: open_view(splats, camera)),
        "render_ms": least(lambda: render(splats, camera)),
    }
    return row | {"peak_mib": peak()}


def fitting(count: int, size: tuple[int, int]) -> dict[str, Any]:
    """The residual field, with photographs made on demand and no prepared view kept."""
    splats = made_splats(1_000)
    views = [
        TrainingView(f"{k:04}", camera, MadePhoto(k, size))
        for k, camera in enumerate(made_cameras(count, *size))
    ]
    before, start = peak(), time.process_time()
    fit_field(splats, views, FieldConfig(cache_mib=0, max_steps=2))
    seconds = time.process_time() - start
    row = {"views": count, "pixels": size[0] * size[1], "fit_s": round(seconds, 2)}
    return row | {"peak_mib": peak(), "grown_mib": round(peak() - before, 1)}


def peak() -> float:
    """Most memory that this process has had, in MiB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def measured(*what: object) -> dict[str, Any]:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", *map(str, what)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(said.strip(), flush=True)
    return json.loads(said)


def slope(rows: list[dict[str, Any]], along: str, value: str) -> float:
    """Exponent of the growth."""
    x, y = ([np.log(row[name]) for row in rows] for name in (along, value))
    return round(float(np.polyfit(x, y, 1)[0]), 2)


def measure() -> dict[str, Any]:
    """All measurements, one after another."""
    by_gaussians = [measured("render", n, *PICTURES[0], 1) for n in GAUSSIANS]
    by_pixels = [measured("render", 100_000, *size, 1) for size in PICTURES]
    by_threads = [measured("render", 500_000, *PICTURES[1], n) for n in (1, 2)]
    by_views = [measured("fit", n, *SMALL) for n in VIEWS]
    larger = [measured("fit", n, *LARGE) for n in VIEWS[:2]]
    return {
        "machine": describe_machine(),
        "gaussians": by_gaussians,
        "pixels": by_pixels,
        "threads": by_threads,
        "views": by_views,
        "views_larger": larger,
        "exponents": {
            "prepare, Gaussians": slope(by_gaussians, "gaussians", "prepare_ms"),
            "render, Gaussians": slope(by_gaussians, "gaussians", "render_ms"),
            "prepare, pixels": slope(by_pixels, "pixels", "prepare_ms"),
            "render, pixels": slope(by_pixels, "pixels", "render_ms"),
            "fit, views": slope(by_views, "views", "fit_s"),
        },
        "kib_per_view": {
            f"{rows[0]['pixels']} pixels": round(
                1024 * (rows[-1]["peak_mib"] - rows[0]["peak_mib"])
                / (rows[-1]["views"] - rows[0]["views"]), 1
            )
            for rows in (by_views, larger)
        },
    }  # fmt: skip


def draw(results: dict[str, Any], path: Path) -> None:
    """Time against size, doubly logarithmic, with a linear slope to compare."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    panels = (
        ("gaussians", "gaussians", (("prepare_ms", "prepare"), ("render_ms", "render"))),
        ("pixels", "pixels", (("prepare_ms", "prepare"), ("render_ms", "render"))),
        ("views", "views", (("fit_s", "fit of the field"),)),
    )
    for panel, (name, along, lines) in zip(axes, panels, strict=True):
        rows = results[name]
        x = np.array([row[along] for row in rows], dtype=float)
        for value, label in lines:
            y = [row[value] for row in rows]
            panel.loglog(x, y, "o-", label=f"{label}, slope {slope(rows, along, value)}")
        panel.loglog(x, y[0] * x / x[0], ":", color="grey", label="linear")
        panel.set_xlabel({"gaussians": "Gaussians", "pixels": "pixels", "views": "views"}[name])
        panel.set_ylabel("processor seconds" if name == "views" else "processor milliseconds")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_minor_formatter(ticker.NullFormatter())  # they would overlap
        panel.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Measure and write, draw, or make one measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path, help="draw the stored results into this file")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.one:
        kind, *numbers = options.one
        first, width, height, *threads = map(int, numbers)
        row = (
            rendering(first, (width, height), *threads)
            if kind == "render"
            else fitting(first, (width, height))
        )
        print(json.dumps(row))
    elif options.figure:
        draw(json.loads(RESULTS.read_text()), options.figure)
    else:
        RESULTS.write_text(json.dumps(measure(), indent=1) + "\n")


if __name__ == "__main__":
    main()
