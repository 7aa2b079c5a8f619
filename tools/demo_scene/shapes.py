# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of things that are turned, bent or drawn as wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Mesh:
    """Vertices [V, 3], texture coordinates [V, 2] and triangles [F, 3]."""

    vertices: NDArray[np.float64]
    uv: NDArray[np.float64]
    faces: NDArray[np.int64]

    def turned(self, degrees: float) -> Mesh:
        """Turned about the z axis."""
        angle = np.radians(degrees)
        turn = np.array(
            [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
        )
        return Mesh(self.vertices @ turn.T, self.uv, self.faces)

    def moved(self, *offset: float) -> Mesh:
        """Shifted by x, y, z."""
        return Mesh(self.vertices + np.array(offset), self.uv, self.faces)


def joined(meshes: Sequence[Mesh]) -> Mesh:
    """Several meshes as one."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        np.concatenate([mesh.uv for mesh in meshes]),
        np.concatenate([mesh.faces + at for mesh, at in zip(meshes, starts, strict=False)]),
    )


def sheet(surface: Callable[..., Sequence[NDArray]], rows: int, columns: int) -> Mesh:
    """The surface (u, v) -> x, y, z over the unit square."""
    v, u = np.meshgrid(np.linspace(0, 1, rows), np.linspace(0, 1, columns), indexing="ij")
    points = np.stack(np.broadcast_arrays(*surface(u, v)), axis=-1).reshape(-1, 3)
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    quads = np.stack([corner, corner + 1, corner + columns + 1, corner + columns], axis=1)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return Mesh(points, np.stack([u, v], axis=-1).reshape(-1, 2), faces)


def disc(radius: float, rings: int = 2, around: int = 144) -> Mesh:
    """A level disc, its texture laid over it flat."""
    flat = lathe([(0.0, 0.0), (radius, 0.0)], around, smooth=rings)
    return Mesh(flat.vertices, 0.5 + flat.vertices[:, :2] / (2 * radius), flat.faces)


def lathe(profile: ArrayLike, around: int = 72, smooth: int = 8) -> Mesh:
    """A profile of (radius, height) points turned about the z axis."""
    outline = np.asarray(profile, dtype=float)
    outline[:, 0] = np.maximum(outline[:, 0], 1e-4)  # a pole of no size has no normal
    along = np.linspace(0, len(outline) - 1, smooth * (len(outline) - 1) + 1)
    if smooth > 1:
        from scipy.interpolate import PchipInterpolator

        outline = PchipInterpolator(np.arange(len(outline)), outline)(along)

    def surface(u: NDArray, v: NDArray) -> Sequence[NDArray]:
        row = np.round(v * (len(outline) - 1)).astype(int)
        radius, angle = outline[row, 0], 2 * np.pi * u
        return radius * np.cos(angle), radius * np.sin(angle), outline[row, 1]

    return sheet(surface, len(outline), around + 1)


def wire(points: ArrayLike, radius: float, sides: int = 8) -> Mesh:
    """A tube along a polyline."""
    line = np.asarray(points, dtype=float)
    along = np.gradient(line, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    across = np.cross(along, [0.31, 0.27, 0.91])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    other = np.cross(along, across)

    def surface(u: NDArray, v: NDArray) -> Sequence[NDArray]:
        row, angle = np.round(v * (len(line) - 1)).astype(int), 2 * np.pi * u
        off = np.cos(angle)[..., None] * across[row] + np.sin(angle)[..., None] * other[row]
        return np.moveaxis(line[row] + radius * off, -1, 0)  # type: ignore[return-value]

    return sheet(surface, len(line), sides + 1)


def circle(radius: float, height: float, steps: int = 73) -> NDArray[np.float64]:
    """Points of a level circle about the z axis, closed."""
    angle = np.linspace(0, 2 * np.pi, steps)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), 0 * angle + height], axis=1)


def leaf(
    root: ArrayLike, direction: float, length: float, width: float, rise: float, droop: float
) -> Mesh:
    """A leaf that rises from `root` towards `direction` (radians), then droops."""
    x, y, z = np.asarray(root, dtype=float)

    def surface(u: NDArray, v: NDArray) -> Sequence[NDArray]:
        out = length * v * (1 - 0.25 * v)
        side = width * (u - 0.5) * np.sin(np.pi * np.clip(v, 0.02, 0.995) ** 0.8)
        height = rise * v - droop * v**2.2 + 0.35 * np.abs(side)
        return (
            x + out * np.cos(direction) - side * np.sin(direction),
            y + out * np.sin(direction) + side * np.cos(direction),
            z + height,
        )

    return sheet(surface, 18, 7)
