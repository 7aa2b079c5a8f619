# SPDX-License-Identifier: Apache-2.0
"""Measure quality and speed of training on real captures; finished runs are not repeated.

python benchmarks/training.py DATA_ROOT RUNS truck playroom garden
python benchmarks/training.py DATA_ROOT RUNS truck --curve 1000 3000 7000 15000 --resolution 320
python benchmarks/training.py DATA_ROOT RUNS truck --density vanilla
python benchmarks/training.py DATA_ROOT RUNS truck --member

Every run is `splatcert train` in a folder of RUNS. Rows are merged into the results file.
Pictures of photograph, render and error stay in RUNS, because the photographs are not ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.raster.render import render
from splatcert.scene.load import load_scene
from splatcert.splats.files import load_splats

# The size of a member of an ensemble: small, and quick to train.
MEMBER = {"resolution": 320, "iterations": 3_000, "max_gaussians": 50_000}

RESULTS = Path(__file__).parent / "results" / "training.json"


def run_name(scene: str, options: argparse.Namespace, iterations: int) -> str:
    """A folder name made of the settings that differ from the defaults."""
    parts = [scene]
    if options.density != "fastgs":
        parts.append(options.density)
    if options.member:
        parts.append("member")
    if options.resolution:
        parts.append(f"{options.resolution}px")
    if iterations != 7_000:
        parts.append(f"{iterations}")
    return "-".join(parts)


def train(scene: str, options: argparse.Namespace, iterations: int) -> Path:
    """One run of the command that users type."""
    folder = options.runs / run_name(scene, options, iterations)
    command = [sys.executable, "-m", "splatcert.cli", "train", str(options.data / scene)]
    command += ["--recipe", "published", "--holdout", "8"]  # as published comparisons do
    command += ["-o", str(folder), "--iterations", str(iterations), "--density", options.density]
    if options.resolution:
        command += ["--resolution", str(options.resolution)]
    if options.member:
        command += ["--coarse-to-fine"]
    if options.max_gaussians:
        command += ["--max-gaussians", str(options.max_gaussians)]
    subprocess.run(command, check=True)
    return folder


def row_of(folder: Path) -> dict[str, object]:
    """The recorded numbers of a finished run."""
    record = json.loads((folder / "train.json").read_text())
    metrics = json.loads((folder / "metrics.json").read_text())
    request, result = record["request"], record["result"]
    return {
        "scene": request["scene"],
        "density": request["config"]["density"],
        "iterations": request["config"]["iterations"],
        "coarse_to_fine": request["config"]["coarse_to_fine"],
        "max_gaussians": request["config"]["max_gaussians"],
        "size": request["sizes"][0],
        "training_views": len(request["training_views"]),
        "held_out_views": metrics["views"],
        "psnr": round(metrics["psnr"], 3),
        "ssim": round(metrics["ssim"], 4),
        "worst_view_psnr": round(min(v["psnr"] for v in metrics["per_view"].values()), 2),
        "gaussians": result["gaussians"],
        "seconds": result["seconds"],
        "peak_memory_mib": result.get("peak_memory_mib"),
        "splats_sha256": result["splats"],
    }


def panel(folder: Path, data: Path, resolution: int | None) -> Path:
    """Photograph, render and error of the held-out view of median PSNR."""
    metrics = json.loads((folder / "metrics.json").read_text())["per_view"]
    ranked = sorted(metrics, key=lambda name: metrics[name]["psnr"])
    name = ranked[len(ranked) // 2]
    scene = load_scene(data, resolution=None if resolution is None else str(resolution))
    (view,) = scene.held_out.reveal("evaluation", [name], by="training benchmark")
    picture = render(load_splats(folder / "splats.ply"), view.camera).rgb.clamp(0, 1)
    photo = view.image()
    error = (picture - photo).abs().amax(dim=2)
    figure, axes = plt.subplots(1, 3, figsize=(15, 3.9), layout="constrained")
    for axis, image, title in zip(axes, (photo, picture), ("photograph", "render"), strict=False):
        axis.imshow(image.numpy())
        axis.set_title(title)
    shown = axes[2].imshow(error.numpy(), cmap="inferno", vmin=0, vmax=0.5)
    axes[2].set_title("largest error of a channel")
    figure.colorbar(shown, ax=axes[2], label="RGB units")
    for axis in axes:
        axis.axis("off")
    figure.suptitle(f"{scene.path.name}, {name}: {metrics[name]['psnr']:.2f} dB (median view)")
    out = folder / "median_view.png"
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return out


def merge(rows: list[dict[str, object]]) -> None:
    """Replace older rows of the same run by new ones."""
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": []}

    def key(row: dict) -> tuple:
        coarse = row.get("coarse_to_fine", False)
        return row["scene"], row["density"], row["size"][0], row["iterations"], coarse

    merged = {key(row): row for row in [*stored["rows"], *rows]}
    content = {"machine": describe_machine(), "rows": [merged[k] for k in sorted(merged)]}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    """Train what is missing, then report all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of captures")
    parser.add_argument("runs", type=Path, help="folder for the runs")
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--curve", type=int, nargs="+", default=[7_000], metavar="ITERATIONS")
    parser.add_argument("--resolution", type=int, help="longest side in pixels")
    parser.add_argument("--density", default="fastgs", choices=["fastgs", "vanilla"])
    parser.add_argument("--max-gaussians", type=int, help="largest number of Gaussians")
    parser.add_argument("--member", action="store_true", help="train an ensemble member")
    options = parser.parse_args()
    if options.member:
        options.resolution, options.curve = MEMBER["resolution"], [MEMBER["iterations"]]
        options.max_gaussians = MEMBER["max_gaussians"]
    rows = []
    for scene in options.scenes:
        for iterations in options.curve:
            folder = train(scene, options, iterations)
            rows.append(row_of(folder))
            print(json.dumps(rows[-1]), flush=True)
            print(panel(folder, options.data / scene, options.resolution))
    merge(rows)


if __name__ == "__main__":
    main()
