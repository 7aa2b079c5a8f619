# SPDX-License-Identifier: Apache-2.0
"""Damaged and hostile compressed files: one clear message, before memory is taken."""

from __future__ import annotations

import gzip
import io
import json
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import packed_layouts as layouts
import pytest

from splat_layouts import random_splats
from splatcert.errors import InputError
from splatcert.splats.files import describe_model, load_splats

SPLATS = random_splats(300, 1)
SMALL = random_splats(12, 1)


def refusal(path: Path, data: bytes, read: Callable = load_splats) -> str:
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert len(message.splitlines()) <= 5 and str(path) in message
    return message


def both(path: Path, data: bytes) -> str:
    """The message of a fault that describing finds as well as reading."""
    first = refusal(path, data, describe_model)
    assert refusal(path, data) == first
    return first


# -- compressed PLY --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"element chunk 2", b"element chunk 1", "300 Gaussians need 2 chunks of 256"),
        (b"element vertex 300", b"element vertex 999999999999", "chunks of 256"),
        (b"uint packed_scale", b"int packed_scale", "vertex needs packed_scale as u4"),
        (b"float min_scale_x", b"float least_scale_x", "chunk needs min_scale_x"),
        (b"element sh 300", b"element sh 299", "299 rows of 9 harmonics do not fit"),
        (b"property uchar f_rest_8\n", b"", "rows of 8 harmonics"),
        (b"uchar f_rest_8", b"uchar f_rest_9", "sh needs f_rest_8"),
        (b"element vertex 300", b"element points 300", "no element named 'vertex'"),
        (b"element chunk 2", b"element lumps 2", "no element named 'chunk'"),
    ],
)
def test_compressed_ply_headers_that_lie(tmp_path, old, new, expected):
    data = layouts.compressed_ply(SPLATS)
    assert old in data
    assert expected in both(tmp_path / "a.ply", data.replace(old, new, 1))


def test_a_compressed_ply_cut_anywhere_is_refused(tmp_path):
    data = layouts.compressed_ply(SPLATS)
    start = data.index(b"end_header\n") + len(b"end_header\n")
    for size in range(start, len(data), 997):
        assert "truncated" in both(tmp_path / "a.ply", data[:size])


# -- SPZ ---------------------------------------------------------------------------------------


def spz_header(version: int = 3, count: int = 5, degree: int = 0, fraction: int = 12) -> bytes:
    return struct.pack("<4sIIBBBB", b"NGSP", version, count, degree, fraction, 0, 0)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (spz_header(version=5), "SPZ version 5"),
        (spz_header(version=0), "SPZ version 0"),
        (spz_header(count=0), "0 Gaussians"),
        (spz_header(degree=5), "degree 5"),
        (spz_header(fraction=99), "99 fractional bits"),
        (spz_header(count=4_000_000_000), "promises 4000000000 Gaussians"),
        (spz_header(count=50_000), "50000 Gaussians need"),
        (b"NGSP", "NGSP header"),
    ],
)
def test_spz_headers_that_lie(tmp_path, header, expected):
    for data in (header, gzip.compress(header)):
        if data.startswith(b"NGSP") and len(data) > 4 and header[4] >= 4:
            continue
        assert expected in both(tmp_path / "a.spz", data)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_spz_cut_anywhere_is_refused(tmp_path, version):
    if version == 4:
        pytest.importorskip("zstandard")
    data = layouts.spz(SMALL, version)
    for size in range(1, len(data), 11):
        both(tmp_path / "a.spz", data[:size])


def test_spz_that_unpacks_to_more_than_it_promises_is_not_unpacked(tmp_path):
    bomb = gzip.compress(spz_header(count=1) + bytes(1 << 26))
    assert "more than the" in both(tmp_path / "a.spz", bomb)


def test_spz_with_a_wrong_checksum_is_refused(tmp_path):
    data = bytearray(layouts.spz(SMALL))
    data[-8] ^= 1
    assert "gzip stream" in refusal(tmp_path / "a.spz", bytes(data))


