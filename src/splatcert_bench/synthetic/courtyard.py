# SPDX-License-Identifier: Apache-2.0
"""The synthetic courtyard: its surfaces, its shadows and the objects in it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from splatcert_bench.synthetic.textures import (
    Texture,
    backdrop,
    brick,
    marbled,
    noise,
    paving,
    rgb,
    stripes,
    wood,
)

Array = NDArray[np.float64]
SUN = np.array([-0.48, -0.62, 0.62]) / np.linalg.norm([-0.48, -0.62, 0.62])
SUNLIGHT = np.array([1.05, 0.93, 0.74])
SKYLIGHT = np.array([0.36, 0.42, 0.52])
DOME_RADIUS = 11.0
GROUND_SHARE, DOME_SHARE = (
    1.7,
    0.6,
)  # of Gaussians; all objects together have about 0.53
FLAT = (1.0, 0.85, 0.1)
ROD = (0.45, 0.45, 1.5)


@dataclass(frozen=True)
class Surface:
    """Points on surfaces, one row each, before they become Gaussians."""

    points: Array
    """[n, 3]."""
    normals: Array
    """[n, 3]."""
    colour: Array
    """Albedo if sun and sky light it, otherwise the emitted light, [n, 3]."""
    spacing: Array
    """Distance between neighbours, [n]."""
    axis: Array
    """Direction of the local z axis, [n, 3]."""
    stretch: Array
    """Size along the local axes, relative to the spacing, [n, 3]."""
    gloss: Array
    """Strength of the sun's reflection, [n]."""
    lit: NDArray[np.bool_]
    """Whether sun and sky light it, [n]."""


def _surface(
    points: Array,
    normals: Array,
    colour: Array,
    spacing: Array | float,
    *,
    axis: Array | None = None,
    stretch: tuple[float, float, float] = FLAT,
    gloss: float = 0.0,
    lit: bool = True,
) -> Surface:
    """Rows of one surface from the values that its points share."""
    n = len(points)
    return Surface(
        points=points,
        normals=np.broadcast_to(normals, (n, 3)),
        colour=colour,
        spacing=np.broadcast_to(spacing, n),
        axis=np.broadcast_to(normals if axis is None else axis, (n, 3)),
        stretch=np.broadcast_to(stretch, (n, 3)),
        gloss=np.full(n, gloss),
        lit=np.full(n, lit),
    )


def _grid(count: int, rng: np.random.Generator) -> Array:
    """Evenly spread points of the unit square, [count, 2].

    An additive recurrence by powers of the plastic number leaves no gaps, unlike
    independent draws, so fewer Gaussians close a surface.
    """
    plastic = 1.32471795724474602596
    steps = np.array([1 / plastic, 1 / plastic**2])
    return (rng.random(2) + np.arange(1, count + 1)[:, None] * steps) % 1.0


def _ground(count: int, rng: np.random.Generator) -> Surface:
    """A disc, denser towards the middle, as in real captures."""
    uv = _grid(count, rng)
    power = 0.64
    radius = DOME_RADIUS * uv[:, 0] ** power
    angle = 2 * np.pi * uv[:, 1]
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0 * radius], axis=1)
    area = 2 * np.pi * DOME_RADIUS * radius * power * uv[:, 0] ** (power - 1)
    up = np.array([0.0, 0.0, 1.0])
    return _surface(points, up, paving(points), np.sqrt(area / count))


def _dome(count: int, rng: np.random.Generator) -> Surface:
    uv = _grid(count, rng)
    height, angle = uv[:, 0], 2 * np.pi * uv[:, 1]
    ring = np.sqrt(1 - height**2)
    direction = np.stack([ring * np.cos(angle), ring * np.sin(angle), height], axis=1)
    points = DOME_RADIUS * direction
    spacing = DOME_RADIUS * np.sqrt(2 * np.pi / count)
    colour, flat = backdrop(points), (1.3, 1.1, 0.1)
    return _surface(points, -direction, colour, spacing, stretch=flat, lit=False)


