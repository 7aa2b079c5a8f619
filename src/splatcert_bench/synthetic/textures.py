# SPDX-License-Identifier: Apache-2.0
"""Colours of the courtyard's surfaces, as functions of points in space."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Texture = Callable[[Array], Array]
"""Colours [n, 3] of points [n, 3]."""


def rgb(text: str) -> Array:
    """A colour from six hexadecimal digits, [3]."""
    return np.array([int(text[i : i + 2], 16) / 255 for i in (0, 2, 4)])


def noise(points: Array, frequency: float, salt: int) -> Array:
    """Smooth noise in about [-1, 1]: plane waves over three octaves, [n]."""
    waves = np.random.Generator(np.random.PCG64(salt))
    total = np.zeros(len(points))
    for octave in range(3):
        direction = waves.standard_normal((6, 3)) * frequency * 2.0**octave
        phase = waves.random(6) * 2 * np.pi
        total += np.sin(points @ direction.T + phase).sum(axis=1) / (3.5 * 1.6**octave)
    return np.clip(total / 1.4, -1.0, 1.0)


def mix(a: Array, b: Array, amount: Array) -> Array:
    """Colours between `a` and `b`, where `amount` runs from 0 to 1, [n, 3]."""
    amount = np.clip(amount, 0.0, 1.0)[:, None]
    return (1 - amount) * a + amount * b


def paving(p: Array) -> Array:
    """Two warm stones in a checkerboard with dark joints, grass outside."""
    cell = np.floor(p[:, :2] / 0.8)
    joint = np.abs((p[:, :2] / 0.8) % 1.0 - 0.5).max(axis=1) > 0.465
    tone = np.sin(cell[:, 0] * 12.9898 + cell[:, 1] * 78.233) * 0.5 + 0.5
    checker = (cell.sum(axis=1) % 2.0) * 0.55 + 0.25 * tone + 0.1 * noise(p, 5.0, 1)
    stone = mix(rgb("d8c3a0"), rgb("9c7f66"), checker)
    stone[joint] *= 0.45
    grass = mix(rgb("5f8a3c"), rgb("a3b552"), 0.5 + 0.5 * noise(p, 3.0, 2))
    edge = np.linalg.norm(p[:, :2], axis=1) + 0.25 * noise(p, 1.2, 3)
    return mix(stone, grass, (edge - 4.6) * 6)


def wood(p: Array) -> Array:
    """Planks with grain."""
    plank = np.abs((p[:, 2] / 0.4) % 1.0 - 0.5) > 0.46
    grain = noise(p * np.array([1.5, 1.5, 14.0]), 1.6, 4)
    colour = mix(rgb("b8763f"), rgb("7a4724"), 0.5 + 0.5 * grain)
    colour[plank] *= 0.45
    return colour


def brick(p: Array) -> Array:
    """Courses of brick, each shifted by half a brick, with pale mortar."""
    row = np.floor(p[:, 2] / 0.28)
    along = (p[:, 0] + p[:, 1]) / 0.66 + 0.5 * (row % 2)
    mortar = (np.abs((p[:, 2] / 0.28) % 1 - 0.5) > 0.42) | (np.abs(along % 1 - 0.5) > 0.46)
    tone = 0.5 + 0.5 * np.sin(np.floor(along) * 17.1 + row * 5.3)
    colour = mix(rgb("b4553a"), rgb("8d3b2c"), tone + 0.3 * noise(p, 6.0, 5))
    colour[mortar] = rgb("cfc4b4")
    return colour


def stripes(first: str, second: str, centre: Array, period: float) -> Texture:
    """Slanted stripes in two colours around `centre`."""

    def paint(p: Array) -> Array:
        local = p - centre
        angle = np.arctan2(local[:, 1] + 0.3 * local[:, 2], local[:, 0])
        on = np.sin(angle * period) > 0
        return np.where(on[:, None], rgb(first), rgb(second))

    return paint


def marbled(first: str, second: str, salt: int) -> Texture:
    """Two colours mixed by smooth noise."""

    def paint(p: Array) -> Array:
        return mix(rgb(first), rgb(second), 0.5 + 0.6 * noise(p, 3.5, salt))

    return paint


def backdrop(p: Array) -> Array:
    """Evening sky with clouds over two lines of hills."""
    direction = p / np.linalg.norm(p, axis=1, keepdims=True)
    height = direction[:, 2]
    sky = mix(rgb("f8d6ae"), rgb("6fa4d4"), height * 2.4)
    cloud = noise(direction * np.array([1.0, 1.0, 2.6]), 2.6, 6) - 0.1
    sky = mix(sky, rgb("fff4e6"), cloud * 2.2 * np.clip(height * 6, 0, 1))
    flat = direction * np.array([1.0, 1.0, 0.0])
    far = 0.16 + 0.05 * noise(flat, 2.5, 7)
    near = 0.08 + 0.035 * noise(flat, 5.0, 8)
    sky = np.where((height < far)[:, None], rgb("8fa3b5"), sky)
    trees = mix(rgb("4c6b45"), rgb("7b8f52"), 0.5 + 0.5 * noise(direction, 16.0, 9))
    return np.where((height < near)[:, None], trees, sky)
