# SPDX-License-Identifier: Apache-2.0
"""Compressed layouts written from their documentation, one Gaussian and one number at a time."""

from __future__ import annotations

import gzip
import io
import json
import math
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from splatcert.splats.gaussians import Splats

KSPLAT = struct.pack("<BBHIIIIH", 0, 1, 0, 1, 0, 0, 4, 0) + bytes(4096 - 22 + 1024)
"""The header of GaussianSplats3D's format, and that of its only section."""
C0 = 0.28209479177387814
SPZ_AXES = 0xADBE0003
CHUNK_RANGES = ("x", "y", "z", "scale_x", "scale_y", "scale_z", "r", "g", "b")


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def to_byte(x: float) -> int:
    return max(0, min(255, math.floor(x + 0.5)))


def unit(splats: Splats, row: int) -> list[float]:
    quaternion = [float(v) for v in splats.quats[row]]
    length = math.sqrt(sum(v * v for v in quaternion))
    return [v / length for v in quaternion]


def largest_first(quaternion: list[float]) -> tuple[int, list[float]]:
    """Index of the largest component, and the others with its sign made positive."""
    index = max(range(4), key=lambda k: abs(quaternion[k]))
    sign = -1 if quaternion[index] < 0 else 1
    return index, [sign * v for k, v in enumerate(quaternion) if k != index]


# -- compressed PLY --------------------------------------------------------------------------


def compressed_ply(splats: Splats, *, colours: bool = True, comment: str = "") -> bytes:
    ranges = CHUNK_RANGES if colours else CHUNK_RANGES[:6]
    values = [_chunk_values(splats, row) for row in range(len(splats))]
    chunks, words = b"", b""
    for start in range(0, len(splats), 256):
        inside = values[start : start + 256]
        low = [min(v[k] for v in inside) for k in range(len(ranges))]
        high = [max(v[k] for v in inside) for k in range(len(ranges))]
        bounds = [np.float32(x) for x in (*low, *high)]
        chunks += struct.pack(f"<{len(bounds)}f", *bounds)
        for row in range(start, start + len(inside)):
            words += struct.pack("<4I", *_chunk_words(splats, row, values[row], low, high, colours))
    lines = ["ply", "format binary_little_endian 1.0", *([f"comment {comment}"] if comment else [])]
    lines.append(f"element chunk {-(-len(splats) // 256)}")
    lines += [f"property float {end}_{name}" for end in ("min", "max") for name in ranges]
    lines.append(f"element vertex {len(splats)}")
    for name in ("packed_position", "packed_rotation", "packed_scale", "packed_color"):
        lines.append(f"property uint {name}")
    rest = splats.sh.shape[1] - 1
    body = chunks + words
    if rest:
        lines.append(f"element sh {len(splats)}")
        lines += [f"property uchar f_rest_{k}" for k in range(3 * rest)]
        for row in range(len(splats)):
            for channel in range(3):
                for k in range(rest):
                    share = float(splats.sh[row, k + 1, channel]) / 8 + 0.5
                    body += bytes([max(0, min(255, math.floor(share * 256)))])
    return "\n".join([*lines, "end_header", ""]).encode() + body


def _chunk_values(splats: Splats, row: int) -> list[float]:
    colour = [0.5 + C0 * float(v) for v in splats.sh[row, 0]]
    return [*map(float, splats.means[row]), *map(float, splats.log_scales[row]), *colour]


def _chunk_words(splats, row, values, low, high, colours) -> tuple[int, int, int, int]:
    def share(k: int, bits: int) -> int:
        span = high[k] - low[k]
        part = (values[k] - low[k]) / span if span else 0.0
        return math.floor(part * ((1 << bits) - 1) + 0.5)

    def three(k: int) -> int:
        return share(k, 11) << 21 | share(k + 1, 10) << 11 | share(k + 2, 11)

    index, others = largest_first(unit(splats, row))
    rotation = index
    for v in others:
        rotation = rotation << 10 | math.floor((v * math.sqrt(0.5) + 0.5) * 1023 + 0.5)
    if colours:
        red, green, blue = (share(k, 8) for k in (6, 7, 8))
    else:
        red, green, blue = (to_byte(values[k] * 255) for k in (6, 7, 8))
    alpha = to_byte(255 * sigmoid(float(splats.logit_opacities[row])))
    return three(0), rotation, three(3), red << 24 | green << 16 | blue << 8 | alpha


# -- SPZ ---------------------------------------------------------------------------------------


