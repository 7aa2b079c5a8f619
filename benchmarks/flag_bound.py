# SPDX-License-Identifier: Apache-2.0
"""How well could any flag do? A classifier that is shown the turned cameras beforehand.

python benchmarks/flag_bound.py DATA MODEL [--work DIR]

A flag knows only how training cameras look. Here a kernel classifier is trained to tell cameras
turned in one known way from the capture's own, on every feature that the flag or the comparison
uses, and judged on cameras it has not seen, at the flag's rate of false alarms. Where even this
does not find the turned cameras, they are too much like the photographs for any flag on these
features. Also stored: the share of turned cameras nearer to a training camera than half of the
calibration views are.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
from flag import changed
from machine import describe_machine
from numpy.typing import NDArray

import splatcert as sc
from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate
from splatcert.difficulty.holdout_check import camera_features

RESULTS = Path(__file__).parent / "results" / "flag_bound.json"
FOLDS = 7
RIDGES, WIDTHS = (0.01, 0.1, 1.0), (0.5, 1.0, 2.0)
"""Settings of the classifier; the best of them is reported, in favour of the bound."""
Array = NDArray[np.float64]


def features(
    certificate: Certificate, cameras: list[Camera], described: Array, *, training: bool = False
) -> Array:
    """Descriptor, distance to the nearest training camera, place and direction, [n, features]."""
    known = [view.camera for view in certificate.record.training]
    near = [
        certificate.poses.nearest(camera, without=row if training else None)
        for row, camera in enumerate(cameras)
    ]
    placed = camera_features(cameras, known)
    columns = [np.asarray(values)[: len(cameras)] for values in placed.values()]
    middle = np.mean([camera.centre for camera in known], axis=0)
    where = [(camera.centre - middle) / certificate.record.scene.extent for camera in cameras]
    return np.column_stack(
        [
            described,
            [(n.pose, n.distance, n.angle) for n in near],
            *columns,
            where,
            [camera.forward for camera in cameras],
        ]
    )


def judged(own: Array, turned: Array, training: Array, ridge: float, width: float) -> float:
    """Share of turned cameras above the largest score of the calibration views.

    Row k of `own` and of `turned` are one camera; its fold is left out of the fit.
    """
    together = np.vstack([training, own, turned])
    spread = np.where(together.std(axis=0) > 0, together.std(axis=0), 1)
    middle = together.mean(axis=0)
    training, own, turned = ((part - middle) / spread for part in (training, own, turned))
    folds = np.random.default_rng(0).permutation(len(own)) % FOLDS
    scores = np.zeros((2, len(own)))
    for fold in range(FOLDS):
        kept, left = folds != fold, folds == fold
        rows = np.vstack([training, own[kept], turned[kept]])
        labels = np.r_[np.zeros(len(training) + kept.sum()), np.ones(kept.sum())]
        weights = np.where(labels == 1, len(labels) / kept.sum(), 1.0)
        scale = width * own.shape[1]
        kernel = _kernel(rows, rows, scale) + ridge * np.diag(1 / weights)
        solution = np.linalg.solve(kernel, labels - labels.mean())
        scores[0, left] = _kernel(own[left], rows, scale) @ solution
        scores[1, left] = _kernel(turned[left], rows, scale) @ solution
    return float((scores[1] > scores[0].max()).mean())


def _kernel(a: Array, b: Array, scale: float) -> Array:
    return np.exp(-np.square(a[:, None] - b[None]).sum(axis=2) / scale)


def main() -> None:
    """Certify, turn, classify, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--work", type=Path, help="folder that keeps fitted fields")
    options = parser.parse_args()
    folder = None if options.work is None else options.work / f"kept-{options.data.name}"
    capture = sc.open_capture(options.data, options.model)
    certificate = sc.certify(capture, scale="paper", folder=folder)
    record, views = certificate.record, certificate.views
    order = views.held_out.rows_of(view.name for view in record.calibration)
    own = features(
        certificate, [v.camera for v in record.calibration], views.held_out.descriptors[order]
    )
    cameras = [view.camera for view in record.training]
    training = features(certificate, cameras, views.training.descriptors, training=True)
    groups: dict[str, list[Camera]] = {}
    for row in range(len(record.calibration)):
        for kind, camera in changed(certificate, row):
            if "°" in kind:
                groups.setdefault(kind, []).append(camera)
    usual = np.median([certificate.poses.nearest(v.camera).pose for v in record.calibration])
    rows = {}
    for kind, group in groups.items():
        described = np.array([certificate.predict(camera).descriptor for camera in group])
        turned = features(certificate, group, described)
        best = max(judged(own, turned, training, r, w) for r in RIDGES for w in WIDTHS)
        near = np.mean([certificate.poses.nearest(camera).pose <= usual for camera in group])
        rows[kind] = {"found_by_classifier": best, "nearer_than_half_of_calibration": float(near)}
        print(kind, rows[kind], flush=True)
    found = json.loads(RESULTS.read_text())["captures"] if RESULTS.exists() else {}
    found[options.data.name] = rows
    content = {"machine": describe_machine(), "captures": found}
    RESULTS.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
