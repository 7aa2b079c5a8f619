# SPDX-License-Identifier: Apache-2.0
"""Splats as PLY, read by property name and written in the layout every viewer opens.

Scales are logarithms, opacity is a logit, rot is w x y z, and f_rest holds all red
coefficients, then green, then blue. Columns without a meaning here are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.splats.gaussians import MAX_SH_DEGREE, Splats
from splatcert.splats.transform import NORMALS
from splatcert.storage.ply_table import BLOCK_ROWS, Header, PlyError, read_blocks, read_header
from splatcert.storage.whole import replacing

CENTRE = ("x", "y", "z")
CONSTANT = ("f_dc_0", "f_dc_1", "f_dc_2")
SCALE = ("scale_0", "scale_1", "scale_2")
ROTATION = ("rot_0", "rot_1", "rot_2", "rot_3")
REQUIRED = (*CENTRE, *CONSTANT, "opacity", *SCALE, *ROTATION)

PLY_TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.uint8: "uchar",
    torch.int8: "char",
    torch.int16: "short",
    torch.int32: "int",
    torch.uint16: "ushort",
    torch.uint32: "uint",
}


def read_ply(path: str | Path, *, check: bool = True) -> Splats:
    """Splats of a PLY file: ascii or binary, any column order, degree 0 to 4.

    Parameters become float32, which is what every known writer stores; further
    columns keep their type. Normals that are all zero are dropped.
    """
    header = read_header(Path(path))
    degree = sh_degree_of(header)
    antialiased = antialiased_of(header)
    element = header.element("vertex")
    count = element.count
    # Refuse a false count before the arrays below are allocated for it.
    blocks = read_blocks(header, element)
    first = next(blocks, None)

    parameters = {
        "means": np.empty((count, 3), np.float32),
        "quats": np.empty((count, 4), np.float32),
        "log_scales": np.empty((count, 3), np.float32),
        "logit_opacities": np.empty(count, np.float32),
        "sh": np.empty((count, (degree + 1) ** 2, 3), np.float32),
    }
    targets = _targets(parameters, degree)
    kinds = {p.name: p.kind for p in element.properties}
    extra = {name: np.empty(count, kinds[name]) for name in element.names if name not in targets}
    targets |= extra
    with np.errstate(over="ignore"):
        for start, block in _chain(first, blocks):
            for name in element.names:
                targets[name][start : start + len(block)] = block[name]
    for name in NORMALS:
        if name in extra and not extra[name].view(f"u{extra[name].itemsize}").any():
            del extra[name]
    tensors = {name: torch.from_numpy(array) for name, array in parameters.items()}
    columns = {name: torch.from_numpy(array) for name, array in extra.items()}
    splats = Splats(antialiased=antialiased, extra=columns, origin=None, **tensors)
    if check:
        splats.check_finite()
    return splats


def _chain(
    first: tuple[int, NDArray[np.void]] | None, rest: Iterator[tuple[int, NDArray[np.void]]]
) -> Iterator[tuple[int, NDArray[np.void]]]:
    if first is not None:
        yield first
        yield from rest


def _targets(parameters: dict[str, NDArray[np.float32]], degree: int) -> dict[str, NDArray]:
    """Where each column goes: views into the parameter arrays, by property name."""
    sh = parameters["sh"]
    rest = (degree + 1) ** 2 - 1
    views: dict[str, NDArray] = {"opacity": parameters["logit_opacities"]}
    for names, target in (
        (CENTRE, parameters["means"]),
        (ROTATION, parameters["quats"]),
        (SCALE, parameters["log_scales"]),
        (CONSTANT, sh[:, 0]),
    ):
        views |= {name: target[:, i] for i, name in enumerate(names)}
    views |= {f"f_rest_{c * rest + k}": sh[:, k + 1, c] for c in range(3) for k in range(rest)}
    return views


def sh_degree_of(header: Header) -> int:
    """Degree of the colour harmonics; refuses, with the reason, what holds no splats."""
    path, names = header.path, set(header.element("vertex").names)
    if "packed_position" in names or any(e.name == "chunk" for e in header.elements):
        raise PlyError(
            f"{path}: this is a compressed PLY, whose values are packed.\n"
            "  Read it with load_splats, which unpacks them."
        )
    missing = [name for name in REQUIRED if name not in names]
    if missing == ["scale_2"]:
        raise _flat(path, "it has no scale_2")
    if missing:
        few = len(missing) <= len(REQUIRED) / 2
        what = f"splats without {', '.join(missing)}" if few else "a point cloud, not splats"
        raise PlyError(
            f"{path}: {what}.\n"
            f"  Columns: {', '.join(header.element('vertex').names)[:300]}.\n"
            "  Pass the trained model, for example point_cloud/iteration_30000/point_cloud.ply."
        )
    rest = sum(name.startswith("f_rest_") for name in names)
    degree = isqrt(rest // 3 + 1) - 1
    expected = {f"f_rest_{i}" for i in range(rest)}
    if rest != 3 * ((degree + 1) ** 2 - 1) or degree > MAX_SH_DEGREE or not expected <= names:
        legal = ", ".join(str(3 * ((d + 1) ** 2 - 1)) for d in range(MAX_SH_DEGREE + 1))
        raise PlyError(
            f"{path}: {rest} f_rest properties match no SH degree from 0 to {MAX_SH_DEGREE}.\n"
            f"  They must be f_rest_0, f_rest_1, ... and {legal} in number; export the file again."
        )
    return degree


def extra_columns_of(header: Header) -> tuple[str, ...]:
    """Columns without a meaning for rendering, in file order."""
    known = {*REQUIRED, *NORMALS}
    names = header.element("vertex").names
    return tuple(n for n in names if n not in known and not n.startswith("f_rest_"))


def antialiased_of(header: Header) -> bool:
    """Whether the comments of Brush and Postshot request antialiasing; the last one counts."""
    antialiased = False
    for comment in header.comments:
        words = comment.replace(":", " ").lower().split()
        if words[:1] == ["splatrendermode"] and len(words) == 2:
            if words[1] == "2dgs":
                raise _flat(header.path, "its comment says SplatRenderMode: 2dgs")
            if words[1] not in ("default", "mip"):
                raise PlyError(
                    f"{header.path}: unknown render mode in the comment {comment!r}.\n"
                    "  Supported are default and mip; edit the comment if one of them applies."
                )
            antialiased = words[1] == "mip"
        elif words in (["antialiased", "0"], ["antialiased", "1"]):
            antialiased = words[1] == "1"
    return antialiased


def _flat(path: Path, evidence: str) -> PlyError:
    return PlyError(
        f"{path}: these are 2D Gaussians ({evidence}), flat discs with their own renderer.\n"
        "  Rendering them as 3D Gaussians would give pictures that differ from the model's own.\n"
        "  Train a 3DGS model of the scene instead."
    )


def save_ply(splats: Splats, path: str | Path) -> None:
    """Write Inria's layout in little-endian float32, then extra columns in their own type.

    The file appears under its name only when it is complete.
    """
    path = Path(path)
    columns = _columns(splats)
    lines = ["ply", "format binary_little_endian 1.0"]
    if splats.antialiased:
        lines.append("comment SplatRenderMode: mip")
    lines.append(f"element vertex {len(splats)}")
    lines += [f"property {PLY_TYPES[column.dtype]} {name}" for name, column in columns]
    header = "\n".join([*lines, "end_header", ""])
    arrays = [(name, column.numpy()) for name, column in columns]
    dtype = np.dtype([(name, array.dtype.newbyteorder("<")) for name, array in arrays])
    with replacing(path) as aside, aside.open("wb") as file:
        file.write(header.encode("ascii"))
        for start in range(0, len(splats), BLOCK_ROWS):
            block = np.empty(min(BLOCK_ROWS, len(splats) - start), dtype)
            for name, array in arrays:
                block[name] = array[start : start + len(block)]
            file.write(block.tobytes())


def _columns(splats: Splats) -> list[tuple[str, Tensor]]:
    """All columns in the order of the file, on the processor, in types that PLY has."""

    def split(names: tuple[str, ...], values: Tensor) -> list[tuple[str, Tensor]]:
        table = values.detach().to("cpu", torch.float32).reshape(len(splats), len(names))
        return list(zip(names, table.unbind(1), strict=True))

    rest = tuple(f"f_rest_{i}" for i in range(3 * (splats.sh.shape[1] - 1)))
    zeros = torch.zeros(len(splats))
    columns = [
        *split(CENTRE, splats.means),
        *((name, _storable(name, splats.extra.get(name, zeros))) for name in NORMALS),
        *split(CONSTANT, splats.sh[:, 0]),
        *split(rest, splats.sh[:, 1:].transpose(1, 2).flatten(1)),
        *split(("opacity",), splats.logit_opacities),
        *split(SCALE, splats.log_scales),
        *split(ROTATION, splats.quats),
    ]
    taken = {name for name, _ in columns}
    for name, column in splats.extra.items():
        if name in NORMALS:
            continue
        if name in taken or name.split() != [name] or not (name.isascii() and name.isprintable()):
            raise PlyError(f"the extra column {name!r} must have a unique name without spaces")
        columns.append((name, _storable(name, column)))
    return columns


def _storable(name: str, column: Tensor) -> Tensor:
    column = column.detach().cpu()
    if column.ndim != 1:
        raise PlyError(f"the extra column {name!r} has shape {list(column.shape)}, expected [N]")
    if column.dtype in PLY_TYPES:
        return column
    if column.dtype == torch.bool:
        return column.to(torch.uint8)
    # PLY has no 16-bit floats and no 64-bit integers; store what loses nothing.
    if column.is_floating_point():
        return column.to(torch.float32)
    for kind in (torch.int32, torch.float64):
        if bool((column.to(kind).to(column.dtype) == column).all()):
            return column.to(kind)
    raise PlyError(f"the extra column {name!r} has values that no PLY type can hold exactly")
