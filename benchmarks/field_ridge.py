# SPDX-License-Identifier: Apache-2.0
"""Compare ridge penalties of the residual field by the width they save on held-out views.

python benchmarks/field_ridge.py BENCH.toml DATA OUT WORK [--ridges 0.01 1 10] [--degrees 2]

The models come from a finished bench. Every field is fitted to the training photographs. The
held-out ones then measure what its shape saves alone (lambda_b = 1/2), and what it saves with
its own mean as the view factor. Fits are cached in WORK; rows are merged into the results file.
"""

from __future__ import annotations

import argparse
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.config import FieldConfig
from splatcert.conformal.calibrate import view_scores
from splatcert.conformal.maps import rgb_residual
from splatcert.conformal.ranks import rank_correlation
from splatcert.conformal.splits import calibration_size, draw_splits, estimate, saving
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.difficulty.factor import LAMBDA_GRID, shape
from splatcert.field.fit import fit_field
from splatcert.raster.render import open_view, render
from splatcert.scene.scene import Scene
from splatcert.splats.files import load_splats
from splatcert.splats.gaussians import Splats
from splatcert_bench.run.layout import Bench
from splatcert_bench.run.profiles import read_config

RESULTS = Path(__file__).parent / "results" / "field_ridge.json"
LEVEL = Fraction(1, 10)
"""alpha and beta."""
HALF = LAMBDA_GRID.index(Fraction(1, 2))


def held_out_rows(scene: Scene, splats: Splats, degree: int, ridge: float) -> list[dict[str, Any]]:
    """Mean field of each held-out view, and the factor its shape needs at each weight."""
    fit = fit_field(splats, scene.training, FieldConfig(degree=degree, ridge=ridge))
    rows = []
    for view in scene.held_out.reveal("evaluation", scene.held_out.with_photo, by="benchmark"):
        picture = render(splats, view.camera).rgb.clamp(0, 1).numpy()
        residual = rgb_residual(view.image().numpy(), picture)
        mask = view.mask().numpy() if view.has_mask else None
        opened = open_view(splats, view.camera)
        field = opened.composite(opened.field_values(fit.field.coefficients)[:, None])[
            ..., 0
        ].clamp(min=EPSILON0)
        needed = [
            float(view_scores(residual, shape(field, weight).numpy(), (LEVEL,), mask)[0])
            for weight in LAMBDA_GRID
        ]
        rows.append({"name": view.name, "mean": float(field.mean()), "oracle": needed})
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Width saved by the fields of a scene's views, over 200 splits."""
    means = np.array([row["mean"] for row in rows])
    oracle = np.array([row["oracle"] for row in rows])
    splits = draw_splits(len(rows), calibration_size(len(rows)))
    flat = np.ones(len(rows))
    constant = estimate(oracle[:, 0], flat, LEVEL, splits).mean_width

    def saved(factor: np.ndarray) -> float:
        width = estimate(oracle[:, HALF], factor, LEVEL, splits).mean_width
        return round(saving(width, constant), 4)

    return {
        "shape": saved(flat),
        "shape_and_mean": saved(means),
        "rank_correlation": round(rank_correlation(means, oracle[:, 0]), 3),
    }


def row_key(row: dict[str, Any]) -> str:
    """Key that identifies a row."""
    return f"{row['degree']} {row['scene']} {row['ridge']:g}"


def main() -> None:
    """Fit what is missing, then write one row per scene, degree and ridge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="TOML file of a finished bench")
    parser.add_argument("data", type=Path, help="data folder of that bench")
    parser.add_argument("out", type=Path, help="output folder of that bench")
    parser.add_argument("work", type=Path, help="folder for cached fits")
    parser.add_argument("--scenes", nargs="*", help="scenes to use. Default: all of the bench")
    parser.add_argument("--ridges", nargs="*", type=float, default=[0.01, 1.0, 10.0])
    parser.add_argument("--degrees", nargs="*", type=int, default=[2])
    options = parser.parse_args()

    bench = Bench(read_config(options.file), options.out, options.data, options.file)
    models = {model.scene: model for model in bench.models() if model.is_main}
    found: dict[str, dict[str, Any]] = {}
    if RESULTS.exists():
        found = {row_key(row): row for row in json.loads(RESULTS.read_text())["rows"]}
    for name in options.scenes or models:
        scene, splats = bench.load(name), load_splats(models[name].run / "splats.ply")
        for degree in options.degrees:
            for ridge in options.ridges:
                kept = options.work / f"{name}-{degree}-{ridge:g}.json"
                if not kept.exists():
                    options.work.mkdir(parents=True, exist_ok=True)
                    kept.write_text(json.dumps(held_out_rows(scene, splats, degree, ridge)))
                row: dict[str, Any] = {"scene": name, "degree": degree, "ridge": ridge}
                found[row_key(row)] = row | summary(json.loads(kept.read_text()))
                print(json.dumps(found[row_key(row)]), flush=True)
    rows = [found[key] for key in sorted(found)]
    content = {"machine": describe_machine(), "rows": rows}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
