# SPDX-License-Identifier: Apache-2.0
"""What is written, read back by a parser that shares nothing with the writer."""

from __future__ import annotations

import gzip
import json
import math
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch

from splat_layouts import assert_same_bits, moved_along, random_splats
from splatcert.errors import InputError
from splatcert.splats.files import load_splats
from splatcert.splats.formats.save import save_glb, save_spz
from splatcert.splats.gaussians import Splats


def read_spz(data: bytes) -> dict:
    """SPZ 3 by its specification, one Gaussian at a time."""
    data = gzip.decompress(data)
    magic, version, count, degree, fraction, flags, zero = struct.unpack("<4sIIBBBB", data[:16])
    assert (magic, version, zero) == (b"NGSP", 3, 0)
    rest = 3 * ((degree + 1) ** 2 - 1)
    place, parts = 16, []
    for size in (9, 1, 3, 3, 4, rest):
        parts.append(data[place : place + size * count])
        place += size * count
    assert place == len(data)
    found: dict = {"flags": flags, "fraction": fraction, "degree": degree, "rows": []}
    for row in range(count):
        centre = parts[0][9 * row : 9 * row + 9]
        word = struct.unpack("<I", parts[4][4 * row : 4 * row + 4])[0]
        quaternion, largest = [0.0] * 4, word >> 30
        for k in (3, 2, 1, 0):
            if k != largest:
                size = (word & 511) / 511 * math.sqrt(0.5)
                quaternion[k] = -size if word & 512 else size
                word >>= 10
        quaternion[largest] = math.sqrt(max(0, 1 - sum(v * v for v in quaternion)))
        found["rows"].append(
            {
                "mean": [
                    int.from_bytes(centre[k : k + 3], "little", signed=True) / 2**fraction
                    for k in (0, 3, 6)
                ],
                "opacity": parts[1][row] / 255,
                "constant": [(b / 255 - 0.5) / 0.15 for b in parts[2][3 * row : 3 * row + 3]],
                "scales": [b / 16 - 10 for b in parts[3][3 * row : 3 * row + 3]],
                "wxyz": [quaternion[3], *quaternion[:3]],
                "rest": [(b - 128) / 128 for b in parts[5][rest * row : rest * row + rest]],
            }
        )
    return found


@pytest.mark.parametrize("degree", [0, 1, 3, 4])
def test_spz_is_what_its_specification_says(tmp_path, degree):
    splats = random_splats(30, degree, antialiased=True)
    splats = replace(splats, sh=splats.sh.clamp(-0.99, 0.99))
    save_spz(splats, tmp_path / "a.spz")
    found = read_spz((tmp_path / "a.spz").read_bytes())
    assert found["flags"] == 1 and found["degree"] == degree
    for row, one in enumerate(found["rows"]):
        assert np.allclose(one["mean"], splats.means[row], atol=0.51 / 2 ** found["fraction"])
        assert abs(one["opacity"] - float(splats.opacities[row])) <= 0.501 / 255
        assert np.allclose(one["constant"], splats.sh[row, 0], atol=0.501 / 255 / 0.15)
        assert np.allclose(one["scales"], splats.log_scales[row], atol=1 / 31)
        rest = splats.sh[row, 1:].flatten()
        assert np.allclose(one["rest"], rest, atol=0.501 / 128)
        unit = torch.nn.functional.normalize(splats.quats[row].double(), dim=0).numpy()
        assert abs(np.dot(unit, one["wxyz"])) > 1 - 1e-5


def test_spz_read_by_us_is_stable(tmp_path):
    """Once rounded, values are written as they are, and equal splats give equal files."""
    splats = random_splats(50, 2)
    save_spz(splats, tmp_path / "a.spz")
    save_spz(splats, tmp_path / "same.spz")
    assert (tmp_path / "a.spz").read_bytes() == (tmp_path / "same.spz").read_bytes()
    first = load_splats(tmp_path / "a.spz")
    save_spz(first, tmp_path / "b.spz")
    second = load_splats(tmp_path / "b.spz")
    torch.testing.assert_close(second.quats, first.quats, atol=1e-3, rtol=0)
    assert_same_bits(replace(second, quats=first.quats), first)


@pytest.mark.parametrize("farthest", [0.5, 7.0, 100.0, 5000.0, 1e6])
def test_spz_keeps_the_bits_that_the_extent_allows(tmp_path, farthest):
    splats = random_splats(3, 0)
    means = torch.tensor([[farthest, 0, 0], [0, -farthest, 0], [0.1, 0.2, 0.3]])
    save_spz(replace(splats, means=means), tmp_path / "a.spz")
    read = load_splats(tmp_path / "a.spz").means
    assert (read - means).abs().max() <= max(farthest / 2**21, 0.51 / 2**20)
    with pytest.raises(InputError, match="SPZ stores coordinates up to 8388608"):
        save_spz(replace(splats, means=means * 1e8), tmp_path / "b.spz")
    assert not (tmp_path / "b.spz").exists()


