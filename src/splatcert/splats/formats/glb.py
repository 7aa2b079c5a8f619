# SPDX-License-Identifier: Apache-2.0
"""Binary glTF with KHR_gaussian_splatting: Gaussians as point primitives.

Attributes hold activated values (linear scales, opacities) and colour harmonics up to
degree 3, or one SPZ blob. glTF fixes its axes as left, up, front, a half turn about z
from a PLY, so splats are turned on reading.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from splatcert.errors import InputError
from splatcert.splats.formats import packed
from splatcert.splats.formats.frames import axes_to_ply
from splatcert.splats.formats.packed import Floats, damaged, refusal
from splatcert.splats.formats.spz import open_spz_in
from splatcert.splats.gaussians import Splats
from splatcert.splats.transform import transform_splats

MAGIC = b"glTF"
EXTENSION = "KHR_gaussian_splatting"
SPZ_EXTENSION = "KHR_gaussian_splatting_compression_spz"
AXES = "LUF"
CHUNKS = {"json": 0x4E4F534A, "binary": 0x004E4942}
MAX_JSON = 1 << 26
MAX_NODES = 1 << 16
COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
UNUSABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass(frozen=True, eq=False)
class GltfFile:
    """The JSON and the binary part of a .glb file."""

    path: Path
    content: dict[str, Any]
    binary: packed.Blob

    def view(self, index: int) -> tuple[packed.Blob, int]:
        """Bytes of a buffer view, and its stride (0 if tight)."""
        view = self.content["bufferViews"][index]
        if view["buffer"] != 0 or "uri" in self.content["buffers"][0] or view.get("extensions"):
            raise refusal(
                self.path,
                "its Gaussians are in another file or compressed by an extension.",
                "Export one uncompressed .glb, or a PLY.",
            )
        start, length = int(view.get("byteOffset", 0)), int(view["byteLength"])
        return self.binary.part(start, length), int(view.get("byteStride", 0))

    def accessor(self, index: int, width: int, count: int) -> Floats:
        """Numbers of one attribute, [count, width], with normalised integers as fractions."""
        accessor = self.content["accessors"][index]
        found = WIDTHS.get(accessor["type"]), int(accessor["count"])
        if found != (width, count) or "sparse" in accessor or "bufferView" not in accessor:
            raise damaged(
                self.path,
                f"accessor {index} has {found[1]} values of type {accessor['type']}; "
                f"{count} of {width} numbers each are needed.",
            )
        kind = np.dtype(COMPONENTS[accessor["componentType"]])
        view, stride = self.view(int(accessor["bufferView"]))
        row = kind.itemsize * width
        stride = stride or row
        start, needed = int(accessor.get("byteOffset", 0)), (count - 1) * stride + row
        if stride < row:
            raise damaged(self.path, f"accessor {index} has rows that overlap.")
        data = np.frombuffer(view.part(start, needed).read(), np.uint8)
        if len(data) != needed:
            raise damaged(self.path, "the file shrank while it was read.")
        rows = np.lib.stride_tricks.as_strided(data, (count, row), (stride, 1))
        values = np.ascontiguousarray(rows).view(kind).reshape(count, width).astype(np.float64)
        if accessor.get("normalized") and kind.kind in "iu":
            values = np.maximum(values / np.iinfo(kind).max, -1.0)
        return values


@dataclass(frozen=True, eq=False)
class SplatPrimitive:
    """One primitive of Gaussians, where a node puts it."""

    to_world: Floats
    primitive: dict[str, Any]
    count: int
    degree: int
    spz: packed.FileModel | None

    @property
    def attributes(self) -> dict[str, int]:
        """Accessors by attribute, without the extension's prefix."""
        return {
            name.removeprefix(f"{EXTENSION}:"): index
            for name, index in self.primitive["attributes"].items()
        }


