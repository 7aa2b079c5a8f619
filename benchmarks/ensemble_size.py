# SPDX-License-Identifier: Apache-2.0
"""Measure what an ensemble saves as members are added one at a time.

python benchmarks/ensemble_size.py BENCH.toml DATA OUT

The models and members come from a finished bench. Their deviation is normalised by one
constant per scene and shrunk, as in the tables. The shrinkage with the narrowest boxes over all
scenes is used, which favours the ensemble slightly.
"""

from __future__ import annotations

import argparse
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.conformal.calibrate import view_scores
from splatcert.conformal.maps import rgb_residual
from splatcert.conformal.splits import calibration_size, draw_splits, evaluate_splits, saving
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.difficulty.factor import LAMBDA_GRID, shrink, unit_of
from splatcert.raster.render import render
from splatcert.scene.scene import Scene
from splatcert.splats.files import load_splats
from splatcert.splats.gaussians import Splats
from splatcert.storage.schema import to_plain
from splatcert_bench.baselines.baseline import Members
from splatcert_bench.baselines.ensemble import enlarge
from splatcert_bench.run.layout import Bench
from splatcert_bench.run.profiles import read_config
from splatcert_bench.studies.make_study import members_of

RESULTS = Path(__file__).parent / "results" / "ensemble_size.json"
LEVEL = Fraction(1, 10)
"""alpha and beta."""


def savings(scene: Scene, splats: Splats, members: Members) -> np.ndarray:
    """What the first 2, 3, ... members save at each shrinkage, [members - 1, lambdas]."""
    residuals, masks, maps = [], [], []
    for view in scene.held_out.reveal("evaluation", scene.held_out.with_photo, by="benchmark"):
        shown = render(splats, view.camera).rgb.clamp(0, 1).numpy()
        residuals.append(rgb_residual(view.image().numpy(), shown))
        masks.append(view.mask().numpy() if view.has_mask else None)
        own = members.camera(view.camera)
        pictures = torch.stack([render(m, own).rgb.clamp(0, 1) for m in members.splats]).double()
        deviations = [
            pictures[:count].std(0, correction=1).amax(2).float()
            for count in range(2, len(members.splats) + 1)
        ]
        maps.append([enlarge(d, view.camera).clamp(min=EPSILON0) for d in deviations])
    splits = draw_splits(len(maps), calibration_size(len(maps)))
    found = np.zeros((len(members.splats) - 1, len(LAMBDA_GRID)))
    constant = 0.0
    for row in range(len(found)):
        unit = unit_of(float(view[row].mean()) for view in maps)
        for column, weight in enumerate(LAMBDA_GRID):
            scales = [shrink(view[row], unit, weight).numpy() for view in maps]
            scores = [
                float(view_scores(e, s, (LEVEL,), mask)[0])
                for e, s, mask in zip(residuals, scales, masks, strict=True)
            ]
            means = np.array([float(s.mean()) for s in scales])
            width = evaluate_splits(np.array(scores), means, LEVEL, splits).mean_width
            constant = width if weight == 0 else constant
            found[row, column] = saving(width, constant)
    return found


def main() -> None:
    """Write one row per number of members."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="TOML file of a finished bench")
    parser.add_argument("data", type=Path, help="data folder of that bench")
    parser.add_argument("out", type=Path, help="output folder of that bench")
    options = parser.parse_args()

    bench = Bench(read_config(options.file), options.out, options.data, options.file)
    by_scene: dict[str, np.ndarray] = {}
    for model in bench.models():
        members = members_of(model).get("members")
        if members is not None:
            splats = load_splats(model.run / "splats.ply")
            by_scene[model.scene] = savings(bench.load(model.scene), splats, members)
            print(model.scene, by_scene[model.scene].max(axis=1).round(3), flush=True)
    stacked = np.array(list(by_scene.values()))
    rows: list[dict[str, Any]] = []
    for row in range(stacked.shape[1]):
        best = int(stacked[:, row].mean(axis=0).argmax())
        rows.append(
            {
                "members": row + 2,
                "shrinkage": str(LAMBDA_GRID[best]),
                "mean_saving": round(float(stacked[:, row, best].mean()), 4),
                "saving": {n: round(float(v[row, best]), 4) for n, v in by_scene.items()},
            }
        )
        print(rows[-1]["members"], rows[-1]["shrinkage"], rows[-1]["mean_saving"])
    content = {
        "machine": describe_machine(),
        "member": to_plain(bench.config.members),
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