def test_spz_streams_are_checked_before_they_are_unpacked(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    data = layouts.spz(SMALL, 4)
    huge = data[:40] + struct.pack("<Q", 1 << 60) + data[48:]
    assert "the stream of centres" in both(tmp_path / "a.spz", huge)
    far = data[:16] + struct.pack("<I", 1 << 31) + data[20:]
    assert "streams at byte" in both(tmp_path / "a.spz", far)
    fewer = data[:15] + b"\x02" + data[16:]
    assert "list of 2 streams" in both(tmp_path / "a.spz", fewer)
    # A stream that says it is of the right size and unpacks to a gigabyte.
    streams = [zstandard.compress(bytes(size)) for size in (1 << 30, 1, 3, 3, 4)]
    head = struct.pack("<4sIIBBBBI12x", b"NGSP", 4, 1, 0, 12, 0, 5, 32)
    sizes = zip(streams, (9, 1, 3, 3, 4), strict=True)
    table = b"".join(struct.pack("<QQ", len(s), size) for s, size in sizes)
    bomb = head + table + b"".join(streams)
    assert "does not unpack to 9 bytes" in refusal(tmp_path / "a.spz", bomb)
    broken = head + table + b"".join(bytes(len(s)) for s in streams)
    assert "the stream of centres is damaged" in refusal(tmp_path / "a.spz", broken)


def test_spz_version_4_names_the_package_it_needs(tmp_path, monkeypatch):
    pytest.importorskip("zstandard")
    data = layouts.spz(SMALL, 4)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.spz").write_bytes(data)
    assert describe_model(tmp_path / "a.spz").count == 12
    assert "pip install 'splatcert[formats]'" in refusal(tmp_path / "a.spz", data)


# -- .splat ------------------------------------------------------------------------------------


def test_splat_lengths_and_values(tmp_path):
    data = layouts.splat(SMALL)
    assert "383 bytes are not a whole number" in both(tmp_path / "a.splat", data[:-1])
    noise = np.random.default_rng(0).bytes(3200)
    assert "not a .splat file" in both(tmp_path / "a.splat", noise)
    flat = data[:12] + bytes(12) + data[24:]
    assert "log_scales: 1 of 12 Gaussians" in refusal_without_path(tmp_path / "a.splat", flat)


def refusal_without_path(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_splats(path)
    return str(caught.value)


# -- SOG ---------------------------------------------------------------------------------------


def changed(files: dict[str, bytes], **parts: object) -> dict[str, bytes]:
    meta = json.loads(files["meta.json"])
    for name, value in parts.items():
        if isinstance(value, dict):
            meta[name] = {**meta[name], **value}
        else:
            meta[name] = value
    return {**files, "meta.json": json.dumps(meta).encode()}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"version": 7}, "SOG version 7"),
        ({"count": 0}, "no usable number of Gaussians"),
        ({"count": "12"}, "no usable number of Gaussians"),
        ({"count": 1e9}, "no usable number of Gaussians"),
        ({"count": 10**9}, "pixels for 1000000000 Gaussians"),
        ({"means": {"mins": [0, 0]}}, "means.mins must be [3] finite numbers"),
        ({"means": {"mins": [0, 0, None]}}, "means.mins must be [3] finite numbers"),
        ({"scales": {"codebook": [1, 2, 3]}}, "scales.codebook must be [256]"),
        ({"sh0": {"files": []}}, "sh0.files must name texture 1"),
        ({"sh0": {"files": ["../sh0.webp"]}}, "not a plain file name"),
        ({"sh0": {"files": ["/etc/passwd"]}}, "not a plain file name"),
        ({"sh0": {"files": ["nowhere.webp"]}}, "nowhere.webp"),
        ({"shN": {"bands": 9}}, "shN.bands must be 0 to 3"),
        ({"shN": {"bands": 2}}, "palette of harmonics is 192 pixels wide"),
        ({"quats": 3}, "quats.files must name"),
        ({"model": "2dgs"}, "2D Gaussians"),
    ],
)
@pytest.mark.parametrize("place", ["zip", "folder"])
def test_sog_descriptions_that_lie(tmp_path, parts, expected, place):
    files = changed(layouts.sog(SMALL), **parts)
    if place == "zip":
        assert expected in refusal(tmp_path / "a.sog", layouts.zipped(files))
        return
    folder = layouts.write_folder(tmp_path / "model", files)
    with pytest.raises(InputError) as caught:
        load_splats(folder)
    assert expected in str(caught.value)


def test_sog_textures_that_lie(tmp_path):
    files = layouts.sog(SMALL)
    text = {**files, "sh0.webp": b"not a picture"}
    assert "sh0.webp is not a WebP picture" in refusal(tmp_path / "a.sog", layouts.zipped(text))
    cut = {**files, "scales.webp": files["scales.webp"][:20]}
    assert "scales.webp cannot be read" in refusal(tmp_path / "a.sog", layouts.zipped(cut))
    small = {**files, "quats.webp": layouts.texture([[0, 0, 0, 255]] * 4, 2)}
    assert "quats.webp has 4 pixels for 12" in refusal(tmp_path / "a.sog", layouts.zipped(small))
    bomb = {**files, "quats.webp": layouts.webp(np.zeros((4000, 4000, 4)))}
    message = refusal(tmp_path / "a.sog", layouts.zipped(bomb))
    assert "4000 x 4000 pixels from" in message
    v1 = {**layouts.sog(SMALL, 1), "shN_centroids.webp": layouts.webp(np.zeros((1, 100, 4)))}
    assert "100 pixels wide has no known degree" in both(tmp_path / "a.sog", layouts.zipped(v1))