def read_gltf(path: Path) -> GltfFile:
    """The parts of a .glb file, their lengths checked."""
    file = packed.whole_file(path)
    start = file.read(count=20)
    if len(start) < 20 or not start.startswith(MAGIC):
        raise damaged(path, "not a .glb file: its header is missing.")
    version, length, json_length, kind = struct.unpack("<4I", start[4:])
    if version != 2 or kind != CHUNKS["json"] or json_length > MAX_JSON or length > file.size:
        raise damaged(
            path,
            f"a .glb header of version {version} and {length} bytes does not fit this file "
            f"of {file.size} bytes.",
        )
    try:
        content = json.loads(file.part(20, json_length).read())
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"its JSON part is not valid ({str(error)[:80]}).") from None
    if not isinstance(content, dict):
        raise damaged(path, "its JSON part is not an object.")
    after = 20 + json_length
    binary = packed.Blob(path, file.size, 0)
    if len(head := file.read(after, 8)) == 8:
        size, kind = struct.unpack("<2I", head)
        if kind == CHUNKS["binary"]:
            binary = file.part(after + 8, size)
    return GltfFile(path, content, binary)


def open_glb(path: Path) -> packed.FileModel:
    """A .glb file with Gaussians; meshes are refused as such."""
    file = read_gltf(path)
    try:
        parts = list(_primitives(file))
    except InputError:
        raise
    except UNUSABLE as error:
        raise damaged(path, f"its glTF structure is not valid ({str(error)[:80]}).") from None
    if not parts:
        raise refusal(
            path,
            f"a glTF file without Gaussians (no {EXTENSION}); it holds meshes or points.",
            "splatcert certifies Gaussian splats: pass the trained model.",
        )
    extra = _extra_names(parts[0]) if len(parts) == 1 else ()
    return packed.FileModel(
        format="glb",
        files=(path,),
        count=sum(part.count for part in parts),
        sh_degree=max(part.degree for part in parts),
        extra=extra,
        decode=lambda: _decode(file, parts, extra),
        notes=("turned from the axes of glTF (left, up, front) to those of a PLY",),
    )


def _primitives(file: GltfFile) -> Iterator[SplatPrimitive]:
    """Every primitive of Gaussians in the scene, nodes walked from the roots."""
    content = file.content
    nodes = content.get("nodes", [])
    scenes = content.get("scenes")
    roots = scenes[content.get("scene", 0)].get("nodes", []) if scenes else range(len(nodes))
    waiting, seen = [(index, np.eye(4)) for index in roots], 0
    while waiting:
        index, above = waiting.pop()
        seen += 1
        if seen > MAX_NODES:
            raise damaged(file.path, f"more than {MAX_NODES} nodes, or nodes inside themselves.")
        node = nodes[index]
        to_world = above @ _node_matrix(node)
        waiting += [(child, to_world) for child in node.get("children", [])]
        if "mesh" not in node:
            continue
        for primitive in content["meshes"][node["mesh"]]["primitives"]:
            if EXTENSION in primitive.get("extensions", {}):
                yield _primitive(file, primitive, to_world)


def _node_matrix(node: dict[str, Any]) -> Floats:
    if "matrix" in node:
        return np.array(node["matrix"], np.float64).reshape(4, 4).T
    matrix = np.eye(4)
    x, y, z, w = np.array(node.get("rotation", (0, 0, 0, 1)), np.float64)
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    matrix[:3, :3] = turn * np.array(node.get("scale", (1, 1, 1)), np.float64)
    matrix[:3, 3] = node.get("translation", (0, 0, 0))
    return matrix


