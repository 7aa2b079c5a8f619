# SPDX-License-Identifier: Apache-2.0
"""What a file is, is told by its content, and what holds no splats is named."""

from __future__ import annotations

import gzip
import json

import numpy as np
import packed_layouts as layouts
import pytest

from splat_layouts import inria_table, mesh_faces, random_splats, write_gsplat_run, write_table
from splatcert.cli import main
from splatcert.errors import InputError
from splatcert.splats.files import describe_model, load_splats, save_ply

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 12345678\n"
)
OBJ = b"# made by hand\nmtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
LOD = {"lodLevels": 2, "filenames": ["0_0/meta.json"], "tree": {"bound": {}}}
TILESET = {"asset": {"version": "1.1"}, "geometricError": 5, "root": {"content": {}}}
TRANSFORM = {"transform": np.eye(4)[:3].tolist(), "scale": 0.5}


def said(path, function=load_splats) -> str:
    with pytest.raises(InputError) as caught:
        function(path)
    assert len(str(caught.value).splitlines()) <= 5
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("model.ply", POINTER, "this is a Git LFS pointer to 12.3 MB"),
        ("model.spz", POINTER, "git lfs pull"),
        ("ckpt_29999_rank0.pt", POINTER, "git lfs pull"),
        ("model.obj", OBJ, "an OBJ mesh"),
        ("model.ply", OBJ, "an OBJ mesh"),
        ("a.ksplat", layouts.KSPLAT, "splat-transform a.ksplat model.ply"),
        ("a.bin", layouts.KSPLAT, "the .ksplat format"),
        ("b.ksplat", bytes(6000), "starts with the bytes 00 00 00 00 00 00 00 00"),
        ("photo.jpg", b"\xff\xd8\xff\xe0" + bytes(80), "the bytes ff d8 ff e0"),
        ("notes.txt", b"Model information\n", 'starts with "Model information"'),
        ("lod-meta.json", json.dumps(LOD).encode(), "several levels of detail"),
        ("tileset.json", json.dumps(TILESET).encode(), "3D Tiles tileset"),
        ("dataparser_transforms.json", json.dumps(TRANSFORM).encode(), "Pass the run's folder"),
        ("scene.gltf", b'{"asset": {"version": "2.0"}, "meshes": []}', "a text glTF file"),
        ("a.glb", layouts.glb({"asset": {}, "meshes": [{}]}, b""), "without Gaussians"),
        ("a.ply.gz", gzip.compress(b"ply\nformat", mtime=0), 'it starts with "ply"'),
        ("a.ply", b"", "the file is empty"),
        ("a.json", b'{"cameras": 3}', "not a model; the file starts"),
    ],
)
def test_what_holds_no_splats_is_named(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content)
    for function in (load_splats, describe_model):
        assert expected in said(path, function)


def test_inspect_names_them_too(tmp_path, capsys):
    for name, content in (("tileset.json", TILESET), ("dataparser_transforms.json", TRANSFORM)):
        (tmp_path / name).write_text(json.dumps(content))
        assert main(["inspect", str(tmp_path / name)]) == 2
        assert "Pass the" in capsys.readouterr().err


def test_a_mesh_is_named_and_splats_with_faces_are_read(tmp_path):
    table = {name: np.zeros(4, np.float32) for name in ("x", "y", "z", "nx")}
    mesh = write_table(tmp_path / "mesh.ply", table, after=(mesh_faces(7),))
    assert "a PLY mesh of 7 faces" in said(mesh)
    splats = random_splats(4, 0)
    both = write_table(tmp_path / "both.ply", inria_table(splats), after=(mesh_faces(7),))
    assert len(load_splats(both)) == 4


def test_names_do_not_decide(tmp_path):
    splats = random_splats(9, 1)
    contents = {
        "spz": layouts.spz(splats),
        "sog": layouts.zipped(layouts.sog(splats)),
        "glb": layouts.glb(*layouts.splat_gltf(splats)),
        "compressed-ply": layouts.compressed_ply(splats),
    }
    for kind, content in contents.items():
        for name in ("model", "model.ply", "model.splat", "model.ckpt"):
            (tmp_path / name).write_bytes(content)
            assert describe_model(tmp_path / name).format == kind
            assert len(load_splats(tmp_path / name)) == 9


def test_pointers_inside_a_run_are_found(tmp_path):
    run = write_gsplat_run(tmp_path / "run", random_splats(3))
    (run / "ckpts" / "ckpt_29999_rank0.pt").write_bytes(POINTER)
    assert "git lfs pull" in said(run)
    place = tmp_path / "inria" / "point_cloud" / "iteration_7000"
    place.mkdir(parents=True)
    (place / "point_cloud.ply").write_bytes(POINTER)
    assert "git lfs pull" in said(tmp_path / "inria", describe_model)


def test_a_folder_is_its_only_model(tmp_path):
    splats = random_splats(6, 0)
    (tmp_path / "a.spz").write_bytes(layouts.spz(splats))
    assert describe_model(tmp_path).format == "spz"
    (tmp_path / "b.splat").write_bytes(layouts.splat(splats))
    assert "several models inside: spz (a.spz), splat (b.splat)" in said(tmp_path)
    save_ply(splats, tmp_path / "c.ply")
    assert describe_model(tmp_path).format == "ply"


@pytest.mark.parametrize("text", [True, False])
def test_a_ply_cut_short_is_reported_without_reading_it_all(tmp_path, text):
    path = write_table(tmp_path / "a.ply", inria_table(random_splats(9000, 0)), text=text)
    describe_model(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 19 // 20])
    assert "truncated" in said(path, describe_model)
    assert main(["inspect", str(path)]) == 2
