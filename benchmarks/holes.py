# SPDX-License-Identifier: Apache-2.0
"""Compare boxes whose holes are wide with the paper's, on the held-out views of certificates.

python benchmarks/holes.py CERTS DATA MODELS [--scenes NAME ...]

CERTS, DATA and MODELS are folders with one certificate, capture and model per scene, under the same
name. Both forms share field, descriptors and factors of the certificate; only the map b differs.
Each form is calibrated anew on all its held-out views. A hole is a pixel of opacity below 1/2.
Rows are merged into the results file.
"""

from __future__ import annotations

import argparse
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.certificate.store import read_content
from splatcert.conformal.calibrate import threshold_of, view_score
from splatcert.conformal.maps import rgb_residual
from splatcert.conformal.splits import calibration_size, draw_splits, estimate, saving
from splatcert.deploy import load_certificate, load_certified_scene, load_certified_splats
from splatcert.raster.render import render

RESULTS = Path(__file__).parent / "results" / "holes.json"
LEVEL = Fraction(1, 10)
"""alpha and beta."""
FORMS: tuple[Literal["paper", "wide"], ...] = ("paper", "wide")
TENTHS = 10


def measure_scene(certificate_path: Path, data: Path, model: Path) -> dict[str, Any]:
    """Widths and coverage of both forms and of a constant scale, over the held-out views."""
    record = read_content(certificate_path)[1]
    scene = load_certified_scene(record, data)
    certificate = load_certificate(certificate_path, load_certified_splats(record, model, scene))
    lambda_b, fitted = record.scale.shape, certificate.fitted
    factors = np.array([view.factor for view in record.calibration])
    names = [view.name for view in record.calibration]
    labelled = scene.held_out.reveal("evaluation", names, by="benchmark")
    kept: list[dict[str, Any]] = []
    for view in labelled:
        alpha = render(fitted.splats, view.camera).alpha.numpy()
        mask = view.mask().numpy() if view.has_mask else np.ones(alpha.shape, bool)
        row: dict[str, Any] = {"hole": (alpha < 0.5)[mask]}
        for form in FORMS:
            query = fitted.query(view.camera, holes=form)
            residual = rgb_residual(view.image().numpy(), query.center.numpy())
            shape = query.shape(lambda_b).numpy().astype(np.float64)
            row[form] = shape[mask]
            row[f"{form} oracle"] = view_score(residual, shape, LEVEL, mask)
            row["residual"] = residual[mask]
        row["constant"] = np.ones_like(row["residual"])
        row["constant oracle"] = view_score(row["residual"], 1.0, LEVEL)
        kept.append(row)
    splits = draw_splits(len(kept), calibration_size(len(kept)))
    flat = np.ones(len(kept))
    constant = estimate([r["constant oracle"] for r in kept], flat, LEVEL, splits).mean_width
    found: dict[str, Any] = {
        "views": len(kept),
        "prior": record.field.prior,
        "lambda_b": str(lambda_b),
        "hole_share": float(np.mean([r["hole"].mean() for r in kept])),
    }
    for form in (*FORMS, "constant"):
        used = flat if form == "constant" else factors
        found[form] = _form(kept, form, used, splits, constant)
    return found


def _form(
    kept: list[dict[str, Any]], form: str, factors: np.ndarray, splits: np.ndarray, constant: float
) -> dict[str, Any]:
    """One form, calibrated on all views, and its estimate over random splits."""
    oracle = np.array([row[f"{form} oracle"] for row in kept])
    q = threshold_of(oracle / factors, LEVEL)
    guess = estimate(oracle, factors, LEVEL, splits)
    holes = np.concatenate(
        [
            np.column_stack([(q * a * row[form]), row["residual"]])[row["hole"]]
            for row, a in zip(kept, factors, strict=True)
        ]
    )
    inside, pixels = np.zeros((2, TENTHS), dtype=np.int64)
    for row, a in zip(kept, factors, strict=True):
        width = q * a * row[form]
        order = np.argsort(width, kind="stable")
        for tenth, part in enumerate(np.array_split(order, TENTHS)):
            inside[tenth] += int((row["residual"][part] <= width[part]).sum())
            pixels[tenth] += part.size
    return {
        "half_width": float(q * factors.mean()),
        "split_coverage": guess.coverage,
        "split_width": guess.mean_width,
        "saving": saving(guess.mean_width, constant),
        "hole_half_width": float(holes[:, 0].mean()) if len(holes) else None,
        "hole_coverage": float((holes[:, 1] <= holes[:, 0]).mean()) if len(holes) else None,
        "coverage_by_tenth": [] if form == "constant" else (inside / pixels).round(4).tolist(),
    }


def main() -> None:
    """Measure the scenes asked for and merge their rows into the results file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("certificates", type=Path, help="folder of certificates, one per scene")
    parser.add_argument("data", type=Path, help="folder of captures")
    parser.add_argument("models", type=Path, help="folder of models")
    parser.add_argument("--scenes", nargs="*", help="scenes to measure. Default: all")
    options = parser.parse_args()
    found = json.loads(RESULTS.read_text())["scenes"] if RESULTS.exists() else {}
    names = options.scenes or sorted(path.name for path in options.certificates.iterdir())
    for name in names:
        places = (folder / name for folder in (options.data, options.models))
        found[name] = measure_scene(options.certificates / name, *places)
        print(name, json.dumps(found[name]), flush=True)
        content = {"machine": describe_machine(), "scenes": dict(sorted(found.items()))}
        RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
