# SPDX-License-Identifier: Apache-2.0
"""Pictures for docs/gallery.md: one certified view per capture, its render beside its half-widths.

python benchmarks/gallery.py SCENES MODELS CERTS

Models are read from MODELS/NAME. A certificate that CERTS/NAME.cert does not have yet is made from
SCENES/NAME. The view is the sharpest render of five from the middle third of the calibration views
by difficulty. Renders and maps only; no photograph is shown. All maps share one colour scale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert import cli
from splatcert.certificate.certificate import Certificate
from splatcert.conformal.boxes import Boxes
from splatcert.deploy import open_certificate
from splatcert.report.build import calibration_of
from splatcert.report.colours import UNIT, WidthScale
from splatcert.report.pictures import sharpness
from splatcert.storage.png import to_pixels

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs/images/gallery"
RESULTS = ROOT / "benchmarks/results/gallery.json"
WIDTH = 640
"""Width of one picture, render and map together."""
QUALITY = 88


def typical_view(certificate: Certificate) -> tuple[str, Boxes]:
    """A sharp view of medium difficulty, with its boxes."""
    views = calibration_of(certificate)
    order = views.by_difficulty(certificate.beta)
    third = len(order) // 3
    medium = order[third : len(order) - third]
    rows = medium[np.unique(np.linspace(0, len(medium) - 1, 5).round().astype(int))]
    cameras = {view.name: view.camera for view in certificate.record.calibration}
    found = [(views.names[row], certificate.predict(cameras[views.names[row]])) for row in rows]
    return max(found, key=lambda pair: sharpness(pair[1].center.numpy()))


def facts_of(name: str, certificate: Certificate, view: str, boxes: Boxes) -> dict[str, Any]:
    """The row of one capture."""
    views = calibration_of(certificate)
    half_width = boxes.half_width.numpy()
    return {
        "capture": name,
        "view": view,
        "calibration_views": len(views.names),
        "gaussians": certificate.record.model.gaussians,
        "alpha": str(certificate.alpha),
        "beta": str(certificate.beta),
        "psnr": round(float(np.mean(views.psnr)), 2),
        "half_width_of_255": round(255 * float(np.mean(certificate.usual_half_widths)), 1),
        "shown_of_255": round(255 * float(half_width.mean()), 1),
        "shown_tenths_of_255": [
            round(255 * float(np.quantile(half_width, share)), 1) for share in (0.1, 0.9)
        ],
    }


def draw(name: str, boxes: Boxes, scale: WidthScale) -> None:
    """Render and half-width side by side."""
    pair = [to_pixels(boxes.center.numpy()), scale.colours(boxes.half_width.numpy())]
    picture = Image.fromarray(np.hstack(pair))
    size = WIDTH, round(picture.height * WIDTH / picture.width)
    picture.resize(size, Image.Resampling.LANCZOS).save(
        PICTURES / f"{name}.webp", quality=QUALITY, method=6
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for place in ("scenes", "models", "certs"):
        parser.add_argument(place, type=Path)
    asked = parser.parse_args()
    rows, shown = [], {}
    for model in sorted(path for path in asked.models.iterdir() if path.is_dir()):
        stored = asked.certs / f"{model.name}.cert"
        if not stored.exists():
            made = ["certify", str(asked.scenes / model.name), str(model), "-o", str(stored)]
            assert cli.main([*made, "--scale", "paper"]) == 0
        certificate = open_certificate(stored, model)
        view, shown[model.name] = typical_view(certificate)
        rows.append(facts_of(model.name, certificate, view, shown[model.name]))
        print(rows[-1], flush=True)
    scale = WidthScale.for_pixels([row["half_width_of_255"] / 255 for row in rows])
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, boxes in shown.items():
        draw(name, boxes, scale)
    Image.fromarray(scale.legend(UNIT)).save(PICTURES / "scale.webp", lossless=True)
    result = {"machine": describe_machine(), "scale_top": scale.top, "rows": rows}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
