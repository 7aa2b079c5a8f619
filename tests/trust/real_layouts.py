# SPDX-License-Identifier: Apache-2.0
"""Captures and models as people have them: made here, small, in the layouts of real ones.

Every layout is a function that writes into an empty folder. Its name in `LAYOUTS` ends with the
command that meets it, and begins with ! if that is a refusal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "splats/formats"))

import packed_layouts as packed

from scene_writers import (
    edit_json,
    photo,
    reconstruction,
    ring,
    write_colmap,
    write_transforms,
)
from splat_layouts import (
    inria_table,
    mesh_faces,
    nerfstudio_state,
    random_splats,
    write_gsplat_run,
    write_inria_folder,
    write_nerfstudio_run,
    write_table,
)
from splatcert.splats.files import save_ply

Layout = Callable[[Path], object]
LENS = {"fl_x": 50.0, "fl_y": 50.0, "w": 64, "h": 48}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345678\n"
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
SPLATS = random_splats(40, 2, seed=3)


def colmap(kind: str = "bin", place: str = "sparse/0", count: int = 9) -> Layout:
    return lambda it: write_colmap(it, kind, place, count=count)


def without(layout: Layout, *files: str) -> Layout:
    def write(it: Path) -> None:
        layout(it)
        for file in files:
            (it / file).unlink()

    return write


def pointing(layout: Layout, *patterns: str) -> Layout:
    """A layout in a clone without its large files."""

    def write(it: Path) -> None:
        layout(it)
        for path in [path for pattern in patterns for path in it.glob(pattern)]:
            path.write_text(POINTER)

    return write


def several(it: Path) -> None:
    write_colmap(it, place="sparse/1")
    reconstruction(3)[0].write(it / "sparse/0", "bin")
    photo(it / "images/unregistered.jpg", (64, 48))


def nerfstudio(it: Path) -> None:
    write_transforms(it, ring(9), meta={**LENS, "applied_transform": np.eye(4)[:3].tolist()})
    reconstruction()[0].write(it / "colmap/sparse/0", "bin")
    for k in range(9):
        photo(it / f"images_4/frame_{k:02d}.png", (16, 12))


def fox(it: Path) -> None:
    """instant-ngp's sample: more frames than photos, jpg, no points, settings of the trainer."""
    names = [f"images/{k:04d}.jpg" for k in range(1, 37)]
    meta = {"camera_angle_x": 0.77, "k1": 0.03, "k2": -0.03, "aabb_scale": 4, **LENS}
    write_transforms(it, ring(36), meta=meta, names=names)
    for name in names[4::5]:
        (it / name).unlink()


def blender(it: Path) -> None:
    for part, count in (("train", 6), ("test", 3)):
        names = [f"./{part}/r_{k}" for k in range(count)]
        meta = {"camera_angle_x": 0.8}
        file = f"transforms_{part}.json"
        write_transforms(it, ring(count), meta=meta, names=names, file=file, photos=False)
        for k, name in enumerate(names):
            photo(it / f"{name}.png", (64, 48), seed=k)


def windows(it: Path) -> None:
    write_transforms(it, ring(4), meta=LENS)

    def turn(content: dict) -> None:
        for one in content["frames"]:
            one["file_path"] = one["file_path"].replace("/", "\\")

    edit_json(it / "transforms.json", turn)


def photoless(it: Path) -> None:
    names = [f"images/{k}.png" for k in range(4)]
    meta = {"camera_angle_x": 0.8}
    write_transforms(it, ring(4), meta=meta, names=names, photos=False)


def file(name: str, content: bytes | str) -> Layout:
    data = content if isinstance(content, bytes) else content.encode()
    return lambda it: (it / name).write_bytes(data)


def plain_ply(it: Path) -> None:
    save_ply(SPLATS, it / "model.ply")


