# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plyfile import PlyData, PlyElement

from splat_layouts import (
    assert_same_bits,
    brush_table,
    inria_names,
    inria_table,
    mesh_faces,
    random_splats,
    write_table,
)
from splatcert.splats.gaussians import SplatsError
from splatcert.splats.ply import read_ply, save_ply
from splatcert.storage.ply_table import BLOCK_ROWS, PlyError
from splatcert.storage.whole import ArtefactError

FUZZ = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
EXTRA_TYPES = [
    torch.float32,
    torch.float64,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.uint16,
    torch.uint32,
]


@pytest.mark.parametrize("degree", range(5))
def test_inria_layout_is_read(tmp_path, degree):
    splats = random_splats(40, degree, seed=degree)
    path = write_table(tmp_path / "point_cloud.ply", inria_table(splats))
    assert_same_bits(read_ply(path), splats)


def test_brush_and_gsplat_order_without_normals(tmp_path):
    splats = random_splats(12, 2)
    path = write_table(tmp_path / "export.ply", brush_table(splats))
    assert_same_bits(read_ply(path), splats)


@settings(max_examples=20, **FUZZ)
@given(st.permutations(inria_names(1)), st.sampled_from(["ascii", "<", ">"]))
def test_any_property_order_and_encoding(tmp_path, order, encoding):
    splats = random_splats(5, 1, seed=9)
    table = inria_table(splats)
    if encoding == "ascii":
        # Every float32 is a float64, whose shortest text is exact.
        table = {name: column.astype(np.float64) for name, column in table.items()}
    path = write_table(
        tmp_path / "shuffled.ply",
        {name: table[name] for name in order},
        text=encoding == "ascii",
        byte_order="=" if encoding == "ascii" else encoding,
    )
    assert_same_bits(read_ply(path), splats)


def test_other_scalar_types_become_float32(tmp_path):
    splats = random_splats(7, 0)
    table = inria_table(splats)
    table["x"] = np.arange(7, dtype=np.int16)
    table["opacity"] = table["opacity"].astype(np.float64)
    read = read_ply(write_table(tmp_path / "mixed.ply", table))
    assert torch.equal(read.means[:, 0], torch.arange(7).float())
    assert torch.equal(read.logit_opacities, splats.logit_opacities)


@pytest.mark.parametrize("encoding", ["ascii", "<", ">"])
def test_other_elements_are_skipped(tmp_path, encoding):
    splats = random_splats(6, 1)
    table = {name: column.astype(np.float64) for name, column in inria_table(splats).items()}
    cameras = PlyElement.describe(np.zeros(3, [("view", "f8"), ("id", "i2")]), "camera")
    path = write_table(
        tmp_path / "more.ply",
        table,
        text=encoding == "ascii",
        byte_order="=" if encoding == "ascii" else encoding,
        before=(cameras, mesh_faces(11)),
        after=(PlyElement.describe(np.zeros(2, [("end", "u1")]), "tail"),),
    )
    assert_same_bits(read_ply(path), splats)


@settings(max_examples=40, **FUZZ)
@given(
    count=st.integers(0, 40),
    degree=st.integers(0, 4),
    antialiased=st.booleans(),
    types=st.lists(st.sampled_from(EXTRA_TYPES), max_size=4),
    seed=st.integers(0, 1000),
)
def test_what_we_write_comes_back_bit_for_bit(tmp_path, *, count, degree, antialiased, types, seed):
    rng = np.random.default_rng(seed)
    extra = {
        f"column_{i}": torch.from_numpy(rng.integers(0, 100, count)).to(kind)
        for i, kind in enumerate(types)
    }
    splats = random_splats(count, degree, seed, antialiased=antialiased, extra=extra)
    save_ply(splats, tmp_path / "splats.ply")
    assert_same_bits(read_ply(tmp_path / "splats.ply"), splats)


def test_every_column_of_a_foreign_file_survives_the_round_trip(tmp_path):
    """PLY to splats to PLY: all columns bit-equal, normals and unknown ones included."""
    splats = random_splats(30, 3, seed=4)
    rng = np.random.default_rng(0)
    table = inria_table(splats)
    for name in ("nx", "ny", "nz"):
        table[name] = rng.normal(size=30).astype(np.float32)
    table |= {f"change_{k}": rng.normal(size=30).astype(np.float32) for k in range(16)}
    table["segment"] = rng.integers(0, 60_000, 30).astype(np.uint16)
    table["precise"] = rng.normal(size=30)
    first = write_table(tmp_path / "first.ply", table, byte_order=">")
    save_ply(read_ply(first), tmp_path / "second.ply")
    before, after = (PlyData.read(p)["vertex"] for p in (first, tmp_path / "second.ply"))
    assert {p.name for p in before.properties} == {p.name for p in after.properties}
    for name in table:
        assert before[name].dtype.newbyteorder("=") == after[name].dtype.newbyteorder("=")
        assert before[name].astype(before[name].dtype.newbyteorder("<")).tobytes() == (
            after[name].tobytes()
        ), name