@dataclass(frozen=True)
class _Sphere:
    centre: Array
    radius: float
    texture: Texture
    gloss: float = 0.0

    def sample(self, count: int, rng: np.random.Generator) -> Surface:
        uv = _grid(count, rng)
        z, angle = 2 * uv[:, 0] - 1, 2 * np.pi * uv[:, 1]
        ring = np.sqrt(1 - z**2)
        normals = np.stack([ring * np.cos(angle), ring * np.sin(angle), z], axis=1)
        points = self.centre + self.radius * normals
        spacing = self.radius * np.sqrt(4 * np.pi / count)
        return _surface(points, normals, self.texture(points), spacing, gloss=self.gloss)

    def shades(self, origins: Array) -> NDArray[np.bool_]:
        """Whether the ray from each point to the sun hits this object."""
        local = self.centre - origins
        along = local @ SUN
        return (along > 1e-3) & ((local**2).sum(axis=1) - along**2 < self.radius**2)


@dataclass(frozen=True)
class _Box:
    centre: Array
    half: Array
    texture: Texture

    def sample(self, count: int, rng: np.random.Generator) -> Surface:
        areas = np.array([self.half[1] * self.half[2], self.half[0] * self.half[2]])
        areas = np.append(areas, self.half[0] * self.half[1])
        # Faces take turns in runs: any run of the sequence is evenly spread by itself.
        steps = (np.arange(count) + 0.5) / count
        side = np.searchsorted(np.cumsum(np.tile(areas, 2)), 2 * areas.sum() * steps)
        face, sign = side % 3, np.where(side < 3, 1.0, -1.0)
        uv = 2 * _grid(count, rng) - 1
        rows = np.arange(count)
        local, normals = np.zeros((count, 3)), np.zeros((count, 3))
        local[rows, face] = normals[rows, face] = sign
        local[rows, (face + 1) % 3] = uv[:, 0]
        local[rows, (face + 2) % 3] = uv[:, 1]
        points = self.centre + local * self.half
        spacing = np.sqrt(8 * areas.sum() / count)
        return _surface(points, normals, self.texture(points), spacing)

    def shades(self, origins: Array) -> NDArray[np.bool_]:
        """Whether the ray from each point to the sun hits this object."""
        near = (self.centre - np.sign(SUN) * self.half - origins) / SUN
        far = (self.centre + np.sign(SUN) * self.half - origins) / SUN
        return (far.min(axis=1) > 1e-3) & (near.max(axis=1) < far.min(axis=1) - 1e-6)


@dataclass(frozen=True)
class _Rod:
    """A straight thin cylinder: posts, wires, twigs."""

    start: Array
    end: Array
    radius: float
    colour: str

    def sample(self, count: int, rng: np.random.Generator) -> Surface:
        uv = _grid(count, rng)
        length = float(np.linalg.norm(self.end - self.start))
        axis = (self.end - self.start) / length
        side = np.cross(axis, [0.31, 0.95, 0.05])
        side /= np.linalg.norm(side)
        angle = 2 * np.pi * uv[:, 1:]
        normals = np.cos(angle) * side + np.sin(angle) * np.cross(axis, side)
        points = self.start + uv[:, :1] * (self.end - self.start) + self.radius * normals
        spacing = np.sqrt(2 * np.pi * self.radius * length / count)
        colour = rgb(self.colour) * (1 + 0.15 * noise(points, 9.0, 10))[:, None]
        return _surface(points, normals, colour, spacing, axis=axis, stretch=ROD)

    def shades(self, origins: Array) -> NDArray[np.bool_]:
        """Whether the ray from each point to the sun hits this object."""
        span = self.end - self.start
        across = np.cross(SUN, span)
        local = self.start - origins
        # The nearest points of two lines, by triple products with their common normal.
        gap = np.abs(local @ across) / np.linalg.norm(across)
        along_sun = local @ np.cross(span, across) / (across @ across)
        along_rod = local @ np.cross(SUN, across) / (across @ across)
        inside = (along_rod > 0) & (along_rod < 1) & (along_sun > 0.05)
        return inside & (gap < self.radius)


Solid = _Sphere | _Box | _Rod


