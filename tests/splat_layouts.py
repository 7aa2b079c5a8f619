# SPDX-License-Identifier: Apache-2.0
"""Writers of other tools' layouts, made from their documentation and not from our code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from plyfile import PlyData, PlyElement
from scipy.spatial.transform import Rotation
from scipy.special import factorial, lpmv

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


def brush_table(splats: Splats) -> dict[str, np.ndarray]:
    """Brush's columns: no normals, and geometry before colour."""
    table = inria_table(splats)
    names = "x y z scale_0 scale_1 scale_2 opacity rot_0 rot_1 rot_2 rot_3 f_dc_0 f_dc_1 f_dc_2"
    return {n: table[n] for n in [*names.split(), *(n for n in table if n.startswith("f_rest"))]}


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


def scipy_basis(directions: np.ndarray, degree: int) -> np.ndarray:
    """Real harmonics by SciPy's Legendre functions, which carry the phase (-1)^m themselves."""
    azimuth = np.arctan2(directions[:, 1], directions[:, 0])
    columns = []
    for l in range(degree + 1):
        for m in range(-l, l + 1):
            k = abs(m)
            norm = np.sqrt((2 * l + 1) / (4 * np.pi) * factorial(l - k) / factorial(l + k))
            wave = 1.0 if m == 0 else np.sqrt(2) * (np.cos if m > 0 else np.sin)(k * azimuth)
            columns.append(norm * lpmv(k, l, directions[:, 2]) * wave)
    return np.stack(columns, axis=1)


def moved_along(splats: Splats, matrix: np.ndarray) -> Splats:
    """The splats as a trainer that had moved its world by x' = s R x + t would hold them.

    Harmonics are found by asking for the same colours in the turned directions.
    """
    scale = np.linalg.norm(matrix[0, :3])
    turn = Rotation.from_matrix(matrix[:3, :3] / scale)
    quats = splats.quats.double().numpy()
    x, y, z, w = (turn * Rotation.from_quat(quats[:, [1, 2, 3, 0]])).as_quat().T
    directions = np.random.default_rng(0).normal(size=(200, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    seen = np.einsum("dk,nkc->dnc", scipy_basis(directions, splats.sh_degree), splats.sh.numpy())
    turned = scipy_basis(turn.apply(directions), splats.sh_degree)
    sh = np.linalg.lstsq(turned, seen.reshape(len(directions), -1), rcond=None)[0]
    columns = {
        "means": splats.means.double().numpy() @ matrix[:3, :3].T + matrix[:3, 3],
        "quats": np.stack([w, x, y, z], axis=1),
        "log_scales": splats.log_scales.double().numpy() + np.log(scale),
        "logit_opacities": splats.logit_opacities.numpy(),
        "sh": sh.reshape(-1, len(splats), 3).transpose(1, 0, 2),
    }
    tensors = {name: torch.from_numpy(value.copy()).float() for name, value in columns.items()}
    return Splats(**tensors, antialiased=splats.antialiased)


def gsplat_world(poses: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The documented steps of gsplat's normalisation: one camera and point at a time, by SVD."""
    up = sum(-pose[:3, 1] for pose in poses)
    up = up / np.sqrt(up @ up)
    axis = np.cross(up, [0, -1, 0])
    angle = np.arctan2(np.sqrt(axis @ axis), -up[1])
    turn = Rotation.from_rotvec(angle * axis / np.sqrt(axis @ axis)).as_matrix()
    centres = [turn @ pose[:3, 3] for pose in poses]
    closest = []
    for centre, pose in zip(centres, poses, strict=True):
        ray = turn @ pose[:3, 2]
        closest.append(centre - (centre @ ray) * ray)
    focus = np.median(closest, axis=0)
    size = np.median([np.linalg.norm(c - focus) for c in centres])
    step = np.vstack([np.column_stack([turn, -focus]) / size, [0, 0, 0, 1]])
    moved = np.stack([turn @ p - focus for p in points]) / size
    middle = np.median(moved, axis=0)
    axes = np.linalg.svd(moved - moved.mean(axis=0), full_matrices=False)[2]
    if np.linalg.det(axes) < 0:
        axes[0] *= -1
    level = np.vstack([np.column_stack([axes, -axes @ middle]), [0, 0, 0, 1]])
    heights = (moved - middle) @ axes[2]
    if np.median(heights) > np.mean(heights):
        level = np.diag([1.0, -1.0, -1.0, 1.0]) @ level
    return level @ step


def nerfstudio_world(poses: np.ndarray) -> tuple[np.ndarray, float]:
    """The documented steps of nerfstudio for COLMAP data: swapped axes, upright, centred, scaled.

    Camera-to-world poses in OpenCV axes, one at a time; returns transform and scale as
    `dataparser_transforms.json` has them.
    """
    swapped = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    upward, places = np.zeros(3), []
    for pose in poses:
        upward += swapped[:3, :3] @ -pose[:3, 1]  # OpenGL's y, which points up
        places.append(swapped[:3, :3] @ pose[:3, 3])
    upward /= np.sqrt(upward @ upward)
    axis = np.cross(upward, [0, 0, 1])
    angle = np.arctan2(np.sqrt(axis @ axis), upward[2])
    turn = Rotation.from_rotvec(angle * axis / max(np.sqrt(axis @ axis), 1e-12)).as_matrix()
    centre = np.mean(places, axis=0)
    upright = np.vstack([np.column_stack([turn, -turn @ centre]), [0, 0, 0, 1]])
    farthest = max(np.abs(turn @ (place - centre)).max() for place in places)
    return upright @ swapped, 1.0 / farthest
