# SPDX-License-Identifier: Apache-2.0
"""Sparse points of a reconstruction, and a safe reader of point clouds in PLY."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError
from splatcert.scene.cameras import FARTHEST

PLY_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
MAX_HEADER = 1 << 16


class PointsError(InputError):
    """A point cloud that cannot be used."""


@dataclass(frozen=True, eq=False)
class Tracks:
    """Which photos saw each point. Point k owns entries `offsets[k]:offsets[k + 1]`."""

    offsets: NDArray[np.int64]
    """[N + 1]."""
    image_ids: NDArray[np.uint32]
    """[M], keys of `names`."""
    observations: NDArray[np.uint32]
    """[M], index of the 2D point in that photo."""
    names: Mapping[int, str]
    """Photo names by id."""


@dataclass(frozen=True, eq=False)
class SparsePoints:
    """N reconstructed points in the scene's frame."""

    xyz: NDArray[np.float64]
    """[N, 3]."""
    rgb: NDArray[np.uint8]
    """[N, 3], sRGB."""
    error: NDArray[np.float64] | None = None
    """Mean reprojection error in pixels at the model's resolution, [N]."""
    ids: NDArray[np.uint64] | None = None
    """The file's own point ids, [N]."""
    tracks: Tracks | None = None

    def __len__(self) -> int:
        return len(self.xyz)

    def check_finite(self, where: Path) -> None:
        """Refuse points at no place, naming how many and the first."""
        bad = np.flatnonzero(~(np.abs(self.xyz) <= FARTHEST).all(axis=1))
        if len(bad):
            raise PointsError(
                f"{len(bad)} of {len(self)} sparse points are not finite or beyond {FARTHEST:g}, "
                f"first at index {bad[0]}.\n"
                f"  In {where}.\n"
                "  Remove them, or export the reconstruction again."
            )


def read_ply_points(path: Path) -> SparsePoints:
    """Positions and colours of a PLY point cloud, ASCII or binary, found by property name."""
    if not path.is_file():
        raise PointsError(
            f"no point cloud at {path}.\n  Restore it, or remove it from the dataset."
        )
    data = path.read_bytes()
    layout, count, columns, start = _header(data, path)
    table = _body(data[start:], layout, count, columns, path)
    for name in ("x", "y", "z"):
        if name not in table:
            raise PointsError(
                f"the point cloud {path} has no property {name!r}, only {', '.join(table)}.\n"
                "  Export it again with x, y, z."
            )
    xyz = np.column_stack([table[name] for name in ("x", "y", "z")]).astype(np.float64)
    points = SparsePoints(xyz=xyz, rgb=_colours(table, count))
    points.check_finite(path)
    return points


def _colours(table: Mapping[str, NDArray[np.generic]], count: int) -> NDArray[np.uint8]:
    """Colours as bytes; middle grey where the file has none."""
    if not all(name in table for name in ("red", "green", "blue")):
        return np.full((count, 3), 128, dtype=np.uint8)
    columns = np.column_stack([table[name] for name in ("red", "green", "blue")])
    values = np.nan_to_num(columns.astype(np.float64))
    if columns.dtype.kind == "f":
        values = np.rint(values * 255)
    return values.clip(0, 255).astype(np.uint8)


def _header(data: bytes, path: Path) -> tuple[str, int, list[tuple[str, str]], int]:
    """Layout, vertex count, vertex properties in order, and where the body starts."""
    mark = data.find(b"end_header", 0, MAX_HEADER)
    if not data.startswith(b"ply") or mark < 0:
        raise PointsError(
            f"{path} is no PLY file: it must begin with 'ply' and close its header "
            f"with 'end_header' within {MAX_HEADER} bytes.\n  Export the point cloud again."
        )
    layout, count, element, columns = "", -1, "", []
    for line in data[:mark].decode("ascii", errors="replace").splitlines():
        words = line.split()
        match words:
            case ["format", name, *_]:
                layout = name
            case ["element", name, number]:
                element = name if count < 0 or name == "vertex" else "after"
                if name == "vertex":
                    count = int(number) if number.isdigit() and len(number) < 14 else -1
                elif count < 0:
                    raise _unsupported(path, f"element {name!r} comes before 'vertex'")
            case ["property", "list", *_] if element == "vertex":
                raise _unsupported(path, "vertices hold lists")
            case ["property", kind, name] if element == "vertex":
                if kind not in PLY_TYPES:
                    raise _unsupported(path, f"property {name!r} has type {kind!r}")
                columns.append((name, PLY_TYPES[kind]))
            case _:
                pass
    if count < 0 or not columns:
        raise _unsupported(path, "it declares no vertices")
    return (
        layout,
        count,
        columns,
        data.index(b"\n", mark) + 1 if b"\n" in data[mark:] else len(data),
    )


def _unsupported(path: Path, why: str) -> PointsError:
    return PointsError(f"the point cloud {path} cannot be read: {why}.\n  Export it as plain PLY.")


def _body(
    body: bytes, layout: str, count: int, columns: list[tuple[str, str]], path: Path
) -> dict[str, NDArray[np.generic]]:
    """The vertex columns, after checking the declared count against the bytes present."""
    if len({name for name, _ in columns}) != len(columns):
        raise _unsupported(path, "a vertex property is declared twice")
    orders = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
    if layout not in orders:
        raise _unsupported(path, f"its format is {layout!r}")
    dtype = np.dtype([(name, orders[layout] + kind) for name, kind in columns])
    # Two bytes, a digit and a separator, are the least a value can take in text.
    needed = count * len(columns) * 2 - 1 if layout == "ascii" else count * dtype.itemsize
    if needed > len(body):
        raise PointsError(
            f"{path} declares {count} points, at least {needed} bytes, but holds {len(body)}.\n"
            "  The file is cut short or mislabelled: copy or export it again."
        )
    if layout != "ascii":
        rows = np.frombuffer(body, dtype=dtype, count=count)
        return {name: rows[name] for name, _ in columns}
    try:
        values = np.array(body.split()[: count * len(columns)], dtype=np.float64)
        grid = values.reshape(count, len(columns))
    except ValueError as error:
        raise PointsError(
            f"{path} declares {count} points of {len(columns)} numbers, which its text does not "
            f"hold ({error}).\n  Copy or export it again."
        ) from None
    return {
        name: grid[:, k].astype(kind if kind[0] == "f" else np.int64)
        for k, (name, kind) in enumerate(columns)
    }