def spz_parts(splats: Splats, version: int, fraction: int = 12) -> list[bytes]:
    """Attributes in file order."""
    centres = opacities = colours = scales = rotations = harmonics = b""
    for row in range(len(splats)):
        for value in map(float, splats.means[row]):
            if version == 1:
                centres += struct.pack("<e", value)
            else:
                centres += round(value * 2**fraction).to_bytes(3, "little", signed=True)
        opacities += bytes([to_byte(255 * sigmoid(float(splats.logit_opacities[row])))])
        colours += bytes(to_byte(255 * (0.15 * float(v) + 0.5)) for v in splats.sh[row, 0])
        scales += bytes(to_byte(16 * (float(v) + 10)) for v in splats.log_scales[row])
        w, x, y, z = unit(splats, row)
        if version < 3:
            sign = -1 if w < 0 else 1
            rotations += bytes(to_byte(127.5 * (sign * v + 1)) for v in (x, y, z))
        else:
            index, others = largest_first([x, y, z, w])
            word = index
            for v in others:
                word = word << 10 | (v < 0) << 9 | math.floor(511 * abs(v) / math.sqrt(0.5) + 0.5)
            rotations += struct.pack("<I", word)
        for coefficients in splats.sh[row, 1:]:
            harmonics += bytes(to_byte(128 * float(v) + 128) for v in coefficients)
    return [centres, opacities, colours, scales, rotations, harmonics]


def spz(
    splats: Splats,
    version: int = 3,
    *,
    axes: int | None = None,
    packed: bool = True,
) -> bytes:
    parts = spz_parts(splats, version)
    extension = b"" if axes is None else struct.pack("<4I", 0x12340001, 0, SPZ_AXES, 4)
    extension += b"" if axes is None else struct.pack("<I", axes)
    flags = (2 if axes is not None else 0) | (1 if splats.antialiased else 0)
    head = struct.pack("<4sIIBBB", b"NGSP", version, len(splats), splats.sh_degree, 12, flags)
    if version < 4:
        whole = head + b"\0" + b"".join(parts) + extension
        return gzip.compress(whole) if packed else whole
    import zstandard

    parts = [part for part in parts if part]
    streams = [zstandard.compress(part) for part in parts]
    table = b"".join(
        struct.pack("<QQ", len(s), len(p)) for s, p in zip(streams, parts, strict=True)
    )
    head += struct.pack("<BI12x", len(streams), 32 + len(extension))
    return head + extension + table + b"".join(streams)


# -- .splat ------------------------------------------------------------------------------------


def splat(splats: Splats) -> bytes:
    data = b""
    for row in range(len(splats)):
        data += struct.pack("<3f", *map(float, splats.means[row]))
        data += struct.pack("<3f", *(math.exp(float(v)) for v in splats.log_scales[row]))
        data += bytes(to_byte(255 * (0.5 + C0 * float(v))) for v in splats.sh[row, 0])
        data += bytes([to_byte(255 * sigmoid(float(splats.logit_opacities[row])))])
        data += bytes(to_byte(128 * v + 128) for v in unit(splats, row))
    return data


# -- SOG ---------------------------------------------------------------------------------------


def webp(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8), "RGBA").save(stream, "WEBP", lossless=True, exact=True)
    return stream.getvalue()