def _bodies() -> list[tuple[Solid, float]]:
    """The objects in the courtyard, each with its share of the Gaussians."""

    def at(*xyz: float) -> Array:
        return np.array(xyz)

    ball, drum = at(1.15, -0.75, 0.55), at(-1.55, -0.9, 0.42)
    bodies: list[tuple[Solid, float]] = [
        (_Sphere(ball, 0.55, stripes("e9e2d0", "d3473d", ball, 4), 0.5), 0.06),
        (_Sphere(drum, 0.42, marbled("1f7a78", "7fd1c0", 11), 0.9), 0.045),
        (_Sphere(at(0.25, 0.05, 1.55), 0.34, marbled("e2a72e", "f3d46b", 12), 0.7), 0.035),
        (_Sphere(at(0.1, -1.7, 0.22), 0.22, marbled("6b4fa0", "c3a6e0", 13), 0.6), 0.02),
        (_Box(at(0.2, 0.05, 0.6), at(0.62, 0.62, 0.6), wood), 0.09),
        (_Box(at(-1.35, 0.75, 0.35), at(0.45, 0.5, 0.35), wood), 0.05),
        (_Box(at(1.9, 1.6, 0.9), at(0.9, 0.16, 0.9), brick), 0.08),
        (_Box(at(-2.6, 2.0, 0.55), at(0.14, 1.3, 0.55), brick), 0.06),
    ]
    posts = [at(2.7, -1.6, 0), at(2.5, 2.5, 0), at(-2.7, 2.9, 0), at(-2.9, -1.7, 0)]
    top = at(0, 0, 2.5)
    for post, following in zip(posts, posts[1:] + posts[:1], strict=True):
        bodies.append((_Rod(post, post + top, 0.045, "d9d4c8"), 0.008))
        sag = [
            post + top + s * (following - post) - at(0, 0, 2.0 * s * (1 - s))
            for s in np.linspace(0, 1, 9)
        ]
        for k, (a, b) in enumerate(pairwise(sag)):
            bodies.append((_Rod(a, b, 0.008, "4a4038"), 0.0006))
            lamp = ("f2c14e", "e4572e", "76b041", "17bebb")[k % 4]
            if k:
                bodies.append(
                    (_Sphere(a - at(0, 0, 0.07), 0.06, marbled(lamp, "ffffff", 14)), 8e-4)
                )
    reeds = np.random.Generator(np.random.PCG64(21))
    for _ in range(26):
        foot = np.append(at(-0.45, 1.75) + 0.5 * (reeds.random(2) - 0.5), 0.0)
        lean = np.append(0.5 * (reeds.random(2) - 0.5), 0.8 + 0.6 * reeds.random())
        bodies.append((_Rod(foot, foot + lean, 0.012, "7c9a3e"), 0.0008))
    return bodies


def courtyard(count: int, rng: np.random.Generator) -> Surface:
    """`count` points, divided among the surfaces by their shares."""
    makers = [(_ground, GROUND_SHARE), (_dome, DOME_SHARE)]
    makers += [(body.sample, share) for body, share in _bodies()]
    ends = np.cumsum([share for _, share in makers])
    ends = np.round(count * ends / ends[-1]).astype(int)
    sizes = np.diff(ends, prepend=0)
    parts = [make(int(n), rng) for (make, _), n in zip(makers, sizes, strict=True) if n]
    if not parts:
        parts = [_ground(0, rng)]
    columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(Surface)}
    return Surface(**{name: np.concatenate(column) for name, column in columns.items()})


def shine(surface: Surface) -> Array:
    """Diffuse colour under sun and sky with cast shadows, [n, 3]."""
    facing = np.clip(surface.normals @ SUN, 0, None)
    open_to_sun = ((facing > 0) & surface.lit).nonzero()[0]
    lifted = surface.points[open_to_sun] + 2e-3 * surface.normals[open_to_sun]
    for body, _ in _bodies():
        facing[open_to_sun[body.shades(lifted)]] = 0.0
    sky = 0.65 + 0.35 * surface.normals[:, 2]
    light = facing[:, None] * SUNLIGHT + sky[:, None] * SKYLIGHT
    return np.where(surface.lit[:, None], surface.colour * light, surface.colour)
