# SPDX-License-Identifier: Apache-2.0
"""How often the test of `difficulty/trained_on.py` calls out honest and forged hold-outs.

python benchmarks/trained_on.py SCENES RUNS NAME... [--keep FOLDER]

SCENES/NAME is a capture and RUNS/NAME a run of `splatcert train` on it that held out every 8th
photo. Every photo is rendered once. The honest certificate calibrates on the photos held out.
A forger certifies the bare splats.ply with a different hold-out: each other photo of every 8,
`random8`, or a stretch of successive photos. No field is needed: the test uses plain residuals.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
from machine import describe_machine

from splatcert.camera import Camera
from splatcert.capture import open_capture
from splatcert.conformal.calibrate import view_score
from splatcert.conformal.maps import rgb_residual
from splatcert.difficulty import trained_on
from splatcert.raster.render import render
from splatcert.scene.load import read_photographs

RESULTS = Path(__file__).parent / "results" / "trained_on.json"
EVERY = 8
STRETCHES = (0.2, 0.5, 0.8)
"""Where a stretch of one photo in eight begins, as a share of the capture."""
DEVELOPED_ON = ("bicycle", "truck")
"""Captures that were looked at while the test was designed; the others came afterwards."""


def residuals_of(data: Path, run: Path) -> dict[str, np.ndarray]:
    """Residual, camera and role of every photo, by name."""
    capture = open_capture(data, run)
    scene, held_out = capture.scene, capture.scene.held_out
    labelled = held_out.reveal("evaluation", held_out.with_photo, by="benchmarks/trained_on.py")
    found = {}
    for view in (*scene.training, *labelled):
        center = render(capture.splats, view.camera, background=capture.background).rgb.clamp(0, 1)
        residual = rgb_residual(view.image().numpy(), center.numpy())
        found[view.name] = view_score(residual, np.ones_like(residual), trained_on.BETA)
    names, cameras = sorted(found), scene.cameras
    drawn = read_photographs(data).scene(f"random{EVERY}").held_out.names
    return {
        "names": np.array(names),
        "residuals": np.array([found[name] for name in names]),
        "trained": np.array([name not in set(held_out.names) for name in names]),
        "drawn": np.array([name in set(drawn) for name in names]),
        "poses": np.array([cameras[name].world_to_camera for name in names]),
    }


def hold_outs(trained: np.ndarray, drawn: np.ndarray) -> dict[str, np.ndarray]:
    """The honest choice of calibration views and the forged ones, as masks."""
    count, place = len(trained), np.arange(len(trained))
    chosen = {"honest": ~trained}
    chosen |= {f"{k} of every {EVERY}": place % EVERY == k for k in range(1, EVERY)}
    chosen[f"random{EVERY}"] = drawn
    for start in STRETCHES:
        first = int(start * count)
        stretch = (place >= first) & (place < first + count // EVERY)
        chosen[f"stretch at {start}"] = stretch & trained
    return chosen


def row_of(found: dict[str, np.ndarray]) -> dict[str, object]:
    """P-value and verdict for every hold-out of one capture."""
    grid = {"fx": 1.0, "fy": 1.0, "cx": 0.5, "cy": 0.5, "width": 1, "height": 1}
    cameras = [Camera(world_to_camera=pose, **grid) for pose in found["poses"]]
    row: dict[str, object] = {"photos": len(cameras), "held_out": int((~found["trained"]).sum())}
    for name, mask in hold_outs(found["trained"], found["drawn"]).items():
        order = np.concatenate([np.flatnonzero(mask), np.flatnonzero(~mask)])
        test = trained_on.compare_residuals(
            [cameras[k] for k in order], found["residuals"][order], int(mask.sum())
        )
        assert test is not None
        trained = float(found["trained"][mask].mean())
        row[name] = {
            "p_value": test.p_value,
            "called_out": test.flagged,
            "share_trained_on": trained,
        }
    return row


def totals(rows: dict[str, dict]) -> dict[str, object]:
    """How many captures each hold-out is called out on, of all and of those not looked at."""
    fresh = [name for name in rows if name not in DEVELOPED_ON]
    kinds = [key for key in next(iter(rows.values())) if key not in ("photos", "held_out")]
    return {
        kind: {
            "called_out": sum(rows[name][kind]["called_out"] for name in rows),
            "of": len(rows),
            "called_out_not_looked_at": sum(rows[name][kind]["called_out"] for name in fresh),
            "of_not_looked_at": len(fresh),
        }
        for kind in kinds
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", type=Path, help="folder of captures")
    parser.add_argument("runs", type=Path, help="folder of runs with the same names")
    parser.add_argument("names", nargs="+", help="captures to test")
    parser.add_argument("--keep", type=Path, help="folder that keeps residuals between runs")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where to write the figures")
    options = parser.parse_args()
    rows = {}
    for name in options.names:
        kept = None if options.keep is None else options.keep / f"{name}.npz"
        if kept is not None and kept.is_file():
            found = dict(np.load(kept))
        else:
            found = residuals_of(options.scenes / name, options.runs / name)
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                np.savez(kept, **found)
        rows[name] = row_of(found)
        kinds = {k: v for k, v in rows[name].items() if isinstance(v, dict)}
        print(name, *(f"{k}: {v['p_value']:.4f}" for k, v in kinds.items()), sep="  ", flush=True)
    settings = {key: getattr(trained_on, key) for key in ("LEVEL", "NEIGHBOURS", "REACH", "NUGGET")}
    content = {
        "machine": describe_machine(),
        "settings": {key.lower(): value for key, value in settings.items()},
        "looked_at_while_designing": DEVELOPED_ON,
        "totals": totals(rows),
        "captures": rows,
    }
    options.output.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