def cut(name: str, content: bytes) -> Layout:
    return file(name, content[: len(content) * 2 // 3])


def cut_ply(it: Path) -> None:
    plain_ply(it)
    (it / "model.ply").write_bytes((it / "model.ply").read_bytes()[:-100])


def cut_ascii(it: Path) -> None:
    write_table(it / "model.ply", inria_table(SPLATS), text=True)
    text = (it / "model.ply").read_text().splitlines(keepends=True)
    (it / "model.ply").write_text("".join(text[:-3]))


def mesh(it: Path) -> None:
    corners = {name: np.zeros(4, "f4") for name in ("x", "y", "z")}
    write_table(it / "mesh.ply", corners, after=(mesh_faces(2),))


NERFSTUDIO_RUN = (
    "pipeline:\n  datamanager:\n    dataparser: {eval_mode: fraction, train_split_fraction: 0.9}\n"
)
CAPTURES: dict[str, Layout] = {
    "COLMAP, binary: inspect .": colmap(),
    "COLMAP, text in sparse: inspect .": colmap("txt", "sparse"),
    "COLMAP, several models: inspect .": several,
    "COLMAP, several models, one chosen: inspect . --sparse 0": several,
    "! COLMAP, several models, none of that number: inspect . --sparse 4": several,
    "! COLMAP, images.bin missing: inspect .": without(colmap(), "sparse/0/images.bin"),
    "! COLMAP, cameras.txt missing: inspect .": without(colmap("txt"), "sparse/0/cameras.txt"),
    "! COLMAP, photos missing: inspect .": without(
        colmap(), "images/photo_03.png", "images/photo_04.png"),
    "! COLMAP, photos elsewhere: inspect .": lambda it: (
        write_colmap(it), (it / "images").rename(it / "images_2")),
    "! COLMAP, the folder of its models: inspect sparse": several,
    "! COLMAP, one of its models: inspect sparse/1": several,
    "! transforms.json, photos missing, size not stated: inspect .": photoless,
    "! transforms.json, point cloud missing: inspect .": lambda it: write_transforms(
        it, ring(4), meta={**LENS, "ply_file_path": "sparse_pc.ply"}),
    "! nothing there: inspect missing": lambda it: None,
    "! nothing there: train missing -o run": lambda it: None,
    "COLMAP, photos elsewhere, named: inspect . --images images_2": lambda it: (
        write_colmap(it), (it / "images").rename(it / "images_2")),
    "COLMAP, names held out: inspect . --holdout photo_01.png,photo_05.png": colmap(),
    "! COLMAP, unknown names: inspect . --holdout photo_01.png,photo_50.png": colmap(),
    "nerfstudio: inspect .": nerfstudio,
    "nerfstudio, smaller photos: inspect . --images images_4": nerfstudio,
    "! nerfstudio, its COLMAP model: inspect . --sparse 7": nerfstudio,
    "! instant-ngp's fox: inspect .": fox,
    "instant-ngp's fox, without the missing: inspect . --skip-missing": fox,
    "instant-ngp's fox, enough held out: inspect . --skip-missing --holdout 3": fox,
    "Blender: inspect .": blender,
    "! Blender, another folder: inspect . --images train": blender,
    "transforms.json from Windows: inspect .": windows,
    "! COLMAP, Git LFS pointers: inspect .": pointing(colmap(), "sparse/0/*"),
    "! COLMAP, text, Git LFS pointers: inspect .": pointing(colmap("txt"), "sparse/0/*"),
    "! COLMAP, a Git LFS pointer for points: inspect .": pointing(
        colmap(), "sparse/0/points3D.bin"),
    "! COLMAP, Git LFS pointers for photos: inspect .": pointing(colmap(), "images/*"),
    "! nerfstudio, a Git LFS pointer: inspect .": pointing(nerfstudio, "transforms.json"),
    "! photos without poses: inspect .": lambda it: photo(it / "images/a.jpg", (64, 48)),
}  # fmt: skip
MODELS: dict[str, Layout] = {
    "PLY: inspect model.ply": plain_ply,
    "! PLY, cut short: inspect model.ply": cut_ply,
    "! PLY, ASCII, cut short: inspect model.ply": cut_ascii,
    "Inria: inspect .": lambda it: write_inria_folder(
        it, {7000: SPLATS}, "Namespace(eval=True, sh_degree=2, white_background=False)"),
    "gsplat: inspect .": lambda it: write_gsplat_run(it, SPLATS, cfg="test_every: 8\n"),
    "nerfstudio, a run: inspect .": lambda it: write_nerfstudio_run(
        it, nerfstudio_state(SPLATS), transform=np.eye(4), scale=0.5, config=NERFSTUDIO_RUN),
    "compressed PLY: inspect a.compressed.ply": file(
        "a.compressed.ply", packed.compressed_ply(SPLATS)),
    "! compressed PLY, cut short: inspect a.compressed.ply": cut(
        "a.compressed.ply", packed.compressed_ply(SPLATS)),
    **{f"SPZ {k}: inspect a.spz": file("a.spz", packed.spz(SPLATS, k)) for k in (1, 2, 3, 4)},
    "! SPZ, cut short: inspect a.spz": cut("a.spz", packed.spz(SPLATS, 3)),
    "SPZ called PLY: inspect model.ply": file("model.ply", packed.spz(SPLATS, 3)),
    "splat: inspect a.splat": file("a.splat", packed.splat(SPLATS)),
    "! splat, cut short: inspect a.splat": cut("a.splat", packed.splat(SPLATS)[:-8]),
    "SOG: inspect a.sog": file("a.sog", packed.zipped(packed.sog(SPLATS))),
    "SOG, folder: inspect sog": lambda it: packed.write_folder(it / "sog", packed.sog(SPLATS, 1)),
    "! SOG, a texture missing: inspect sog": without(
        lambda it: packed.write_folder(it / "sog", packed.sog(SPLATS, 1)), "sog/quats.webp"),
    "glTF: inspect a.glb": file("a.glb", packed.glb(*packed.splat_gltf(SPLATS))),
    "! glTF of a mesh: inspect a.glb": file(
        "a.glb", packed.glb({"asset": {}, "meshes": [{"primitives": [{}]}]}, b"")),
    "! text glTF: inspect a.gltf": file("a.gltf", '{"asset": {"version": "2.0"}, "meshes": []}'),
    "! a photo: inspect a.jpg": lambda it: photo(it / "a.jpg", (64, 48)),
    "! a text file: inspect notes.txt": file("notes.txt", "Model information\n"),
    "! a point cloud: inspect cloud.ply": lambda it: write_table(
        it / "cloud.ply", {name: np.zeros(4, "f4") for name in ("x", "y", "z", "nx")}),
    "! streamed SOG, its folder: inspect .": file("lod-meta.json", json.dumps(
        {"lodLevels": 2, "filenames": ["0_0/meta.json"], "tree": {"bound": {}}})),
    "Inria, its folder point_cloud: inspect point_cloud": lambda it: write_inria_folder(
        it, {7000: SPLATS}, "Namespace(eval=True, sh_degree=2, white_background=False)"),
    "! Git LFS pointer: inspect model.ply": file("model.ply", POINTER),
    "! ksplat: inspect a.ksplat": file("a.ksplat", packed.KSPLAT),
    "! streamed SOG: inspect lod-meta.json": file("lod-meta.json", json.dumps(
        {"lodLevels": 2, "filenames": ["0_0/meta.json"], "tree": {"bound": {}}})),
    "! 3D Tiles: inspect tileset.json": file("tileset.json", json.dumps(
        {"asset": {"version": "1.1"}, "geometricError": 5, "root": {"content": {}}})),
    "! nerfstudio's transform: inspect dataparser_transforms.json": file(
        "dataparser_transforms.json", json.dumps({"transform": [[1, 0, 0, 0]], "scale": 0.5})),
    "! mesh: inspect mesh.ply": mesh,
    "! OBJ: inspect mesh.obj": file("mesh.obj", OBJ),
}  # fmt: skip
LAYOUTS = CAPTURES | MODELS
