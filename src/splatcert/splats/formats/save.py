# SPDX-License-Identifier: Apache-2.0
"""Writers of formats that open anywhere: SPZ version 3, and binary glTF.

SPZ rounds every value, so its decoded Gaussians differ from those that went in. Certify the
file that you ship.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.splats.formats.frames import axes_to_ply
from splatcert.splats.formats.glb import AXES, CHUNKS, EXTENSION, MAGIC
from splatcert.splats.formats.packed import SH_C0
from splatcert.splats.formats.spz import ANTIALIASED, COLOUR_SCALE, EXTENDED
from splatcert.splats.formats.spz import MAGIC as SPZ_MAGIC
from splatcert.splats.gaussians import Splats, SplatsError
from splatcert.splats.transform import transform_splats
from splatcert.storage.whole import replacing

SPZ_VERSION = 3
ORBIT_EXTENSION = 0xADBE0002
COORDINATE_BITS = 23
MAX_FRACTION = 20
"""Fractional bits at most; 12 are usual, and small scenes deserve more."""
GLTF_DEGREE = 3
FLOAT, BYTE = 5126, 5121
VERTICES = 34962
SMALLEST = np.finfo(np.float32).tiny
Bytes = NDArray[np.uint8]


def save_spz(
    splats: Splats, path: str | Path, *, safe_orbit: tuple[float, float, float] | None = None
) -> None:
    """Write SPZ version 3, without change of axes; extra columns have no place in it.

    `safe_orbit` is stored as the extension SPZ_ADOBE_safe_orbit_camera: least and greatest
    elevation in radians, and least radius.

    Centres keep as many fractional bits as the extent of the scene allows. Harmonics
    keep 8 bits over -1 to 1. The file appears under its name only when it is complete.
    """
    splats.check_finite()
    means = _array(splats.means)
    fraction = _fraction(means)
    flags = ANTIALIASED if splats.antialiased else 0
    flags |= 0 if safe_orbit is None else EXTENDED
    header = struct.pack(
        "<4sIIBBBB", SPZ_MAGIC, SPZ_VERSION, len(splats), splats.sh_degree, fraction, flags, 0
    )
    fixed = np.rint(means * (1 << fraction)).astype("<i4")
    opacities = _array(splats.opacities)
    sh = _array(splats.sh)
    body = [
        fixed.view(np.uint8).reshape(-1, 4)[:, :3],
        _bytes(opacities * 255),
        _bytes(sh[:, 0] * (COLOUR_SCALE * 255) + 127.5),
        _bytes((_array(splats.log_scales) + 10) * 16),
        _smallest_three(_array(splats.quats)),
        _bytes(sh[:, 1:] * 128 + 128),
    ]
    with replacing(Path(path)) as aside, aside.open("wb") as whole:
        # Neither name nor time: equal splats give equal files.
        with gzip.GzipFile("", "wb", fileobj=whole, mtime=0) as file:
            file.write(header)
            for part in body:
                file.write(np.ascontiguousarray(part).tobytes())
            if safe_orbit is not None:
                file.write(struct.pack("<II3f", ORBIT_EXTENSION, 12, *safe_orbit))


def _array(values: Any) -> NDArray[np.float64]:
    return values.detach().cpu().double().numpy()


def _bytes(values: NDArray[np.float64]) -> Bytes:
    return np.rint(values).clip(0, 255).astype(np.uint8)


def _fraction(means: NDArray[np.float64]) -> int:
    """The most fractional bits with which every coordinate fits into 24 bits."""
    farthest = float(np.abs(means).max(initial=0.0))
    for fraction in range(MAX_FRACTION, -1, -1):
        if farthest * (1 << fraction) < (1 << COORDINATE_BITS) - 1:
            return fraction
    raise SplatsError(
        f"SPZ stores coordinates up to {1 << COORDINATE_BITS}; a Gaussian is at {farthest:.3g}.\n"
        "  Remove it, or export a PLY."
    )


def _smallest_three(quats: NDArray[np.float64]) -> Bytes:
    """Rotations as the three smallest components of x, y, z, w in ten bits, four bytes each."""
    unit = np.roll(quats / np.linalg.norm(quats, axis=1, keepdims=True), -1, axis=1)
    largest = np.abs(unit).argmax(axis=1)
    rows = np.arange(len(unit))
    unit = unit * np.where(unit[rows, largest] < 0, -1.0, 1.0)[:, None]
    words = largest.astype(np.uint32)
    others = unit[np.arange(4) != largest[:, None]].reshape(-1, 3)
    sizes = np.floor(np.abs(others) / np.sqrt(0.5) * 511 + 0.5).clip(0, 511).astype(np.uint32)
    fields = sizes | ((others < 0).astype(np.uint32) << np.uint32(9))
    for k in range(3):
        words = (words << np.uint32(10)) | fields[:, k]
    return words.astype("<u4").view(np.uint8)


def save_glb(
    splats: Splats, path: str | Path, extra: Mapping[str, ArrayLike] | None = None
) -> None:
    """Write binary glTF with KHR_gaussian_splatting in float32, turned to glTF's axes.

    `extra` are per-Gaussian numbers that become custom attributes: `uncertainty` is stored
    as `_UNCERTAINTY`. By default the splats' own extra columns are written.
    """
    splats.check_finite()
    if splats.sh_degree > GLTF_DEGREE:
        raise SplatsError(
            f"glTF stores colour harmonics up to degree {GLTF_DEGREE}, this model has degree "
            f"{splats.sh_degree}.\n  Export a PLY instead."
        )
    columns = dict(splats.extra if extra is None else extra)
    turned = transform_splats(splats, np.linalg.inv(axes_to_ply(AXES)))
    attributes = {**_attributes(turned), **_custom(columns, len(splats))}
    views, accessors, start = [], [], 0
    for name, array in attributes.items():
        length = array.nbytes
        views.append({"buffer": 0, "byteOffset": start, "byteLength": length, "target": VERTICES})
        accessors.append(_accessor(name, array, len(views) - 1))
        start += length
    content = json.dumps(_document(list(attributes), accessors, views, start)).encode()
    content += b" " * (-len(content) % 4)
    total = 12 + 8 + len(content) + 8 + start
    if total >= 1 << 32:
        raise SplatsError(f"a .glb file holds up to 4 GiB; this model needs {total} bytes.")
    with replacing(Path(path)) as aside, aside.open("wb") as file:
        file.write(struct.pack("<4sII", MAGIC, 2, total))
        file.write(struct.pack("<II", len(content), CHUNKS["json"]) + content)
        file.write(struct.pack("<II", start, CHUNKS["binary"]))
        for array in attributes.values():
            file.write(array.tobytes())


def _attributes(splats: Splats) -> dict[str, NDArray]:
    """What the extension asks for, by attribute; four bytes or a multiple of it per row."""
    sh, opacities = _array(splats.sh), _array(splats.opacities)
    quats = _array(splats.quats)
    linear = _linear(np.clip(SH_C0 * sh[:, 0] + 0.5, 0, 1))
    colour = np.concatenate([linear, opacities[:, None]], axis=1)
    values = {
        "POSITION": splats.means.detach().cpu().numpy(),
        f"{EXTENSION}:ROTATION": np.roll(quats / np.linalg.norm(quats, axis=1)[:, None], -1, 1),
        f"{EXTENSION}:SCALE": np.maximum(np.exp(_array(splats.log_scales)), SMALLEST),
        f"{EXTENSION}:OPACITY": opacities,
    }
    names = [(l, m) for l in range(splats.sh_degree + 1) for m in range(2 * l + 1)]
    for k, (l, m) in enumerate(names):
        values[f"{EXTENSION}:SH_DEGREE_{l}_COEF_{m}"] = sh[:, k]
    arrays: dict[str, NDArray] = {
        name: np.ascontiguousarray(value, "<f4") for name, value in values.items()
    }
    return {**arrays, "COLOR_0": _bytes(colour * 255)}


def _linear(srgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """Decode sRGB: viewers without the extension show COLOR_0, which glTF defines as linear."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _custom(columns: Mapping[str, ArrayLike], count: int) -> dict[str, NDArray]:
    found: dict[str, NDArray] = {}
    for name, column in columns.items():
        values = column.detach().cpu() if hasattr(column, "detach") else column  # pyright: ignore
        array = np.ascontiguousarray(values, "<f4")
        attribute = "_" + re.sub(r"[^A-Z0-9_]", "_", name.upper())
        if array.shape != (count,) or attribute in found:
            raise SplatsError(
                f"the extra column {name!r} has shape {list(array.shape)} and becomes {attribute}; "
                f"expected [{count}] and a name that differs from the others"
            )
        found[attribute] = array
    return found


def _accessor(name: str, array: NDArray, view: int) -> dict[str, Any]:
    width = 1 if array.ndim == 1 else array.shape[1]
    accessor: dict[str, Any] = {
        "bufferView": view,
        "componentType": BYTE if array.dtype == np.uint8 else FLOAT,
        "count": len(array),
        "type": "SCALAR" if width == 1 else f"VEC{width}",
    }
    if array.dtype == np.uint8:
        accessor["normalized"] = True
    if name == "POSITION":
        accessor |= {"min": array.min(axis=0).tolist(), "max": array.max(axis=0).tolist()}
    return accessor


def _document(names: list[str], accessors: list, views: list, size: int) -> dict[str, Any]:
    description = {
        "kernel": "ellipse",
        "colorSpace": "srgb_rec709_display",
        "sortingMethod": "cameraDistance",
        "projection": "perspective",
    }
    primitive = {
        "attributes": {name: index for index, name in enumerate(names)},
        "mode": 0,
        "extensions": {EXTENSION: description},
    }
    return {
        "asset": {"version": "2.0", "generator": "splatcert"},
        "extensionsUsed": [EXTENSION],
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [primitive]}],
        "buffers": [{"byteLength": size}],
        "bufferViews": views,
        "accessors": accessors,
    }
