# SPDX-License-Identifier: Apache-2.0
"""Sparse points from a PLY file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatcert.scene.dataset import PointsError, SparsePoints
from splatcert.storage.lfs import refuse_pointer, start_of
from splatcert.storage.ply_table import read_columns, read_header


def read_ply_points(path: Path) -> SparsePoints:
    """Positions and colours of a PLY point cloud, ASCII or binary, found by property name."""
    if not path.is_file():
        raise PointsError(
            f"no point cloud at {path}.\n"
            "  Restore it, or remove 'ply_file_path' from the transforms file."
        )
    refuse_pointer(path, start_of(path), PointsError)
    header = read_header(path)
    vertex = header.element("vertex")
    if missing := [name for name in ("x", "y", "z") if name not in vertex.names]:
        raise PointsError(
            f"the point cloud {path} has no property {missing[0]!r}, only "
            f"{', '.join(vertex.names)[:300]}.\n  Export it again with x, y, z."
        )
    table = read_columns(header, vertex)
    xyz = np.column_stack([table[name] for name in ("x", "y", "z")]).astype(np.float64)
    points = SparsePoints(xyz=xyz, rgb=_colours(table, vertex.count))
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