def test_other_tools_see_the_layout_of_inria(tmp_path):
    splats = random_splats(25, 3, extra={"trust": torch.arange(25, dtype=torch.uint8)})
    save_ply(splats, tmp_path / "out.ply")
    data = PlyData.read(tmp_path / "out.ply")
    assert data.byte_order == "<" and not data.text and len(data.elements) == 1
    vertex = data["vertex"]
    assert [p.name for p in vertex.properties] == [*inria_names(3), "trust"]
    assert {vertex[name].dtype.str for name in inria_names(3)} == {"<f4"}
    for name, column in inria_table(splats).items():
        assert np.array_equal(vertex[name], column), name
    assert not data.comments


@pytest.mark.parametrize(
    ("comments", "antialiased"),
    [
        ((), False),
        (("Exported from Brush", "Vertical axis: y", "SplatRenderMode: default"), False),
        (("SplatRenderMode: mip",), True),
        (("  SPLATRENDERMODE:  MIP ",), True),
        (("antialiased 1",), True),
        (("antialiased 0",), False),
        (("antialiased 1", "SplatRenderMode: default"), False),
        (("SplatRenderMode: default", "antialiased 1"), True),
        (("not antialiased 1 at all",), False),
    ],
)
def test_comments_that_ask_for_antialiasing(tmp_path, comments, antialiased):
    path = write_table(tmp_path / "a.ply", inria_table(random_splats(2, 0)), comments=comments)
    assert read_ply(path).antialiased is antialiased


def test_antialiasing_is_written_in_the_spelling_that_other_tools_read(tmp_path):
    save_ply(random_splats(2, 0, antialiased=True), tmp_path / "a.ply")
    assert PlyData.read(tmp_path / "a.ply").comments == ["SplatRenderMode: mip"]


def test_files_of_more_than_one_block(tmp_path):
    splats = random_splats(2 * BLOCK_ROWS + 3, 0)
    save_ply(splats, tmp_path / "large.ply")
    assert_same_bits(read_ply(tmp_path / "large.ply"), splats)


def test_values_no_renderer_can_use_are_refused_unless_asked(tmp_path):
    table = inria_table(random_splats(5, 0))
    table["y"][3] = np.nan
    path = write_table(tmp_path / "nan.ply", table)
    with pytest.raises(SplatsError, match=r"means: 1 of 5 .* index 3"):
        read_ply(path)
    assert read_ply(path, check=False).means[3, 1].isnan()


def test_too_large_doubles_are_refused(tmp_path):
    table = inria_table(random_splats(3, 0))
    table["x"] = np.array([0.0, 1e300, 0.0])
    with pytest.raises(SplatsError, match="means: 1 of 3"):
        read_ply(write_table(tmp_path / "huge.ply", table))


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    good = random_splats(4, 1)
    path = tmp_path / "splats.ply"
    save_ply(good, path)

    def no_rename(source: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", no_rename)
    with pytest.raises(ArtefactError, match="disk full"):
        save_ply(random_splats(9, 1), path)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["splats.ply"]
    assert_same_bits(read_ply(path), good)


def test_extra_columns_in_types_that_ply_lacks(tmp_path):
    count = 3
    extra = {
        "half": torch.tensor([0.5, 1.5, float("nan")], dtype=torch.float16),
        "flag": torch.tensor([True, False, True]),
        "small": torch.tensor([1, -2, 3]),
        "large": torch.tensor([2**40, 0, 1]),
    }
    splats = random_splats(count, 0, extra=extra)
    save_ply(splats, tmp_path / "a.ply")
    read = read_ply(tmp_path / "a.ply").extra
    assert [read[n].dtype for n in extra] == [
        torch.float32,
        torch.uint8,
        torch.int32,
        torch.float64,
    ]
    assert read["large"][0] == 2**40 and read["half"][1] == 1.5


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"x": torch.zeros(3)}, "unique name"),
        ({"two words": torch.zeros(3)}, "unique name"),
        ({"line\nbreak": torch.zeros(3)}, "unique name"),
        ({"": torch.zeros(3)}, "unique name"),
        ({"wide": torch.zeros(3, 2)}, "has shape"),
        ({"deep": torch.tensor([2**62 + 1, 0, 0])}, "exactly"),
    ],
)
def test_extra_columns_that_cannot_be_stored(tmp_path, extra, message):
    splats = replace(random_splats(3, 0), extra=extra)
    with pytest.raises(PlyError, match=message):
        save_ply(splats, tmp_path / "a.ply")
    assert not list(tmp_path.iterdir())


def test_parameters_that_require_gradients_or_are_float64_are_written(tmp_path):
    splats = random_splats(3, 1).to(torch.float64)
    splats.means.requires_grad_()
    save_ply(splats, tmp_path / "a.ply")
    assert torch.equal(read_ply(tmp_path / "a.ply").means, splats.means.detach().float())
