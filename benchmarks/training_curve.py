# SPDX-License-Identifier: Apache-2.0
"""Plot quality against iterations, from the rows that `training.py` stored.

python benchmarks/training_curve.py docs/images/training.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROWS = Path(__file__).parent / "results" / "training.json"
SCENE, WIDTH = "truck", 320


def curve() -> list[dict]:
    """Rows that differ only in their iterations."""
    rows = json.loads(ROWS.read_text())["rows"]
    return [
        row
        for row in rows
        if (row["scene"], row["density"], row["size"][0]) == (SCENE, "fastgs", WIDTH)
        and not row["coarse_to_fine"]
    ]


def main() -> None:
    """Plot held-out PSNR and SSIM over iterations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="PNG file to write")
    options = parser.parse_args()
    rows = sorted(curve(), key=lambda row: row["iterations"])
    steps = [row["iterations"] for row in rows]
    figure, left = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    right = left.twinx()
    left.plot(steps, [row["psnr"] for row in rows], "o-", color="#1b6ca8")
    right.plot(steps, [row["ssim"] for row in rows], "s--", color="#c4622d")
    for row in rows:
        place = (row["iterations"], row["psnr"])
        left.annotate(f"{row['psnr']:.2f} dB", place, (7, -13), textcoords="offset points")
    left.set_xscale("log")
    left.set_xticks(steps, [f"{step:,}" for step in steps])
    left.minorticks_off()
    left.set_xlabel("steps")
    left.set_ylabel("PSNR of held-out views (dB)", color="#1b6ca8")
    right.set_ylabel("SSIM", color="#c4622d")
    left.margins(x=0.24, y=0.2)
    left.spines["top"].set_visible(False)
    right.spines["top"].set_visible(False)
    figure.savefig(options.out, dpi=150)


if __name__ == "__main__":
    main()