def test_sog_archives_that_lie(tmp_path):
    data = layouts.zipped(layouts.sog(SMALL))
    for size in range(40, len(data), 501):
        both(tmp_path / "a.sog", data[:size])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.json", b" " * (1 << 26))
    assert "unpacks to more than" in both(tmp_path / "a.sog", stream.getvalue())
    broken = layouts.zipped({"meta.json": b"{"})
    assert "not valid JSON" in both(tmp_path / "a.sog", broken)
    other = layouts.zipped({"meta.json": b'{"means": 1}'})
    assert "does not describe a SOG model" in both(tmp_path / "a.sog", other)
    none = layouts.zipped({"readme.txt": b"hello"})
    assert "without a model (readme.txt)" in both(tmp_path / "a.sog", none)


# -- glTF --------------------------------------------------------------------------------------


def spoilt(change: Callable[[dict], object]) -> bytes:
    content, binary = layouts.splat_gltf(SMALL)
    change(content)
    return layouts.glb(content, binary)


def primitive(content: dict) -> dict:
    return content["meshes"][0]["primitives"][0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: primitive(c).pop("extensions"), "without Gaussians"),
        (lambda c: c.update(meshes=[]), "structure is not valid"),
        (lambda c: c.update(nodes=[{"children": [0]}]), "nodes inside themselves"),
        (lambda c: c["bufferViews"][0].update(byteOffset=1 << 40), "bytes 1099511627776 to"),
        (lambda c: c["bufferViews"][0].update(byteOffset=-4), "bytes -4 to"),
        (lambda c: c["bufferViews"][0].update(byteStride=1), "rows that overlap"),
        (lambda c: c["bufferViews"][0].update(byteStride=1 << 40), "are needed, but"),
        (lambda c: c["accessors"][0].update(count=1 << 40), "1099511627776 Gaussians in"),
        (lambda c: c["accessors"][1].update(count=11), "has 11 values of type VEC4"),
        (lambda c: c["accessors"][1].update(type="VEC3"), "of type VEC3"),
        (lambda c: c["accessors"][1].update(sparse={}), "accessor 1"),
        (lambda c: c["accessors"][1].update(componentType=7), "structure is not valid"),
        (lambda c: c["buffers"][0].update(uri="far.bin"), "in another file"),
        (lambda c: primitive(c)["attributes"].pop("KHR_gaussian_splatting:SCALE"), "no attribute"),
        (lambda c: c["nodes"][0].update(scale=[1, 2, 3]), "shears"),
        (lambda c: c["nodes"][0].update(matrix=[1, 2]), "structure is not valid"),
        (lambda c: _extension(c).update(kernel="square"), "kernel 'square'"),
        (lambda c: _extension(c).update(colorSpace="lin_rec709_display"), "lin_rec709_display"),
        (
            lambda c: _extension(c).update(extensions={"EXT_x": {}}),
            "the extension EXT_x",
        ),
    ],
)
def test_glb_structures_that_lie(tmp_path, change, expected):
    (tmp_path / "a.glb").write_bytes(spoilt(change))
    with pytest.raises(InputError) as caught:
        load_splats(tmp_path / "a.glb")
    assert expected in str(caught.value) and len(str(caught.value).splitlines()) <= 5


def _extension(content: dict) -> dict:
    return primitive(content)["extensions"]["KHR_gaussian_splatting"]


def test_glb_cut_anywhere_is_refused(tmp_path):
    data = spoilt(lambda content: None)
    for size in range(4, len(data), 97):
        both(tmp_path / "a.glb", data[:size])
    text = data[:20] + b"[" + data[21:]
    assert "JSON part is not valid" in both(tmp_path / "a.glb", text)
    listed = struct.pack("<4sIIII", b"glTF", 2, 24, 4, 0x4E4F534A) + b"[  ]"
    assert "not an object" in both(tmp_path / "a.glb", listed)


def test_streams_that_end_early_name_the_file(tmp_path):
    half = zlib.compressobj(wbits=31)
    data = half.compress(spz_header(count=100) + bytes(50)) + half.flush(zlib.Z_SYNC_FLUSH)
    assert "can be unpacked" in both(tmp_path / "a.spz", data)
