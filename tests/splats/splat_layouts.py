"""Writers of other tools' layouts, made from their documentation and not from our code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from plyfile import PlyData, PlyElement

from splatcert.splats.gaussians import Splats


def random_splats(count: int, degree: int = 3, seed: int = 0, **more) -> Splats:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    return Splats(
        means=2 * draw(count, 3),
        quats=draw(count, 4),
        log_scales=draw(count, 3) - 3,
        logit_opacities=draw(count),
        sh=0.4 * draw(count, (degree + 1) ** 2, 3),
        **more,
    )


def assert_same_bits(left: Splats, right: Splats) -> None:
    for name in ("means", "quats", "log_scales", "logit_opacities", "sh"):
        a, b = getattr(left, name), getattr(right, name)
        assert a.dtype == b.dtype and a.shape == b.shape, name
        assert a.numpy().tobytes() == b.numpy().tobytes(), name
    assert left.antialiased == right.antialiased
    assert list(left.extra) == list(right.extra)
    for name, column in left.extra.items():
        assert column.dtype == right.extra[name].dtype, name
        assert column.numpy().tobytes() == right.extra[name].numpy().tobytes(), name


def inria_names(degree: int) -> list[str]:
    rest = 3 * ((degree + 1) ** 2 - 1)
    return [
        *("x", "y", "z", "nx", "ny", "nz"),
        *(f"f_dc_{i}" for i in range(3)),
        *(f"f_rest_{i}" for i in range(rest)),
        "opacity",
        *(f"scale_{i}" for i in range(3)),
        *(f"rot_{i}" for i in range(4)),
    ]


def inria_table(splats: Splats) -> dict[str, np.ndarray]:
    """Columns as Inria's trainer names them, one Gaussian and coefficient at a time."""
    count, coefficients = splats.sh.shape[:2]
    table = {name: np.zeros(count, np.float32) for name in inria_names(splats.sh_degree)}
    for row in range(count):
        for axis, name in enumerate("xyz"):
            table[name][row] = splats.means[row, axis]
        for axis in range(3):
            table[f"scale_{axis}"][row] = splats.log_scales[row, axis]
        for axis in range(4):
            table[f"rot_{axis}"][row] = splats.quats[row, axis]
        table["opacity"][row] = splats.logit_opacities[row]
        for channel in range(3):
            table[f"f_dc_{channel}"][row] = splats.sh[row, 0, channel]
            for k in range(1, coefficients):
                index = channel * (coefficients - 1) + k - 1
                table[f"f_rest_{index}"][row] = splats.sh[row, k, channel]
    return table


def write_table(
    path: Path,
    table: dict[str, np.ndarray],
    *,
    text: bool = False,
    byte_order: str = "<",
    comments: tuple[str, ...] = (),
    before: tuple[PlyElement, ...] = (),
    after: tuple[PlyElement, ...] = (),
) -> Path:
    rows = np.empty(
        len(next(iter(table.values()))), [(name, column.dtype) for name, column in table.items()]
    )
    for name, column in table.items():
        rows[name] = column
    vertex = PlyElement.describe(rows, "vertex")
    data = PlyData([*before, vertex, *after], text, byte_order, comments=list(comments))
    data.write(str(path))
    return path


def mesh_faces(count: int) -> PlyElement:
    """An element with lists of different lengths, as meshes have."""
    faces = np.empty(count, [("vertex_indices", "O"), ("flag", "u1")])
    for i in range(count):
        faces[i] = (np.arange(i % 5, dtype=np.int32), i % 256)
    return PlyElement.describe(faces, "face")


def write_inria_folder(folder: Path, models: dict[int, Splats], cfg: str | None) -> Path:
    for iteration, splats in models.items():
        place = folder / "point_cloud" / f"iteration_{iteration}"
        place.mkdir(parents=True)
        write_table(place / "point_cloud.ply", inria_table(splats))
    if cfg is not None:
        (folder / "cfg_args").write_text(cfg)
    return folder


def gsplat_state(splats: Splats) -> dict[str, torch.Tensor]:
    return {
        "means": splats.means,
        "scales": splats.log_scales,
        "quats": splats.quats,
        "opacities": splats.logit_opacities,
        "sh0": splats.sh[:, :1].clone(),
        "shN": splats.sh[:, 1:].clone(),
    }


def write_gsplat_run(
    folder: Path, splats: Splats, *, step: int = 29999, ranks: int = 1, cfg: str | None = None
) -> Path:
    (folder / "ckpts").mkdir(parents=True, exist_ok=True)
    (folder / "stats").mkdir(exist_ok=True)
    bounds = np.linspace(0, len(splats), ranks + 1).astype(int)
    for rank in range(ranks):
        part = splats[slice(int(bounds[rank]), int(bounds[rank + 1]))]
        torch.save(
            {"step": step, "splats": gsplat_state(part)},
            folder / "ckpts" / f"ckpt_{step}_rank{rank}.pt",
        )
        stats = folder / "stats" / f"train_step{step:04d}_rank{rank}.json"
        stats.write_text(json.dumps({"num_GS": len(part)}))
    if cfg is not None:
        (folder / "cfg.yml").write_text(cfg)
    return folder


def nerfstudio_state(splats: Splats, prefix: str = "_model.gauss_params.") -> dict:
    return {
        prefix + "means": splats.means,
        prefix + "scales": splats.log_scales,
        prefix + "quats": splats.quats,
        prefix + "features_dc": splats.sh[:, 0].clone(),
        prefix + "features_rest": splats.sh[:, 1:].clone(),
        prefix + "opacities": splats.logit_opacities[:, None].clone(),
        "_model.lpips.net.weight": torch.zeros(3),
    }


def write_nerfstudio_run(
    folder: Path,
    state: dict,
    *,
    step: int = 29999,
    transform: np.ndarray | None = None,
    scale: float = 1.0,
    config: str | None = None,
) -> Path:
    (folder / "nerfstudio_models").mkdir(parents=True, exist_ok=True)
    # Schedulers keep the last learning rate as a NumPy number.
    schedulers = {"means": {"last_epoch": step, "_last_lr": [np.float64(1.6e-6)]}}
    torch.save(
        {"step": step, "pipeline": state, "optimizers": {}, "schedulers": schedulers},
        folder / "nerfstudio_models" / f"step-{step:09d}.ckpt",
    )
    if transform is not None:
        content = {"transform": transform[:3].tolist(), "scale": scale}
        (folder / "dataparser_transforms.json").write_text(json.dumps(content))
    if config is not None:
        (folder / "config.yml").write_text(config)
    return folder