def _primitive(file: GltfFile, primitive: dict[str, Any], to_world: Floats) -> SplatPrimitive:
    extension = primitive["extensions"][EXTENSION]
    kernel, space = extension.get("kernel", "ellipse"), extension.get("colorSpace", "")
    if kernel != "ellipse" or space.startswith("lin"):
        raise refusal(
            file.path,
            f"Gaussians of kernel {kernel!r:.40} in colour space {space!r:.40}.",
            "splatcert renders the kernel 'ellipse' in sRGB colours; export the model that way.",
        )
    inner = extension.get("extensions", {})
    for name, value in inner.items():
        if name.startswith(SPZ_EXTENSION):
            spz = open_spz_in(file.view(int(value["bufferView"]))[0])
            return SplatPrimitive(to_world, primitive, spz.count, spz.sh_degree, spz)
    if inner:
        raise refusal(
            file.path,
            f"splatcert cannot read the extension {', '.join(inner)[:80]} of its Gaussians.",
            "Export an uncompressed .glb, or a PLY.",
        )
    attributes = primitive["attributes"]
    count = int(file.content["accessors"][attributes["POSITION"]]["count"])
    degree = 0
    while degree < 3 and f"{EXTENSION}:SH_DEGREE_{degree + 1}_COEF_0" in attributes:
        degree += 1
    if count < 1 or count > file.binary.size:
        raise damaged(file.path, f"{count} Gaussians in {file.binary.size} bytes.")
    return SplatPrimitive(to_world, primitive, count, degree, None)


def _extra_names(part: SplatPrimitive) -> tuple[str, ...]:
    """Columns of application-specific attributes: `_UNCERTAINTY` is `uncertainty` here."""
    names = [] if part.spz else [name for name in part.attributes if name.startswith("_")]
    return tuple(name[1:].lower() for name in names)


def _decode(file: GltfFile, parts: list[SplatPrimitive], extra: tuple[str, ...]) -> Splats:
    degree = max(part.degree for part in parts)
    try:
        read = [_read(file, part, degree, extra) for part in parts]
    except InputError:
        raise
    except UNUSABLE as error:
        raise damaged(file.path, f"its glTF structure is not valid ({str(error)[:80]}).") from None
    if len(read) == 1:
        return read[0]
    return Splats(
        means=torch.cat([one.means for one in read]),
        quats=torch.cat([one.quats for one in read]),
        log_scales=torch.cat([one.log_scales for one in read]),
        logit_opacities=torch.cat([one.logit_opacities for one in read]),
        sh=torch.cat([one.sh for one in read]),
    )


def _read(file: GltfFile, part: SplatPrimitive, degree: int, extra: tuple[str, ...]) -> Splats:
    splats = part.spz.decode() if part.spz else _plain(file, part, extra)
    missing = (degree + 1) ** 2 - splats.sh.shape[1]
    if missing:
        splats = replace(splats, sh=torch.nn.functional.pad(splats.sh, (0, 0, 0, missing)))
    return transform_splats(splats, axes_to_ply(AXES) @ part.to_world)


def _plain(file: GltfFile, part: SplatPrimitive, extra: tuple[str, ...]) -> Splats:
    attributes = part.attributes

    def column(name: str, width: int) -> Floats:
        if name not in attributes:
            raise damaged(file.path, f"its Gaussians have no attribute {name}.")
        return file.accessor(int(attributes[name]), width, part.count)

    bands = [f"SH_DEGREE_{l}_COEF_{m}" for l in range(1, part.degree + 1) for m in range(2 * l + 1)]
    columns: dict[str, NDArray[np.float32]] = {}
    for name in extra:
        original = next(key for key in attributes if key[1:].lower() == name and key[0] == "_")
        columns[name] = column(original, 1)[:, 0].astype(np.float32)
    return packed.assemble(
        means=column("POSITION", 3),
        quats=np.roll(column("ROTATION", 4), 1, axis=1),
        log_scales=np.log(column("SCALE", 3)),
        logit_opacities=packed.logits(column("OPACITY", 1)[:, 0]),
        constant=column("SH_DEGREE_0_COEF_0", 3),
        rest=np.stack([column(name, 3) for name in bands], axis=1) if bands else None,
        extra=columns,
    )
