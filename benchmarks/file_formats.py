# SPDX-License-Identifier: Apache-2.0
"""The demo's model in every file format: size, PSNR and half-width of each file as shipped.

python benchmarks/file_formats.py FOLDER --tool SPLAT_TRANSFORM

Trains the model of `splatcert demo` in FOLDER unless it is there, writes it in each format, and
certifies every file on the same held-out photographs. PLY, SPZ and glTF are written by splatcert;
the others by npm's @playcanvas/splat-transform, version 3 or later.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
from machine import describe_machine

import splatcert as sc
from splatcert.commands.demo import GAUSSIANS, HOLDOUT, STEPS, copy_photographs
from splatcert.splats.account import account_of
from splatcert.splats.formats.save import save_glb, save_spz
from splatcert.training.losses import measure
from splatcert.training.run import TrainingRun

RESULTS = Path(__file__).parent / "results" / "file_formats.json"
OURS: dict[str, tuple[str, Callable]] = {
    "model.glb": ("splatcert", save_glb),
    "model.spz": ("splatcert, 8-bit harmonics", save_spz),
}
THEIRS = {
    "tool.compressed.ply": "splat-transform",
    "tool.sog": "splat-transform, one k-means step",
    "tool.splat": "splat-transform",
    "tool.spz": "splat-transform, 4- and 5-bit harmonics",
}


def trained_run(folder: Path) -> Path:
    """The demo's photographs and its run, trained if need be."""
    photographs, run = folder / "still-life", folder / "run"
    if not photographs.is_dir():
        copy_photographs(photographs)
    scene = sc.load_scene(photographs, holdout=int(HOLDOUT))
    config = sc.TrainConfig(iterations=STEPS, recipe="published", max_gaussians=GAUSSIANS)
    training = TrainingRun(run, scene, config)
    with training.opened():
        if not training.finished:
            training.train()
    return run


def written_files(run: Path, folder: Path, tool: str) -> Iterator[tuple[Path, str]]:
    """Every file of the model, and who wrote it."""
    splats = sc.load_splats(run / "splats.ply")
    shipped = folder / "shipped"
    shipped.mkdir(exist_ok=True)
    plain = shipped / "model.ply"
    plain.write_bytes((run / "splats.ply").read_bytes())
    yield plain, "splatcert"
    for name, (writer, save) in OURS.items():
        save(splats, shipped / name)
        yield shipped / name, writer
    for name, writer in THEIRS.items():
        steps = ["-i", "1"] if name.endswith(".sog") else []
        command = [tool, "-w", "-g", "cpu", *steps, plain, shipped / name]
        subprocess.run(command, check=True, capture_output=True)
        yield shipped / name, writer


def row_of(file: Path, writer: str, photographs: Path, held_out: tuple[str, ...]) -> dict:
    """The figures of one file as it is shipped."""
    capture = sc.open_capture(photographs, file, holdout=held_out)
    certificate = sc.certify(capture, scale="paper")
    revealed = capture.scene.held_out.reveal("evaluation", held_out, by="benchmark")
    quality = [view.psnr for view in measure(capture.splats, revealed)]
    return {
        "file": "." + file.name.partition(".")[2],
        "written_by": writer,
        "bytes": file.stat().st_size,
        "gaussians": len(capture.splats),
        "psnr": float(np.mean(quality)),
        "threshold": certificate.threshold,
        "half_width": float(np.mean(certificate.usual_half_widths)),
        "splats": certificate.record.model.splats,
    }


def table(rows: list[dict]) -> str:
    """The table of the page on compressed formats; a test compares the two."""
    lines = [
        "| file | written by | size | PSNR, held out | mean half-width |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: -row["bytes"]):
        size, width = f"{row['bytes'] / 1e6:.2f} MB", f"{row['half_width']:.4f}"
        cells = (f"`{row['file']}`", row["written_by"], size, f"{row['psnr']:.2f} dB", width)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Train, write, certify, print."""
    parser = argparse.ArgumentParser(description="The demo's model in every file format.")
    parser.add_argument("folder", type=Path, help="folder for photographs, run and files")
    parser.add_argument("--tool", default="splat-transform", help="splat-transform's program")
    options = parser.parse_args()
    run = trained_run(options.folder)
    held_out = account_of(run).kept_out or ()
    version = subprocess.run(
        [options.tool, "--version"], capture_output=True, text=True, check=True
    )
    rows = []
    for file, writer in written_files(run, options.folder, options.tool):
        rows.append(row_of(file, writer, options.folder / "still-life", held_out))
        print(json.dumps(rows[-1]), flush=True)
    content = {
        "machine": describe_machine(),
        "splat_transform": (version.stdout + version.stderr).split()[-1],
        "held_out": len(held_out),
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
