# SPDX-License-Identifier: Apache-2.0
"""Every compressed format, written independently and read back within its quantisation."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import packed_layouts as layouts
import pytest
import torch

from splat_layouts import moved_along, random_splats
from splatcert.splats.files import describe_model, load_splats
from splatcert.splats.gaussians import Splats

DEGREES = (0, 1, 2, 3)


def scene(degree: int, count: int = 300, **more) -> Splats:
    """Splats whose values every format can hold; more than one chunk of 256."""
    splats = random_splats(count, degree, seed=degree, **more)
    return replace(splats, sh=splats.sh.clamp(-0.9, 0.9))


def angles(left: Splats, right: Splats) -> torch.Tensor:
    """Angles between rotations, in radians."""
    first, second = (torch.nn.functional.normalize(s.quats.double(), dim=1) for s in (left, right))
    return 2 * (first * second).sum(1).abs().clamp(max=1).arccos()


def assert_close(
    left: Splats,
    right: Splats,
    *,
    means: float | torch.Tensor,
    scales: float,
    opacity: float = 0.501 / 255,
    constant: float,
    rest: float = 0.0,
    turn: float,
) -> None:
    assert left.sh.shape == right.sh.shape and left.antialiased == right.antialiased
    assert ((left.means - right.means).abs() <= torch.as_tensor(means) + 1e-6).all()
    assert (left.log_scales - right.log_scales).abs().max() <= scales + 1e-5
    assert (left.opacities - right.opacities).abs().max() <= opacity
    assert (left.sh[:, 0] - right.sh[:, 0]).abs().max() <= constant
    if rest and left.sh_degree:
        assert (left.sh[:, 1:] - right.sh[:, 1:]).abs().max() <= rest
    assert angles(left, right).max() <= turn


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("colours", [True, False])
def test_compressed_ply(tmp_path, degree, colours):
    splats = scene(degree)
    if not colours:  # without ranges, colours are bytes from 0 to 1
        splats = replace(splats, sh=splats.sh.clamp(-1.7, 1.7))
    path = tmp_path / "any name.ply"
    path.write_bytes(layouts.compressed_ply(splats, colours=colours))
    info, read = describe_model(path), load_splats(path)
    assert (info.format, info.count, info.sh_degree) == ("compressed-ply", 300, degree)
    spans = [part.amax(0) - part.amin(0) for part in splats.means.split(256)]
    step = torch.cat([
        (span / torch.tensor([2047, 1023, 2047]) / 2).expand(len(part), 3)
        for span, part in zip(spans, splats.means.split(256), strict=True)
    ])  # fmt: skip
    widest = float((splats.log_scales.amax(0) - splats.log_scales.amin(0)).max())
    constant = 2.5 / 255 / 0.282 if not colours else 0.01
    assert_close(
        read, splats, means=step * 1.01, scales=widest / 1023 / 2, constant=constant, rest=8 / 512,
        turn=0.006,
    )  # fmt: skip


def test_a_compressed_ply_says_that_it_is_antialiased(tmp_path):
    path = tmp_path / "a.compressed.ply"
    path.write_bytes(layouts.compressed_ply(scene(0, 5), comment="SplatRenderMode: mip"))
    assert describe_model(path).antialiased and load_splats(path).antialiased


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("degree", [0, 3])
def test_spz(tmp_path, version, degree):
    if version == 4:
        pytest.importorskip("zstandard")
    splats = scene(degree, 40, antialiased=True)
    path = tmp_path / "model.bin"
    path.write_bytes(layouts.spz(splats, version))
    info, read = describe_model(path), load_splats(path)
    assert (info.format, info.count, info.sh_degree) == ("spz", 40, degree)
    assert info.antialiased and "half turn about x" in info.notes[0]
    means = 0.5 / 4096 if version > 1 else splats.means.abs() / 2**11
    assert_close(
        read, splats, means=means, scales=1 / 32, constant=0.501 / 255 / 0.15, rest=0.501 / 128,
        turn=0.005 if version > 2 else 0.2,
    )  # fmt: skip


def test_spz_without_its_gzip_and_of_degree_four(tmp_path):
    splats = scene(4, 7)
    path = tmp_path / "a.spz"
    path.write_bytes(layouts.spz(splats, 3, packed=False))
    assert load_splats(path).sh_degree == 4


@pytest.mark.parametrize("version", [2, 3, 4])
def test_spz_that_states_its_axes_is_turned_to_those_of_a_ply(tmp_path, version):
    if version == 4:
        pytest.importorskip("zstandard")
    splats = scene(2, 9)
    half_turn = np.diag([1.0, -1.0, -1.0, 1.0])
    right_up_back = 4
    (tmp_path / "a.spz").write_bytes(
        layouts.spz(moved_along(splats, half_turn), version, axes=right_up_back)
    )
    (tmp_path / "b.spz").write_bytes(layouts.spz(splats, version))
    stated, plain = load_splats(tmp_path / "a.spz"), load_splats(tmp_path / "b.spz")
    assert "axes RUB" in describe_model(tmp_path / "a.spz").notes[0]
    torch.testing.assert_close(stated.means, plain.means)
    torch.testing.assert_close(stated.sh, plain.sh, atol=1.1 / 128, rtol=0)
    assert angles(stated, plain).max() < (0.01 if version > 2 else 0.4)


def test_spz_keeps_negative_and_far_centres(tmp_path):
    splats = random_splats(4, 0)
    far = torch.tensor([[-2047.5, 2047.5, -0.25], [0, -1e-3, 1], [8, -8, 0], [1, 2, 3]])
    (tmp_path / "a.spz").write_bytes(layouts.spz(replace(splats, means=far)))
    assert (load_splats(tmp_path / "a.spz").means - far).abs().max() <= 0.5 / 4096


def test_splat(tmp_path):
    splats = scene(0)
    path = tmp_path / "a.splat"
    path.write_bytes(layouts.splat(splats))
    info, read = describe_model(path), load_splats(path)
    assert (info.format, info.count, info.sh_degree) == ("splat", 300, 0)
    assert (read.means == splats.means).all()
    assert_close(read, splats, means=0, scales=1e-6, constant=0.501 / 255 / 0.282, turn=0.03)


def test_a_splat_with_opacity_of_zero_or_one_and_no_rotation_can_be_rendered(tmp_path):
    data = bytearray(layouts.splat(scene(0, 3)))
    data[27], data[32 + 27] = 0, 255
    data[28:32] = b"\x80\x80\x80\x80"
    (tmp_path / "a.splat").write_bytes(data)
    read = load_splats(tmp_path / "a.splat")
    assert read.opacities[:2].tolist() == [0, 1]
    assert read.quats[0].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("place", ["zip", "folder", "meta.json", "zip with a folder"])
def test_sog(tmp_path, degree, version, place):
    splats = scene(degree, 130, antialiased=version == 2)
    files = layouts.sog(splats, version)
    path = tmp_path / "model.sog"
    if place == "zip":
        path.write_bytes(layouts.zipped(files))
    elif place.startswith("zip"):
        path.write_bytes(layouts.zipped({f"scene/{name}": data for name, data in files.items()}))
    else:
        path = layouts.write_folder(tmp_path / "model", files)
        path = path if place == "folder" else path / "meta.json"
    info, read = describe_model(path), load_splats(path)
    assert (info.format, info.count, info.sh_degree) == ("sog", 130, degree)
    logs = splats.means.abs().log1p()
    step = 2 * float(logs.max()) / 65535 / 2 * splats.means.abs().add(1)
    ranges = [float(part.max() - part.min()) for part in (splats.log_scales, splats.sh)]
    assert_close(
        read, splats, means=step * 1.01, scales=ranges[0] / 510, constant=ranges[1] / 509,
        rest=ranges[1] / 509, turn=0.02,
        opacity=0.501 / 255 if version == 2 else float(splats.logit_opacities.abs().max()) / 510,
    )  # fmt: skip


def test_a_label_outside_the_palette_has_no_view_dependent_colour(tmp_path):
    splats = scene(1, 70)
    files = layouts.sog(splats)
    meta = json.loads(files["meta.json"])
    meta["shN"]["count"] = 69
    files["meta.json"] = json.dumps(meta).encode()
    (tmp_path / "a.sog").write_bytes(layouts.zipped(files))
    read = load_splats(tmp_path / "a.sog")
    assert not read.sh[69, 1:].any() and read.sh[68, 1:].any()


LUF_TO_RDF = np.diag([-1.0, -1.0, 1.0, 1.0])


@pytest.mark.parametrize("degree", DEGREES)
def test_glb(tmp_path, degree):
    splats = scene(degree, 20)
    path = tmp_path / "a.glb"
    path.write_bytes(layouts.glb(*layouts.splat_gltf(splats)))
    info, read = describe_model(path), load_splats(path)
    assert (info.format, info.count, info.sh_degree) == ("glb", 20, degree)
    assert_close(
        read, moved_along(splats, LUF_TO_RDF), means=1e-6, scales=1e-5, constant=1e-6,
        rest=1e-5, opacity=1e-6, turn=2e-3,
    )  # fmt: skip


def test_glb_nodes_move_turn_and_scale_their_gaussians(tmp_path):
    splats = scene(2, 10)
    half = np.sqrt(0.5)
    node = {"translation": [1, 2, 3], "rotation": [half, 0, 0, half], "scale": [2, 2, 2]}
    content, binary = layouts.splat_gltf(splats, node)
    outer = [0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 5, 6, 7, 1]  # x to z, y to x, z to y, by columns
    content["nodes"].append({"children": [0], "matrix": outer})
    content["scenes"] = [{"nodes": [1]}]
    (tmp_path / "a.glb").write_bytes(layouts.glb(content, binary))
    inner = np.array([[2, 0, 0, 1], [0, 0, -2, 2], [0, 2, 0, 3], [0, 0, 0, 1.0]])
    turn = np.array([[0, 1, 0, 5], [0, 0, 1, 6], [1, 0, 0, 7], [0, 0, 0, 1.0]])
    expected = moved_along(splats, LUF_TO_RDF @ turn @ inner)
    assert_close(
        load_splats(tmp_path / "a.glb"), expected, means=1e-5, scales=1e-5, constant=1e-6,
        rest=1e-4, opacity=1e-6, turn=3e-3,
    )  # fmt: skip


def test_glb_joins_primitives_of_several_degrees(tmp_path):
    content, binary = layouts.splat_gltf(scene(1, 6))
    primitive = content["meshes"][0]["primitives"][0]
    plain = {k: v for k, v in primitive["attributes"].items() if "SH_DEGREE_1" not in k}
    content["meshes"][0]["primitives"].append({**primitive, "attributes": plain})
    (tmp_path / "a.glb").write_bytes(layouts.glb(content, binary))
    read = load_splats(tmp_path / "a.glb")
    assert len(read) == describe_model(tmp_path / "a.glb").count == 12
    assert torch.equal(read.means[:6], read.means[6:])
    assert read.sh[:6, 1:].abs().max() > 0.1 and read.sh[6:, 1:].abs().max() < 1e-6


def test_glb_with_quantised_attributes(tmp_path):
    splats = scene(0, 4)
    content, binary = layouts.splat_gltf(splats)
    opacities = [layouts.to_byte(255 * layouts.sigmoid(v)) for v in splats.logit_opacities.tolist()]
    rows = b"".join(bytes([byte, 0, 0, 0]) for byte in opacities)
    content["bufferViews"].append(
        {"buffer": 0, "byteOffset": len(binary), "byteLength": 16, "byteStride": 4}
    )
    view = len(content["bufferViews"]) - 1
    content["accessors"].append(
        {
            "bufferView": view,
            "componentType": 5121,
            "normalized": True,
            "count": 4,
            "type": "SCALAR",
        }
    )
    attributes = content["meshes"][0]["primitives"][0]["attributes"]
    attributes["KHR_gaussian_splatting:OPACITY"] = len(content["accessors"]) - 1
    (tmp_path / "a.glb").write_bytes(layouts.glb(content, binary + rows))
    read = load_splats(tmp_path / "a.glb").opacities
    torch.testing.assert_close(read, torch.tensor(opacities) / 255)


def test_glb_with_spz_inside(tmp_path):
    splats = scene(1, 30)
    data = layouts.spz(splats)
    extension = {"extensions": {"KHR_gaussian_splatting_compression_spz_2": {"bufferView": 0}}}
    primitive = {"attributes": {}, "extensions": {"KHR_gaussian_splatting": extension}}
    content = {
        "asset": {"version": "2.0"},
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [primitive]}],
        "buffers": [{"byteLength": len(data)}],
        "bufferViews": [{"buffer": 0, "byteLength": len(data)}],
    }
    (tmp_path / "a.glb").write_bytes(layouts.glb(content, data))
    expected = moved_along(splats, LUF_TO_RDF)
    read = load_splats(tmp_path / "a.glb")
    assert (read.means - expected.means).abs().max() <= 0.6 / 4096
    assert (read.sh - expected.sh).abs().max() <= 0.02
