# SPDX-License-Identifier: Apache-2.0
"""Measure coverage when test views are not drawn like the calibration views.

python benchmarks/shift.py CERTS [--scenes NAME ...]

CERTS is a folder with one certificate per scene. Only stored numbers are used: scores, factors,
cameras and descriptors of the held-out views. Each scene is split in four ways, under its own scale
and under a constant one, at alpha = beta = 1/10:

- random: a third of the views, at least 11, calibrate; the rest are tested (200 splits);
- blocks: as many consecutive views in capture order calibrate; the rest are tested;
- regions: the views of one of four regions of camera positions are tested; the rest calibrate, and
  regions that leave too few of them for finite boxes do not count;
- flag: the random splits, test views apart by whether the calibration views' own limits flag them.

Rows are merged into the results file.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.sights import calibration_sights
from splatcert.conformal.splits import calibration_size, draw_splits
from splatcert.deploy import load_certificate
from splatcert_bench.statistics.compared_scales import Scale
from splatcert_bench.statistics.shift import (
    blocks,
    flagged_coverage,
    leave_region_out,
    shifted_coverage,
)

RESULTS = Path(__file__).parent / "results" / "shift.json"
LEVEL = Fraction(1, 10)
"""alpha and beta."""
Array = NDArray[np.float64]


def scales_of(certificate: Certificate) -> dict[str, tuple[Array, Array]]:
    """Score and factor of each calibration view under the certified scale and a constant one."""
    views, calibration = certificate.views, certificate.record.calibration
    rows = views.held_out.rows_of(view.name for view in calibration)
    constant = views.oracle("held-out", LEVEL, 0)[rows]
    factors = np.array([view.factor for view in calibration])
    return {
        "certified": (certificate.scores_at(LEVEL), factors),
        "constant": (constant, np.ones(len(rows))),
    }


def measure_scene(certificate: Certificate) -> dict[str, Any]:
    """All four ways of splitting, under both scales."""
    calibration, limit = certificate.record.calibration, certificate.record.strangeness
    if limit is None:
        raise SystemExit("a certificate of an older version has no limit of strangeness")
    order = np.argsort([view.name for view in calibration], kind="stable")
    centres = np.array([calibration[k].camera.centre for k in order])
    size = calibration_size(len(order))
    random, apart = draw_splits(len(order), size), leave_region_out(centres)
    kinds = {"random": random, "blocks": blocks(len(order), size), "regions": apart}
    found: dict[str, Any] = {"views": len(order), "calibration": size}
    found["region_sizes"] = (~apart).sum(axis=1).tolist()
    sights = calibration_sights(calibration, certificate.views)
    strangeness = limit.units.scores(sights, certificate.poses)[order]
    for name, (scores, factors) in scales_of(certificate).items():
        scale = Scale(scores[order], factors[order])
        rows: dict[str, Any] = {}
        for kind, splits in kinds.items():
            each = shifted_coverage(scale, LEVEL, splits)
            rows[kind] = None if each is None else asdict(each)
        rows["flag"] = asdict(flagged_coverage(scale, strangeness, LEVEL, random))
        found[name] = rows
    return found


def main() -> None:
    """Measure the scenes asked for and merge their rows into the results file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("certificates", type=Path, help="folder of certificates, one per scene")
    parser.add_argument("--scenes", nargs="*", help="scenes to measure. Default: all")
    options = parser.parse_args()
    found = json.loads(RESULTS.read_text())["scenes"] if RESULTS.exists() else {}
    names = options.scenes or sorted(path.name for path in options.certificates.iterdir())
    for name in names:
        found[name] = measure_scene(load_certificate(options.certificates / name))
        print(name, json.dumps(found[name]), flush=True)
    content = {"machine": describe_machine(), "scenes": dict(sorted(found.items()))}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
