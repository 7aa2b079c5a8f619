# SPDX-License-Identifier: Apache-2.0
"""Measure the `gpu` back end: its error, what a query moves and runs, and time against `cpu`.

python benchmarks/gpu.py --data SCENE --model SPLATS      a real scene
python benchmarks/gpu.py --gaussians 3000000 --width 1600 a synthetic one
python benchmarks/gpu.py --data SCENE --model SPLATS --certificates FOLDER
    also makes certificates with `cpu` and `gpu`, and carries each over to the other
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from carried_over import carry_over, certified
from machine import describe_machine
from query import observe
from timing import interleave

import splatcert as sc
from splatcert.camera import Camera
from splatcert.config import Backend
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.raster.gpu.adapter import adapter_name
from splatcert.raster.gpu.device import Traffic, open_device
from splatcert.raster.gpu.view import GpuView
from splatcert.raster.reference import ReferenceView
from splatcert.raster.render import open_view
from splatcert.splats.gaussians import Splats
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

BACKGROUND = (0.0, 0.0, 0.0)


def draw(*shape: int, seed: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def errors(splats: Splats, camera: Camera, pixels: int) -> dict[str, object]:
    """Against the float64 reference at random pixels, and of the adjoint over the whole view."""
    values = draw(len(splats), 3, seed=0)
    image = draw(camera.height, camera.width, 3, seed=1)
    size = torch.tensor([camera.height, camera.width])
    chosen = (draw(pixels, 2, seed=2) * size).long().unique(dim=0)
    row, column = chosen.T
    exact = ReferenceView(splats.to(torch.float64), camera)
    weights = torch.cat(
        [exact.footprints.weights(some.flip(1).double() + 0.5) for some in chosen.split(32)]
    )
    truth = weights @ values[exact.order].double()
    sparse = torch.zeros_like(image)
    sparse[row, column] = image[row, column]
    pulled = weights.T @ image[row, column].double()
    found: dict[str, object] = {"pixels": len(chosen)}
    for backend in ("gpu", "cpu"):
        view = open_view(splats, camera, backend)
        shown = view.composite(values)
        off = (shown[row, column] - truth).abs()
        back = view.scatter(sparse)[exact.order]
        left = (shown.double() * image).sum()
        right = (view.scatter(image).double() * values).sum()
        found[backend] = {
            "median": float(off.median()),
            "99 per cent": float(off.flatten().quantile(0.99)),
            "largest": float(off.max()),
            "scatter": float((back - pulled).norm() / pulled.norm()),
            "adjoint": float((left - right).abs() / left),
        }
    return found


def repeats(splats: Splats, camera: Camera, runs: int) -> bool:
    """Whether picture and adjoint have the same bits in every run."""
    values, image = draw(len(splats), 3, seed=0), draw(camera.height, camera.width, 3, seed=1)

    def once() -> tuple[torch.Tensor, torch.Tensor]:
        view = open_view(splats, camera, "gpu")
        return view.composite(values), view.scatter(image)

    picture, pulled = once()
    again = (once() for _ in range(runs - 1))
    return all(torch.equal(a, picture) and torch.equal(b, pulled) for a, b in again)


def cost(counts: dict[str, int], sh: int, traits: int, digits: int) -> dict[str, int]:
    """Bytes and floating-point operations of one query on paper, from its counts.

    Every table is read or written once per kernel that uses it, but values of a Gaussian once per
    tile. All pixels of a tile evaluate all of its entries, although pixels stop early: a bound.
    """
    n, m, e, p = (counts[name] for name in ("gaussians", "drawn", "entries", "pixels"))
    sort = 4 * (2 + 3)  # order and key twice, order written
    moved = {
        "cull": n * (48 + 4 * 4),
        "place": n * 8 + m * (48 + 44),
        "sort by depth": 6 * m * sort,
        "tile lists": m * 2 * 40 + e * (8 + digits * sort + 20),
        "pack": n * 8 + m * (16 + 12 * sh + 4 * traits + 8 + 48),
        "blend": e * (4 + 32 + 48) + p * 48,
        "finish": p * (48 + 44 + 12),
        "statistics": p * 4 * (9 + 4 * 5),
        "download": p * 16,
    }
    operations = n * 500 + m * (6 * sh + 300) + e * (256 * 16 + 60) + counts["weights"] * 28
    return moved | {"bytes": sum(moved.values()), "operations": operations}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--gaussians", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--pixels", type=int, default=512)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--certificates", type=Path)
    parser.add_argument("--photos", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--out", type=Path, help="what is not measured now stays as it was there")
    asked = parser.parse_args()
    if asked.model:
        splats = sc.load_splats(asked.model)
        scene = sc.load_scene(asked.data, holdout=8)
        cameras = [view.camera for view in scene.training]
    else:
        splats = made_splats(asked.gaussians)
        cameras = made_cameras(3, asked.width, round(asked.width * 0.66))
    camera, device = cameras[0], open_device()
    fitted = observe(splats, cameras[:24], 1.0)

    def query(backend: Backend):
        return open_view(splats, camera, backend).query(fitted.traits, BACKGROUND, EPSILON0)

    first = query("gpu")
    device.traffic = Traffic()
    query("gpu").hardly_shown(0.5, 0.1, 1.0)
    moved, view = dict(vars(device.traffic)), GpuView(splats, camera)
    theirs = query("cpu")
    shown = torch.ones(camera.height, camera.width, dtype=torch.bool)
    counts = {
        "gaussians": len(splats),
        "pixels": camera.width * camera.height,
        "drawn": sum(band.drawn for band in view._bands),
        "entries": sum(band.order.words for band in view._bands),
        "weights": int(open_view(splats, camera).count(shown).double().sum()),
    }
    result = {
        "machine": describe_machine(),
        "device": adapter_name(),
        "size": [camera.width, camera.height],
        **counts,
        "bands": len(view._bands),
        "pages": len(view._model.pages),
        "query": moved,
        "on_paper": cost(
            counts,
            splats.sh.shape[1],
            fitted.traits.table.shape[1],
            digits=-(-view._bands[0].tiles.bit_length() // 8),
        ),
        "center": float((first.center - theirs.center).abs().max()),
        "field": float(((first.field - theirs.field) / theirs.field).abs().max()),
        "statistics": max(
            abs(a - b) / max(abs(b), 1e-3)
            for a, b in zip(first.statistics, theirs.statistics, strict=True)
        ),
        "error": errors(splats, camera, asked.pixels) if asked.pixels else None,
        "same_bits": repeats(splats, camera, asked.runs) if asked.runs else None,
        "runs": asked.runs or None,
        "timing": interleave(
            {"gpu": lambda: query("gpu"), "cpu": lambda: query("cpu")}, rounds=asked.rounds
        )
        if asked.rounds
        else None,
    }
    if asked.certificates:
        place, inputs = asked.certificates, (asked.data, asked.model)
        made = certified(*inputs, place / "cpu.cert", "cpu", photos=0, steps=0)
        result["cpu_to_gpu"] = carry_over(made, splats, asked.data, "gpu")
        few = {"photos": asked.photos, "steps": asked.steps}
        made = certified(*inputs, place / "gpu.cert", "gpu", **few)
        result["gpu_to_cpu"] = carry_over(made, splats, asked.data, "cpu")
    former = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else {}
    measured = {name: value for name, value in result.items() if value is not None}
    text = json.dumps(former | measured, indent=1)
    print(text)
    if asked.out:
        asked.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
