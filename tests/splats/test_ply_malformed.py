# SPDX-License-Identifier: Apache-2.0
"""Files that lie, stop early or hold something else: refused with a reason, never a crash."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from splat_layouts import inria_table, random_splats, write_table
from splatcert.errors import InputError
from splatcert.splats.ply import read_ply, save_ply
from splatcert.storage.ply_table import PlyError, read_header

FUZZ = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@pytest.fixture
def valid(tmp_path) -> bytes:
    save_ply(random_splats(6, 1), tmp_path / "valid.ply")
    return (tmp_path / "valid.ply").read_bytes()


def refusal(tmp_path, content: bytes) -> str:
    path = tmp_path / "bad.ply"
    path.write_bytes(content)
    with pytest.raises(PlyError) as caught:
        read_ply(path)
    message = str(caught.value)
    assert "bad.ply" in message
    assert len(message.splitlines()) <= 5
    return message


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"ply\n", b"plx\n", "not a PLY file"),
        (b"binary_little_endian", b"binary_middle_endian", "header line 2"),
        (b"format binary_little_endian 1.0\n", b"", "names no format"),
        (b"vertex 6", b"vertex 5", "mislabelled"),
        (b"vertex 6", b"vertex 7", "truncated"),
        (b"vertex 6", b"vertex 999999999999", "truncated"),
        (b"vertex 6", b"vertex 99999999999999999999", "not a PLY header line"),
        (b"vertex 6", b"vertex -6", "not a PLY header line"),
        (b"vertex 6", b"vertex six", "not a PLY header line"),
        (b"vertex 6", b"points 6", "no element named 'vertex'"),
        (b"element vertex 6\n", b"element vertex 6\nelement vertex 6\n", "declared twice"),
        (b"property float y\n", b"property float x\n", "'x' is declared twice"),
        (b"property float y\n", b"property flaot y\n", "unknown property type"),
        (b"property float y\n", b"property float32 z\n", "'z' is declared twice"),
        (b"property float nx\n", b"property list uchar int nx\n", "list properties"),
        (b"property float nx\n", b"property list float int nx\n", "fractional length"),
        (b"property float nx\n", b"property float n\xc3\xbc\n", "plain text"),
        (b"property float y\n", b"", "splats without y"),
        (b"property float rot_2\n", b"property float rot_9\n", "splats without rot_2"),
        (b"property float scale_2\n", b"", "2D Gaussians"),
        (b"property float f_rest_8\n", b"", "8 f_rest properties"),
        (b"property float f_rest_8\n", b"property float f_rest_9\n", "9 f_rest properties"),
        (b"property float x\n", b"property uint packed_position\n", "compressed PLY"),
        (b"element vertex", b"element chunk 0\nelement vertex", "compressed PLY"),
        (b"element vertex", b"comment SplatRenderMode: 2dgs\nelement vertex", "2D Gaussians"),
        (b"element vertex", b"comment SplatRenderMode: new\nelement vertex", "unknown render mode"),
        (b"element vertex", b"elephant\nelement vertex", "header line 3"),
        (b"end_header\n", b"", "header line"),
    ],
)
def test_headers_that_lie(tmp_path, valid, old, new, expected):
    assert old in valid
    assert expected in refusal(tmp_path, valid.replace(old, new, 1))


def test_a_point_cloud_is_named_with_its_columns(tmp_path):
    table = {name: np.zeros(2, np.float32) for name in ("x", "y", "z", "red", "green", "blue")}
    path = write_table(tmp_path / "bad.ply", table)
    message = refusal(tmp_path, path.read_bytes())
    assert "a point cloud, not splats" in message and "Columns: x, y, z, red, green" in message


def test_a_body_cut_anywhere_is_refused(tmp_path, valid):
    start = valid.index(b"end_header\n") + len(b"end_header\n")
    for size in range(start, len(valid), 37):
        assert "truncated" in refusal(tmp_path, valid[:size])


def test_a_header_cut_anywhere_is_refused(tmp_path, valid):
    start = valid.index(b"end_header\n") + len(b"end_header\n")
    for size in range(0, start, 7):
        refusal(tmp_path, valid[:size])


def test_header_lines_are_bounded(tmp_path):
    assert "longer than 4096 bytes" in refusal(tmp_path, b"ply\ncomment " + b"x" * 100_000)
    endless = b"ply\n" + b"comment x\n" * 30_000
    assert "without 'end_header'" in refusal(tmp_path, endless)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["1.000 " * 26] * 3, "3 found"),
        (["1 " * 26] * 7, "more rows"),
        (["1 " * 26] * 5 + ["1 " * 25], "rows 0 to 5"),
        (["1 " * 26] * 5 + ["1 " * 25 + "one"], "rows 0 to 5"),
        (["1"], "cannot fit"),
    ],
)
def test_ascii_bodies_that_do_not_fit(tmp_path, valid, rows, expected):
    header = valid[: valid.index(b"end_header\n")].replace(b"binary_little_endian", b"ascii")
    body = ("end_header\n" + "\n".join(rows) + "\n").encode()
    assert expected in refusal(tmp_path, header + body)


@pytest.mark.parametrize("cut", [2, 9, 14])
def test_lists_that_run_past_the_end(tmp_path, valid, cut):
    start = valid.index(b"element vertex")
    body = valid.index(b"end_header\n") + len(b"end_header\n")
    faces = b"element face 2\nproperty list int float vertex_indices\n"
    header = valid[:start] + faces + valid[start:body]
    lengths = np.array([1, 2**31 - 1], "<i4")
    content = lengths[:1].tobytes() + b"\0" * 4 + lengths[1:].tobytes() + b"\0" * 4
    assert "truncated" in refusal(tmp_path, header + content[:cut])
    negative = header + np.array([-1, -1], "<i4").tobytes() + valid[body:]
    assert "runs past the end" in refusal(tmp_path, negative)


def test_a_missing_file_and_a_folder_are_input_errors(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_header(tmp_path / "none.ply")
    with pytest.raises(InputError, match="cannot be read"):
        read_header(tmp_path)


@settings(max_examples=150, **FUZZ)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(tmp_path, valid, data):
    """Flip, cut and repeat bytes anywhere: only splats or an InputError may come out."""
    content = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        how = data.draw(st.sampled_from(["flip", "cut", "repeat"]))
        if how == "flip":
            content[at] = data.draw(st.integers(0, 255))
        elif how == "cut":
            del content[at : at + data.draw(st.integers(1, 30))]
        else:
            content[at:at] = content[at : at + data.draw(st.integers(1, 30))]
        if not content:
            break
    path = tmp_path / "damaged.ply"
    path.write_bytes(bytes(content))
    try:
        read_ply(path)
    except InputError:
        pass


def test_an_empty_model_is_legal(tmp_path):
    path = write_table(tmp_path / "empty.ply", inria_table(random_splats(0, 2)))
    assert len(read_ply(path)) == 0
    save_ply(read_ply(path), tmp_path / "again.ply")
    assert read_ply(tmp_path / "again.ply").sh.shape == (0, 9, 3)
