# SPDX-License-Identifier: Apache-2.0
"""Coverage of stretches: by the path threshold, and by the view threshold read as a path promise.

splatcert train DATA -o RUN --holdout block5of12 --resolution 320 --iterations 1500
splatcert certify DATA RUN -o CERT --scale paper
python benchmarks/paths.py CERT...

The certificates' stored view scores are split at random: 9 stretches calibrate, the rest test.
"""

from __future__ import annotations

import argparse
import json
import sys
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
from machine import describe_machine
from numpy.typing import NDArray

from splatcert import load_certificate
from splatcert.certificate.content.promise import consecutive_stretches
from splatcert.conformal import path_threshold, stretch_score, threshold

RESULTS = Path(__file__).parent / "results" / "paths.json"
LENGTH, ALPHA, GAMMAS = 5, Fraction(1, 10), ("1/5", "0")
CALIBRATING, SPLITS = 9, 2_000


def stretch_table(folder: Path) -> tuple[str, NDArray[np.float64], float, float]:
    """Scene, view scores of its stretches [S, L], mean factor, and how neighbours correlate."""
    certificate = load_certificate(folder)
    record = certificate.record
    views = (*record.training, *record.calibration, *record.unlabelled)
    known = dict(zip((v.name for v in record.calibration), certificate.scores, strict=True))
    runs = consecutive_stretches([view.name for view in views], list(known), LENGTH).runs
    table = np.array([[known[name] for name in run] for run in runs])
    logs = np.log(table) - np.log(table).mean()
    neighbours = float(np.mean(logs[:, 1:] * logs[:, :-1]) / np.mean(logs**2))
    factor = float(np.mean([view.factor for view in record.calibration]))
    return record.scene.name, table, factor, neighbours


def covered_shares(table: NDArray[np.float64], gamma: str) -> dict[str, float | int]:
    """Shares of test stretches covered under both thresholds, and their mean multipliers.

    `later` is the harder question without chance: the first stretches calibrate, later ones test.
    """
    rng = np.random.default_rng(0)
    needed = np.array([stretch_score(run, gamma) for run in table])
    found: dict[str, list[float]] = {"path": [], "view": [], "path_q": [], "view_q": []}
    for _ in range(SPLITS):
        order = rng.permutation(len(table))
        chosen, tested = order[:CALIBRATING], order[CALIBRATING:]
        path = path_threshold(needed[chosen], ALPHA)
        view = threshold(table[chosen].ravel(), ALPHA)
        for name, q in (("path", path), ("view", view)):
            found[name].append(float((needed[tested] <= q).mean()))
            found[f"{name}_q"].append(q)
    later = needed[CALIBRATING:] <= path_threshold(needed[:CALIBRATING], ALPHA)
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return {**means, "later_covered": int(later.sum()), "later": int(later.size)}


def main() -> None:
    """Measure every capture, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("certificates", type=Path, nargs="+", help="folders of certificates")
    rows = []
    for folder in parser.parse_args().certificates:
        scene, table, factor, neighbours = stretch_table(folder)
        shares = {gamma: covered_shares(table, gamma) for gamma in GAMMAS}
        rows.append(
            {
                "scene": scene,
                "stretches": len(table),
                "neighbour_correlation": neighbours,
                "mean_factor": factor,
                "gammas": shares,
                "scores": table.tolist(),
            }
        )
        print(scene, len(table), round(neighbours, 2), shares)
    content = {
        "machine": describe_machine(),
        "length": LENGTH,
        "alpha": str(ALPHA),
        "calibrating": CALIBRATING,
        "splits": SPLITS,
        "scenes": rows,
    }
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
