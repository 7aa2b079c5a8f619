# SPDX-License-Identifier: Apache-2.0
"""Measure the flag and the camera test: turned, zoomed and moved cameras, and untouched ones.

python benchmarks/flag.py DATA MODEL [DATA MODEL ...] [--work DIR] [--moved NAME ...]

Certifies each capture with its model, without writing a certificate. Calibration cameras are
turned about each axis, zoomed, and moved; a share of each kind is flagged. Untouched views are
split at random into calibration and test views. The camera test is applied to half of the
calibration cameras, changed in each way, against the other half, and to untouched halves.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
from machine import describe_machine
from scipy.spatial.transform import Rotation

import splatcert as sc
from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.sights import calibration_sights
from splatcert.conformal.boxes import VACUOUS
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.strangeness.comparison import compare_cameras
from splatcert.strangeness.limit import StrangenessLimit

RESULTS = Path(__file__).parent / "results" / "flag.json"
AXES = {"pitch": "x", "yaw": "y", "roll": "z"}
DEGREES, ZOOMS = (60, 90, 180), (2, 3, 8)
SPLITS, HALVES = 1000, 40
BEHIND = 1.5
"""Multiple of a view's mean depth at which its camera is behind the surfaces it saw."""
DEPTH = FEATURE_NAMES.index("r_depth_mean")


def changed(certificate: Certificate, row: int) -> Iterator[tuple[str, Camera]]:
    """One calibration camera turned, zoomed, moved out and moved through what it sees."""
    record, views = certificate.record, certificate.views.held_out
    view = record.calibration[row]
    camera, extent = view.camera, record.scene.extent
    for kind, axis in AXES.items():
        for degrees in DEGREES:
            turn = np.eye(4)
            turn[:3, :3] = Rotation.from_euler(axis, degrees, degrees=True).as_matrix()
            turned = replace(camera, world_to_camera=turn @ camera.world_to_camera)
            yield f"{kind} {degrees}°", turned
    for zoom in ZOOMS:
        yield f"zoom {zoom}x", replace(camera, fx=zoom * camera.fx, fy=zoom * camera.fy)
    middle = np.mean([one.camera.centre for one in record.training], axis=0)
    away = camera.centre - middle
    yield "one extent out", moved(camera, extent * away / np.linalg.norm(away))
    (at,) = views.rows_of([view.name])
    depth = float(views.descriptors[at, DEPTH]) * extent
    yield "through a wall", moved(camera, BEHIND * depth * camera.forward)


def moved(camera: Camera, by: np.ndarray) -> Camera:
    """The same camera at another place."""
    pose = camera.world_to_camera.copy()
    pose[:3, 3] -= pose[:3, :3] @ by
    return replace(camera, world_to_camera=pose)


def gross_cases(certificate: Certificate) -> dict[str, object]:
    """Shares of changed cameras that are flagged, and the widest half-width without a flag."""
    flags: dict[str, list[bool]] = {}
    cameras: dict[str, list[Camera]] = {}
    described: dict[str, list[np.ndarray]] = {}
    widest, vacuous = 0.0, 0
    for row in range(len(certificate.record.calibration)):
        for kind, camera in changed(certificate, row):
            boxes = certificate.predict(camera)
            inside = boxes.flag.inside
            flags.setdefault(kind, []).append(not inside)
            cameras.setdefault(kind, []).append(camera)
            described.setdefault(kind, []).append(boxes.descriptor)
            width = boxes.threshold * boxes.view_factor
            vacuous += inside and width > VACUOUS
            widest = max(widest, width * inside)
    return {
        "flagged": {kind: float(np.mean(found)) for kind, found in flags.items()},
        "widest_half_width_without_flag": widest,
        "vacuous_without_flag": vacuous,
        "power": {
            kind: power(certificate, cameras[kind], np.array(described[kind])) for kind in cameras
        },
    }


def power(certificate: Certificate, cameras: list[Camera], described: np.ndarray) -> float:
    """Share of random halves that the camera test tells apart at 5%."""
    record, table = certificate.record, certificate.views.held_out
    own = table.descriptors[table.rows_of(view.name for view in record.calibration)]
    known = [view.camera for view in record.calibration]
    generator, found = np.random.default_rng(0), []
    for _ in range(HALVES):
        order = generator.permutation(len(known))
        asked, left = np.array_split(order, 2)
        test = compare_cameras(
            [cameras[k] for k in asked],
            [known[k] for k in left],
            [view.camera for view in record.training],
            (described[asked], own[left]),
            extent=record.scene.extent,
        )
        found.append(test is not None and test.differs)
    return float(np.mean(found))


def untouched(certificate: Certificate) -> dict[str, float]:
    """Flagged and promised shares of test views over random splits of the calibration views."""
    record, limit = certificate.record, certificate.record.strangeness
    sights = calibration_sights(record.calibration, certificate.views)
    scores = limit.units.scores(sights, certificate.poses)
    generator, flagged, promised = np.random.default_rng(0), [], []
    size = 2 * len(scores) // 3
    for _ in range(SPLITS):
        order = generator.permutation(len(scores))
        kept = scores[order[:size]]
        rank = StrangenessLimit.rank_for(size)
        flagged.append(float((scores[order[size:]] > np.sort(kept)[rank - 1]).mean()))
        promised.append((size + 1 - rank) / (size + 1))
    table = certificate.views.held_out
    own = table.descriptors[table.rows_of(view.name for view in record.calibration)]
    return {
        "flagged": float(np.mean(flagged)),
        "promised": float(np.mean(promised)),
        "camera_test_level": power(certificate, [v.camera for v in record.calibration], own),
    }


def main() -> None:
    """Certify, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", type=Path, nargs="+", help="captures, each followed by its model")
    parser.add_argument("--work", type=Path, help="folder that keeps fitted fields")
    parser.add_argument("--moved", nargs="*", help="captures with changed cameras. Default: all")
    options = parser.parse_args()
    rows = json.loads(RESULTS.read_text())["captures"] if RESULTS.exists() else {}
    for data, model in zip(options.pairs[::2], options.pairs[1::2], strict=True):
        folder = None if options.work is None else options.work / f"kept-{data.name}"
        capture = sc.open_capture(data, model)
        certificate = sc.certify(capture, scale="paper", folder=folder)
        limit = certificate.record.strangeness
        row = {
            "views": limit.views,
            "rate": float(limit.rate),
            "limit": limit.limit,
            "untouched": untouched(certificate),
        }
        if not options.moved or data.name in options.moved:
            row |= gross_cases(certificate)
        rows[data.name] = row
        print(data.name, json.dumps(row, indent=1), flush=True)
        content = {"machine": describe_machine(), "captures": rows}
        RESULTS.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