def texture(rows: list[list[int]], width: int = 8) -> bytes:
    height = -(-len(rows) // width)
    pixels = np.zeros((height * width, 4), np.uint8)
    pixels[:, 3] = 255
    pixels[: len(rows)] = rows
    return webp(pixels.reshape(height, width, 4))


def sog(splats: Splats, version: int = 2) -> dict[str, bytes]:
    """Every file of a bundle, by name."""
    count, rest = len(splats), splats.sh.shape[1] - 1
    logs = [[math.copysign(math.log1p(abs(v)), v) for v in map(float, m)] for m in splats.means]
    low, high = ([end(row[k] for row in logs) for k in range(3)] for end in (min, max))
    levels = [
        [round((row[k] - low[k]) / (high[k] - low[k]) * 65535) for k in range(3)] for row in logs
    ]
    meta: dict = {"means": {"mins": low, "maxs": high, "files": ["means_l.webp", "means_u.webp"]}}
    files = {
        "means_l.webp": texture([[v % 256 for v in row] + [255] for row in levels]),
        "means_u.webp": texture([[v // 256 for v in row] + [255] for row in levels]),
    }
    rows = []
    for row in range(count):
        index, others = largest_first(unit(splats, row))
        rows.append([to_byte((v * math.sqrt(2) + 1) / 2 * 255) for v in others] + [252 + index])
    files["quats.webp"], meta["quats"] = texture(rows), {"files": ["quats.webp"]}

    scales = [[float(v) for v in row] for row in splats.log_scales]
    colours = [[float(v) for v in row] for row in splats.sh[:, 0]]
    opacities = [float(v) for v in splats.logit_opacities]
    if version == 2:
        meta |= {"version": 2, "count": count}
        if splats.antialiased:
            meta["model"] = "antialiased"
        book, rows = _codebook(scales)
        meta["scales"] = {"codebook": book, "files": ["scales.webp"]}
        files["scales.webp"] = texture([[*row, 255] for row in rows])
        book, rows = _codebook(colours)
        meta["sh0"] = {"codebook": book, "files": ["sh0.webp"]}
        alphas = [to_byte(255 * sigmoid(o)) for o in opacities]
    else:
        meta["means"]["shape"] = [count, 3]
        ends, rows = _linear(scales)
        meta["scales"] = {**ends, "files": ["scales.webp"]}
        files["scales.webp"] = texture([[*row, 255] for row in rows])
        ends, quads = _linear([[*c, o] for c, o in zip(colours, opacities, strict=True)])
        meta["sh0"] = {**ends, "files": ["sh0.webp"]}
        rows, alphas = [q[:3] for q in quads], [q[3] for q in quads]
    files["sh0.webp"] = texture([[*row, a] for row, a in zip(rows, alphas, strict=True)])
    if rest:
        meta["shN"], more = _palette(splats, version)
        files |= more
    return {"meta.json": json.dumps(meta).encode(), **files}


def _codebook(rows: list[list[float]]) -> tuple[list[float], list[list[int]]]:
    """256 values in equal steps, and the nearest for each number."""
    low, high = min(map(min, rows)), max(map(max, rows))
    book = [low + (high - low) * k / 255 for k in range(256)]
    return book, [[round((v - low) / (high - low) * 255) for v in row] for row in rows]


def _linear(rows: list[list[float]]) -> tuple[dict, list[list[int]]]:
    columns = list(zip(*rows, strict=True))
    low, high = [min(c) for c in columns], [max(c) for c in columns]
    bytes_ = [
        [round((v - low[k]) / (high[k] - low[k]) * 255) for k, v in enumerate(row)] for row in rows
    ]
    return {"mins": low, "maxs": high}, bytes_


def _palette(splats: Splats, version: int) -> tuple[dict, dict[str, bytes]]:
    """A palette with one entry per Gaussian, sixty-four to a row."""
    count, rest = len(splats), splats.sh.shape[1] - 1
    flat = [[float(v) for v in row.flatten()] for row in splats.sh[:, 1:]]
    book, rows = _codebook(flat)
    height = -(-count // 64)
    pixels = np.full((height, 64 * rest, 4), 255, np.uint8)
    for entry, row in enumerate(rows):
        for k in range(rest):
            place = entry // 64, entry % 64 * rest + k
            pixels[place][:3] = row[3 * k : 3 * k + 3]
    labels = texture([[entry % 256, entry // 256, 0, 255] for entry in range(count)])
    files = {"shN_centroids.webp": webp(pixels), "shN_labels.webp": labels}
    described: dict = {"files": list(files)}
    if version == 2:
        described |= {"count": count, "bands": splats.sh_degree, "codebook": book}
    else:
        described |= {"mins": book[0], "maxs": book[-1]}
    return described, files


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def zipped(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


# -- glTF --------------------------------------------------------------------------------------


def glb(content: dict, binary: bytes) -> bytes:
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    total = 12 + 8 + len(text) + 8 + len(binary)
    head = struct.pack("<4sII", b"glTF", 2, total)
    first = struct.pack("<II", len(text), 0x4E4F534A) + text
    return head + first + struct.pack("<II", len(binary), 0x004E4942) + binary


def splat_gltf(splats: Splats, node: dict | None = None) -> tuple[dict, bytes]:
    """Float attributes of one primitive, in glTF's own axes; `node` may move it."""
    binary, views, accessors, attributes = b"", [], [], {}

    def add(name: str, rows: list[list[float]]) -> None:
        nonlocal binary
        width = len(rows[0])
        data = struct.pack(f"<{width * len(rows)}f", *(v for row in rows for v in row))
        views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": len(data)})
        kind = "SCALAR" if width == 1 else f"VEC{width}"
        accessor = {"bufferView": len(views) - 1, "componentType": 5126}
        accessors.append({**accessor, "count": len(rows), "type": kind})
        attributes[name] = len(accessors) - 1
        binary += data

    prefix, every = "KHR_gaussian_splatting:", range(len(splats))
    add("POSITION", splats.means.tolist())
    turned = [unit(splats, row) for row in every]
    add(prefix + "ROTATION", [[x, y, z, w] for w, x, y, z in turned])
    add(prefix + "SCALE", [[math.exp(v) for v in row] for row in splats.log_scales.tolist()])
    add(prefix + "OPACITY", [[sigmoid(v)] for v in splats.logit_opacities.tolist()])
    for k in range(splats.sh.shape[1]):
        degree = math.isqrt(k)
        add(f"{prefix}SH_DEGREE_{degree}_COEF_{k - degree**2}", splats.sh[:, k].tolist())
    extension = {"kernel": "ellipse", "colorSpace": "srgb_rec709_display"}
    primitive = {
        "attributes": attributes,
        "mode": 0,
        "extensions": {"KHR_gaussian_splatting": extension},
    }
    content = {
        "asset": {"version": "2.0"},
        "extensionsUsed": ["KHR_gaussian_splatting"],
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, **(node or {})}],
        "meshes": [{"primitives": [primitive]}],
        "buffers": [{"byteLength": len(binary)}],
        "bufferViews": views,
        "accessors": accessors,
    }
    return content, binary
