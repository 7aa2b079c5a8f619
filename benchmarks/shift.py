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
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.certificate.certificate import Certificate
from splatcert.conformal.splits import (
    calibration_size,
    draw_splits,
    evaluate_splits,
    split_thresholds,
)
from splatcert.deploy import load_certificate

RESULTS = Path(__file__).parent / "results" / "shift.json"
LEVEL = Fraction(1, 10)
"""alpha and beta."""
REGIONS = 4
Array, Mask = NDArray[np.float64], NDArray[np.bool_]


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


def blocks(views: int, size: int) -> Mask:
    """Every stretch of this many consecutive views as calibration views, [stretches, views]."""
    starts = np.arange(views - size + 1)[:, None]
    places = np.arange(views)[None]
    return (places >= starts) & (places < starts + size)


def regions(centres: Array) -> Array:
    """The region of each camera, [V]: nearest of four cameras chosen far apart, by index."""
    chosen = [int(np.argmax(np.linalg.norm(centres - centres.mean(axis=0), axis=1)))]
    while len(chosen) < REGIONS:
        gaps = np.linalg.norm(centres[:, None] - centres[chosen], axis=2).min(axis=1)
        chosen.append(int(np.argmax(gaps)))
    return np.linalg.norm(centres[:, None] - centres[chosen], axis=2).argmin(axis=1)


def by_flag(certificate: Certificate, scores: Array, splits: Mask) -> dict[str, float | None]:
    """Coverage of flagged and of other test views; limits come from each split's own views."""
    calibration = certificate.record.calibration
    table = certificate.views.held_out
    descriptors = table.descriptors[table.rows_of(view.name for view in calibration)]
    cameras = [view.camera for view in calibration]
    thresholds = split_thresholds(scores, LEVEL, splits)
    counts = np.zeros((2, 2), dtype=np.int64)  # flagged or not; tested, covered
    for split, q in zip(splits, thresholds, strict=True):
        known = np.flatnonzero(split)
        seen = [cameras[k] for k in known]
        limits = type(certificate.record.support).of(descriptors[known], seen)
        for row in np.flatnonzero(~split):
            flagged = not limits.check(descriptors[row], cameras[row]).inside
            counts[int(flagged)] += 1, int(scores[row] <= q)
    (others, fine), (flagged, met) = counts.tolist()
    return {
        "flagged_share": flagged / (flagged + others),
        "flagged_coverage": met / flagged if flagged else None,
        "other_coverage": fine / others,
    }


def measure_scene(certificate: Certificate) -> dict[str, Any]:
    """All four ways of splitting, under both scales."""
    calibration = certificate.record.calibration
    order = np.argsort([view.name for view in calibration], kind="stable")
    centres = np.array([calibration[k].camera.centre for k in order])
    size = calibration_size(len(order))
    random, stretches = draw_splits(len(order), size), blocks(len(order), size)
    region = regions(centres)
    apart = np.stack([region != k for k in range(REGIONS)])
    found: dict[str, Any] = {"views": len(order), "calibration": size}
    found["region_sizes"] = np.bincount(region, minlength=REGIONS).tolist()
    for name, (scores, factors) in scales_of(certificate).items():
        ranked, means = scores[order], factors[order]
        rows: dict[str, Any] = {}
        for kind, splits in (("random", random), ("blocks", stretches), ("regions", apart)):
            each = evaluate_splits(ranked, means, LEVEL, splits)
            bounded = np.isfinite(each.thresholds)  # else all views are covered, trivially
            tested = (~splits).sum(axis=1)[bounded]
            rows[kind] = {
                "coverage": float((each.coverages[bounded] * tested).sum() / tested.sum()),
                "worst": float(each.coverages[bounded].min()),
                "width": float((each.widths[bounded] * tested).sum() / tested.sum()),
                "unbounded_splits": int((~bounded).sum()),
            }
        rows["flag"] = by_flag(certificate, scores, draw_splits(len(order), size))
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
