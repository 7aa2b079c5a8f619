# SPDX-License-Identifier: Apache-2.0
"""Collect the numbers of real certificates: guarantee, widths at other levels, splits, predictor.

python benchmarks/certificates.py CERT... [--sources CERT...]

Make the certificates with `splatcert certify --scale paper`, and their predictor with
`splatcert learn`.
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

from splatcert import load_certificate
from splatcert_viewer.levels import Levels

RESULTS = Path(__file__).parent / "results" / "certificates.json"
ALPHAS = ("1/20", "1/10", "1/5", "1/4", "1/2")


def card_of(predictor: dict | None) -> dict | None:
    """The predictor's card without the hash of every photograph."""
    if predictor is None:
        return None
    scenes = [{k: v for k, v in s.items() if k != "hashes"} for s in predictor["card"]["scenes"]]
    return predictor["card"] | {"scenes": scenes}


def widths_of(folder: Path) -> dict[str, dict[str, float]]:
    """Mean half-width over the calibration views at other levels, one level changed at a time."""
    certificate = load_certificate(folder)
    levels = Levels.of(certificate)
    factor = np.mean([view.factor for view in certificate.record.calibration])
    alpha, beta = levels.certified
    at = {
        "alpha": {text: (Fraction(text), beta) for text in ALPHAS},
        "beta": {str(one): (alpha, one) for one in levels.betas},
    }
    return {
        name: {text: float(levels.at(*pair).threshold * factor) for text, pair in pairs.items()}
        for name, pairs in at.items()
    }


def row_of(folder: Path) -> dict[str, object]:
    """The figures of one certificate."""
    record = json.loads((folder / "certificate.json").read_text())
    return {
        "scene": record["scene"]["name"],
        "sizes": record["scene"]["sizes"],
        "gaussians": record["model"]["gaussians"],
        "training_views": len(record["training"]),
        "guarantee": record["guarantee"],
        "widths": widths_of(folder),
        "lambda_a": record["scale"]["lambda_a"],
        "lambda_b": record["scale"]["lambda_b"],
        "learned_on": card_of(record["scale"]["predictor"]),
        "field": record["field"],
        "exchangeability_p": record["evenness"]["p_value"],
        "splits": record["splits"],
        "scores": {view["name"]: view["score"] for view in record["calibration"]},
        "factors": {view["name"]: view["factor"] for view in record["calibration"]},
        "seal": record["seal"],
    }


def main() -> None:
    """Collect, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "certificates", type=Path, nargs="+", help="certificate folders of target scenes"
    )
    parser.add_argument(
        "--sources", type=Path, nargs="*", default=[], help="certificate folders of source scenes"
    )
    options = parser.parse_args()
    content = {"machine": describe_machine()}
    for key in ("certificates", "sources"):
        rows = [row_of(folder) for folder in getattr(options, key)]
        content[key] = rows
        for row in rows:
            print(row["scene"], row["guarantee"]["statement"])
            for scale, found in (row["splits"] or {"scales": {}})["scales"].items():
                figures = f"coverage {found['coverage']:.3f}  half-width {found['width']:.4f}"
                print(f"  {scale:<10} {figures}  saving {100 * found['saving']:5.1f} %")
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