def read_glb(data: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """A .glb by its specification: the JSON, and every attribute of its one primitive."""
    magic, version, length = struct.unpack("<4sII", data[:12])
    assert (magic, version, length) == (b"glTF", 2, len(data))
    size, kind = struct.unpack("<I4s", data[12:20])
    assert kind == b"JSON" and size % 4 == 0
    content = json.loads(data[20 : 20 + size])
    binary = data[28 + size :]
    assert struct.unpack("<I4s", data[20 + size : 28 + size]) == (len(binary), b"BIN\0")
    assert content["buffers"] == [{"byteLength": len(binary)}]
    (primitive,) = content["meshes"][0]["primitives"]
    arrays = {}
    for name, index in primitive["attributes"].items():
        accessor = content["accessors"][index]
        view = content["bufferViews"][accessor["bufferView"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        letter, each = {5126: ("f", 4), 5121: ("B", 1)}[accessor["componentType"]]
        count = accessor["count"] * width
        assert view["byteLength"] == count * each and view["byteOffset"] % 4 == 0
        values = struct.unpack_from(f"<{count}{letter}", binary, view["byteOffset"])
        arrays[name] = np.array(values).reshape(-1, width)
    return content, arrays


def turned(splats: Splats) -> Splats:
    """In the axes of glTF: left, up, front."""
    return moved_along(splats, np.diag([-1.0, -1.0, 1.0, 1.0]))


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_glb_is_what_its_specification_says(tmp_path, degree):
    splats = random_splats(25, degree)
    uncertainty = torch.linspace(0, 1, 25)
    save_glb(splats, tmp_path / "a.glb", {"uncertainty": uncertainty})
    content, arrays = read_glb((tmp_path / "a.glb").read_bytes())
    expected, prefix = turned(splats), "KHR_gaussian_splatting:"
    assert content["extensionsUsed"] == ["KHR_gaussian_splatting"]
    (primitive,) = content["meshes"][0]["primitives"]
    assert primitive["mode"] == 0
    described = primitive["extensions"]["KHR_gaussian_splatting"]
    assert described["kernel"] == "ellipse" and described["colorSpace"] == "srgb_rec709_display"
    np.testing.assert_allclose(arrays["POSITION"], expected.means, atol=1e-6)
    first = content["accessors"][primitive["attributes"]["POSITION"]]
    np.testing.assert_allclose(first["min"], arrays["POSITION"].min(0))
    np.testing.assert_allclose(first["max"], arrays["POSITION"].max(0))
    np.testing.assert_allclose(arrays[prefix + "SCALE"], expected.scales, rtol=1e-5)
    np.testing.assert_allclose(arrays[prefix + "OPACITY"][:, 0], expected.opacities, atol=1e-6)
    rotation = arrays[prefix + "ROTATION"]
    np.testing.assert_allclose(np.linalg.norm(rotation, axis=1), 1, atol=1e-6)
    unit = torch.nn.functional.normalize(expected.quats.double(), dim=1).numpy()
    dots = (rotation[:, [3, 0, 1, 2]] * unit).sum(1)
    assert np.abs(dots).min() > 1 - 1e-6
    for k in range(splats.sh.shape[1]):
        l = math.isqrt(k)
        band = arrays[f"{prefix}SH_DEGREE_{l}_COEF_{k - l * l}"]
        np.testing.assert_allclose(band, expected.sh[:, k], atol=1e-5)
    np.testing.assert_array_equal(arrays["_UNCERTAINTY"][:, 0], uncertainty.double())
    assert arrays["COLOR_0"].shape == (25, 4)


def test_glb_comes_back_as_it_was(tmp_path):
    splats = random_splats(40, 3, extra={"half_width": torch.rand(40), "Views": torch.arange(40)})
    save_glb(splats, tmp_path / "a.glb")
    read = load_splats(tmp_path / "a.glb")
    assert torch.equal(read.means, splats.means)
    torch.testing.assert_close(read.sh, splats.sh, atol=1e-6, rtol=0)
    torch.testing.assert_close(read.log_scales, splats.log_scales, atol=1e-5, rtol=0)
    assert list(read.extra) == ["half_width", "views"]
    assert torch.equal(read.extra["views"], torch.arange(40.0))


def test_glb_refuses_what_it_cannot_hold(tmp_path):
    with pytest.raises(InputError, match="up to degree 3, this model has degree 4"):
        save_glb(random_splats(3, 4), tmp_path / "a.glb")
    for extra in ({"a b": [1.0, 2.0]}, {"a b": [1.0] * 3, "a_b": [1.0] * 3}):
        with pytest.raises(InputError, match="becomes _A_B"):
            save_glb(random_splats(3, 0), tmp_path / "a.glb", extra)
    broken = replace(random_splats(3, 0), means=torch.full((3, 3), torch.nan))
    for save in (save_glb, save_spz):
        with pytest.raises(InputError, match="means: 3 of 3"):
            save(broken, tmp_path / "a.glb")
    assert not list(tmp_path.iterdir())
