# SPDX-License-Identifier: Apache-2.0
"""Compare hold-out rules on a capture whose photos alternate between two kinds.

python benchmarks/holdout_rules.py CERT DATA TEST

CERT was calibrated on a model that has seen neither every 8th photo, nor one random photo of every
8, nor those listed in the file TEST. The boxes are calibrated anew on each rule's photos, with the
certificate's own factors, and tested on the photos of TEST that no rule holds out. A photo is an
upper one if its camera looks higher than its neighbours in name order do on average.
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

from splatcert.conformal.calibrate import threshold_of
from splatcert.deploy import load_certificate
from splatcert.scene.load import read_photographs

RESULTS = Path(__file__).parent / "results" / "holdout_rules.json"
LEVEL = Fraction(1, 10)
"""alpha and beta."""


def upper_ones(cameras: dict[str, Any]) -> set[str]:
    """Photos that look higher than the mean of their neighbours."""
    names = sorted(cameras)
    up = -np.mean([camera.world_to_camera[1, :3] for camera in cameras.values()], axis=0)
    rise = np.array([cameras[name].forward @ up / np.linalg.norm(up) for name in names])
    padded = np.pad(rise, 1, mode="reflect")
    return {n for n, high in zip(names, rise > (padded[:-2] + padded[2:]) / 2, strict=True) if high}


def measure(certificate_path: Path, data: Path, listed: Path) -> dict[str, Any]:
    """Width and coverage of both kinds of test view, for each rule and two scales."""
    certificate = load_certificate(certificate_path)
    photographs = read_photographs(data)
    rules = {"every 8th": photographs.scene(8), "random8": photographs.scene("random8")}
    chosen = {rule: set(scene.held_out.names) for rule, scene in rules.items()}
    test = set(listed.read_text().split()) - set().union(*chosen.values())
    upper = upper_ones(dict(rules["random8"].cameras))
    calibration, views = certificate.record.calibration, certificate.views
    names = np.array([view.name for view in calibration])
    rows = views.held_out.rows_of(names.tolist())
    factors = np.array([view.factor for view in calibration])
    constant = views.oracle("held-out", LEVEL, 0)[rows]
    scales = {
        "certified": (certificate.scores_at(LEVEL), factors),
        "constant": (constant, np.ones(len(rows))),
    }
    tested = np.isin(names, sorted(test))
    high = np.isin(names, sorted(upper))
    found: dict[str, Any] = {
        "training_views": len(certificate.record.training),
        "test_views": {"upper": int((tested & high).sum()), "lower": int((tested & ~high).sum())},
        "rules": {},
    }
    for rule, held_out in chosen.items():
        known = np.isin(names, sorted(held_out))
        row: dict[str, Any] = {"views": int(known.sum()), "upper": int((known & high).sum())}
        for scale, (scores, used) in scales.items():
            q = threshold_of(scores[known], LEVEL)
            covered = scores <= q
            row[scale] = {
                "half_width": float(q * used[tested].mean()),
                "coverage": float(covered[tested].mean()),
                "upper_coverage": float(covered[tested & high].mean()),
                "lower_coverage": float(covered[tested & ~high].mean()),
            }
        found["rules"][rule] = row
    return found


def main() -> None:
    """Measure one capture and merge it into the results file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("certificate", type=Path, help="certificate of the capture")
    parser.add_argument("data", type=Path, help="the capture")
    parser.add_argument("test", type=Path, help="file with names of further test photos")
    options = parser.parse_args()
    found = json.loads(RESULTS.read_text())["scenes"] if RESULTS.exists() else {}
    found[options.data.name] = measure(options.certificate, options.data, options.test)
    print(json.dumps(found[options.data.name], indent=1))
    content = {"machine": describe_machine(), "scenes": found}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
