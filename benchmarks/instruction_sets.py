# SPDX-License-Identifier: Apache-2.0
"""Certify under every instruction set of this machine, and verify under every other.

python benchmarks/instruction_sets.py NAME DATA RUN [--scale guided] [--keep FOLDER]

Recomputing is deterministic, so the certificate made under an instruction set is also what
`verify` recomputes there: each is made once, and every pair is compared as `verify` does.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
from machine import describe_machine

from splatcert.capture import Capture, open_capture
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.store import is_certificate
from splatcert.deploy import load_certificate
from splatcert.pipeline import certify
from splatcert.raster import native
from splatcert.verification.offline import verify_folder
from splatcert.verification.recompute import compare

RESULTS = Path(__file__).parent / "results" / "instruction_sets.json"


def made_under(isa: str, options: argparse.Namespace, folder: Path) -> Path:
    """The certificate made under an instruction set, kept in a folder of its name."""
    native.set_isa(isa)
    if not is_certificate(folder / isa):
        capture = open_capture(options.data, options.run)
        certify(capture, scale=options.scale, remember=False).save(folder / isa)
        print("certified under", isa, flush=True)
    return folder / isa


def relative(one: Any, other: Any) -> float:
    """Largest relative difference of two lists of numbers."""
    left, right = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    return float((np.abs(left - right) / np.abs(right)).max())


def pair(there: Path, here: Path, capture: Capture) -> dict[str, object]:
    """The certificate made there, verified here, and how much its numbers differ."""
    native.set_isa(here.name)
    stored, again = (
        load_certificate(path, capture.splats, scene=capture.scene) for path in (there, here)
    )
    worst = {"half_widths": 0.0, "half_widths_beyond_1e-4": 0.0}

    def half_widths():
        for view in stored.record.calibration:
            one, other = (c.scale(view.camera).scale() for c in (stored, again))
            apart = np.abs(one - other) / other.mean()
            share = float((apart > 1e-4).mean())
            worst["half_widths"] = max(worst["half_widths"], float(apart.max()))
            worst["half_widths_beyond_1e-4"] = max(worst["half_widths_beyond_1e-4"], share)
            yield view.name, one, other

    checks = (*verify_folder(there).checks, *compare(stored, again, half_widths()))
    return {
        "valid": all(one.passed is not False for one in checks),
        "failed": {one.name: one.detail for one in checks if one.passed is False},
        "differences": differences(stored, again) | worst,
    }


def differences(stored: Certificate, again: Certificate) -> dict[str, float]:
    """Largest relative differences, and shares of numbers beyond 1e-4."""
    views = [c.record.calibration for c in (stored, again)]
    one, other = stored.field.coefficients, again.field.coefficients
    apart = np.abs(one - other) / np.abs(other).max()
    support = np.abs(stored.field.support - again.field.support)
    support = support / (2 + again.field.support[..., :1])
    rows = [c.views.training.descriptors for c in (stored, again)]
    moved = np.abs(rows[0] - rows[1]) / np.abs(rows[1]).max(axis=0)
    return {
        "q": relative(stored.threshold, again.threshold),
        "scores": relative(*([v.score for v in part] for part in views)),
        "factors": relative(*([v.factor for v in part] for part in views)),
        "coefficients": float(apart.max()),
        "coefficients_beyond_1e-4": float((apart > 1e-4).mean()),
        "support": float(support.max()),
        "support_beyond_1e-4": float((support > 1e-4).mean()),
        "descriptors": float(moved.max()),
        "descriptors_beyond_1e-4": float((moved > 1e-4).mean()),
    }


def main() -> None:
    """Certify, compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="name of the capture in the results")
    parser.add_argument("data", type=Path, help="capture")
    parser.add_argument("run", type=Path, help="its model")
    parser.add_argument("--scale", default="paper", choices=("paper", "guided"))
    parser.add_argument("--sets", nargs="+", default=native.available_isas())
    parser.add_argument("--keep", type=Path, help="folder that keeps certificates between runs")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp())
    made = {isa: made_under(isa, options, folder) for isa in options.sets}
    capture = open_capture(options.data, options.run)
    matrix = {}
    for there, certificate in made.items():
        for here, recomputed in made.items():
            found = pair(certificate, recomputed, capture)
            matrix[f"{there} verified under {here}"] = found
            print(there, here, found["valid"], found["differences"], found["failed"], flush=True)
    content = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    name = options.name if options.scale == "paper" else f"{options.name}, {options.scale}"
    content |= {"machine": describe_machine(), name: matrix}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
