# SPDX-License-Identifier: Apache-2.0
"""Compare the two training recipes: quality, Gaussians and processor time, in one run.

python benchmarks/training_recipes.py DATA_ROOT RUNS truck garden --resolution 320 --steps 3000 2100
python benchmarks/training_recipes.py DATA_ROOT RUNS truck garden --trained PUBLISHED_RUNS
python benchmarks/training_recipes.py DATA_ROOT RUNS truck --certificates CERTS

Both trainers of a capture run in one process and take turns, so that whatever else the machine
does slows both. Times are processor seconds of training alone, on one thread. With --trained, the
published recipe's runs are read from a folder instead, and there is no ratio of times. Rows are
merged into the results file, and the splats stay in RUNS. With --certificates, nothing is trained:
the mean half-widths of CERTS/truck-published and CERTS/truck-fast are added to the rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.config import TrainConfig
from splatcert.raster import native
from splatcert.scene.load import load_scene
from splatcert.scene.roles import LabelledView
from splatcert.scene.scene import Scene
from splatcert.splats.files import save_ply
from splatcert.training.losses import measure, summarise
from splatcert.training.optimise import Trainer

RECIPES = ("published", "fast")
TURNS = 100
RESULTS = Path(__file__).parent / "results" / "training_recipes.json"


class Timed:
    """A trainer, the processor time it took, and its largest number of Gaussians."""

    def __init__(self, scene: Scene, config: TrainConfig) -> None:
        self.trainer, self.seconds, self.peak = Trainer(scene, config), 0.0, 0

    def advance(self, share: float) -> None:
        """Train to this share of the run."""
        end = round(share * self.trainer.config.iterations)
        start = time.process_time()
        while self.trainer.steps_done < end:
            self.peak = max(self.peak, self.trainer.step().gaussians)
        self.seconds += time.process_time() - start

    def row(self, views: Sequence[LabelledView]) -> dict[str, object]:
        """What came of it."""
        metrics = summarise(measure(self.trainer.splats(), views))
        return {
            "iterations": self.trainer.config.iterations,
            "psnr": round(metrics["psnr"], 3),  # type: ignore[arg-type]
            "ssim": round(metrics["ssim"], 4),  # type: ignore[arg-type]
            "gaussians": len(self.trainer.table),
            "most_gaussians": self.peak,
            "cpu_seconds": round(self.seconds, 1),
        }


def stored_row(folder: Path, options: argparse.Namespace) -> dict[str, object]:
    """The same numbers from a run of `splatcert train --holdout 8`, without time."""
    result, metrics = (json.loads((folder / f"{n}.json").read_text()) for n in ("train", "metrics"))
    config, size = result["request"]["config"], result["request"]["sizes"][0]
    wanted = ("published", options.steps[0], options.resolution)
    if (config.get("recipe", "published"), config["iterations"], max(size)) != wanted:
        raise SystemExit(f"{folder} was trained with other settings than {wanted}")
    return {
        "iterations": config["iterations"],
        "psnr": round(metrics["psnr"], 3),
        "ssim": round(metrics["ssim"], 4),
        "gaussians": result["result"]["gaussians"],
    }


def compare(name: str, options: argparse.Namespace) -> dict[str, object]:
    """Train one capture with both recipes, in turns."""
    scene = load_scene(options.data / name, resolution=str(options.resolution), holdout="8")
    for view in scene.training:
        view.image()  # decoded before the clock starts
    runs = {
        recipe: Timed(scene, TrainConfig(iterations=steps, recipe=recipe))
        for recipe, steps in zip(RECIPES, options.steps, strict=True)
        if recipe == "fast" or not options.trained
    }
    for turn in range(1, TURNS + 1):
        for run in runs.values():
            run.advance(turn / TURNS)
    views = scene.held_out.reveal("evaluation", by="training benchmark")
    for recipe, run in runs.items():
        folder = options.runs / f"{name}-{options.resolution}-{recipe}"
        folder.mkdir(parents=True, exist_ok=True)
        save_ply(run.trainer.splats(), folder / "splats.ply")
    rows = {recipe: run.row(views) for recipe, run in runs.items()}
    if options.trained:
        rows["published"] = stored_row(options.trained / name, options)
    times = [rows[recipe].get("cpu_seconds") for recipe in RECIPES]
    return {
        "scene": name,
        "resolution": options.resolution,
        "training_views": len(scene.training),
        "held_out_views": len(views),
        "speedup": round(times[0] / times[1], 2) if all(times) else None,  # type: ignore[operator]
        **{recipe: rows[recipe] for recipe in RECIPES},
    }


def half_width(folder: Path) -> float:
    """Mean half-width over the calibration views."""
    record = json.loads((folder / "certificate.json").read_text())
    factors = [view["factor"] for view in record["calibration"]]
    return round(record["guarantee"]["threshold"] * sum(factors) / len(factors), 5)


def add_certificates(options: argparse.Namespace) -> None:
    """Add the half-widths of both recipes' certificates to rows that exist."""
    for row in json.loads(RESULTS.read_text())["rows"]:
        if row["scene"] in options.scenes and row["resolution"] == options.resolution:
            for recipe in RECIPES:
                folder = options.certificates / f"{row['scene']}-{recipe}"
                row[recipe]["half_width"] = half_width(folder)
            merge(row)


def merge(row: dict) -> None:
    """Add a row, or replace the same comparison's older one."""
    stored = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    rows = {
        (old["scene"], old["resolution"], old["fast"]["iterations"]): old for old in [*stored, row]
    }
    content = {"machine": describe_machine(), "rows": [rows[key] for key in sorted(rows)]}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    """Compare on every capture named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of captures")
    parser.add_argument("runs", type=Path, help="folder for the splats")
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--resolution", type=int, default=320, help="longest side in pixels")
    parser.add_argument(
        "--steps", type=int, nargs=2, default=[3_000, 2_100], help="of the two recipes"
    )
    parser.add_argument("--trained", type=Path, help="folder of runs of the published recipe")
    parser.add_argument("--certificates", type=Path, help="folder of both recipes' certificates")
    options = parser.parse_args()
    if options.certificates:
        return add_certificates(options)
    torch.set_num_threads(1)
    native.set_threads(1)
    for name in options.scenes:
        row = compare(name, options)
        print(json.dumps(row), flush=True)
        merge(row)


if __name__ == "__main__":
    main()
