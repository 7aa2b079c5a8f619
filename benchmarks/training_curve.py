# SPDX-License-Identifier: Apache-2.0
"""Draw how quality grows with iterations, from the rows that `training.py` has stored.

python benchmarks/training_curve.py docs/images/training.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROWS = Path(__file__).parent / "results" / "training.json"
SCENE, WIDTH = "truck", 320


def curve() -> list[dict]:
    """Rows that differ in their iterations alone."""
    rows = json.loads(ROWS.read_text())["rows"]
    return [
        row
        for row in rows
        if (row["scene"], row["density"], row["size"][0]) == (SCENE, "fastgs", WIDTH)
        and not row["coarse_to_fine"]
    ]


def main(out: Path) -> None:
    """One chart: held-out PSNR and SSIM over iterations."""
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
    figure.savefig(out, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
