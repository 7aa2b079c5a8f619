# SPDX-License-Identifier: Apache-2.0
"""Pictures on things, all made from noise, stripes and shapes: [H, W, 3] uint8, sRGB."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


def noise(height: int, width: int, cell: int, seed: int, octaves: int = 4) -> NDArray[np.float64]:
    """Smooth value noise in [0, 1] that wraps around, `cell` pixels coarse at first."""
    random = np.random.default_rng(seed)
    total, amplitude = np.zeros((height, width)), 1.0
    for octave in range(octaves):
        rows = max(2, height * 2**octave // cell)
        columns = max(2, width * 2**octave // cell)
        grid = np.pad(random.random((rows, columns)), 2, mode="wrap")
        scaled = cv2.resize(
            grid,
            (width * (columns + 4) // columns, height * (rows + 4) // rows),
            interpolation=cv2.INTER_CUBIC,
        )
        top, left = 2 * height // rows, 2 * width // columns
        total += amplitude * scaled[top : top + height, left : left + width]
        amplitude /= 2
    return (total - total.min()) / np.ptp(total)


def ramp(values: NDArray[np.floating], *colours: tuple[int, int, int]) -> Pixels:
    """Colours for values in [0, 1], evenly spaced stops."""
    stops = np.linspace(0, 1, len(colours))
    channels = [np.interp(values, stops, [c[k] for c in colours]) for k in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def wood(size: int = 1024) -> Pixels:
    """Planks with grain and dark joints."""
    y = np.mgrid[0:size, 0:size][0] / size
    plank = np.floor(y * 7)
    shift = np.random.default_rng(1).random(8)[plank.astype(int)]
    knots = cv2.resize(noise(size, size // 4, 160, 2), (size, size))
    rings = 4 * (y * 7 - plank) * (0.5 + shift) + 7 * knots + 9 * shift
    grain = 0.5 + 0.5 * np.sin(2 * np.pi * rings)
    fibre = cv2.blur(np.random.default_rng(4).random((size, size)), (61, 1))
    fibre = (fibre - fibre.min()) / np.ptp(fibre)
    tone = np.clip(0.45 * grain + 0.35 * fibre + 0.35 * shift - 0.05, 0, 1)
    colours = ramp(tone, (78, 44, 24), (140, 88, 50), (192, 136, 84))
    joint = np.abs(y * 7 - np.round(y * 7)) < 0.02
    return np.where(joint[..., None], colours // 3, colours).astype(np.uint8)


def plaid(size: int = 512) -> Pixels:
    """A woven cloth: crossing bands and visible threads."""
    y, x = np.mgrid[0:size, 0:size] / size

    def bands(t: NDArray[np.floating]) -> NDArray[np.floating]:
        return ((t * 4) % 1 < 0.45) * 0.55 + ((t * 4 + 0.3) % 1 < 0.08) * 0.45

    across, along = bands(x)[..., None], bands(y)[..., None]
    red, navy, cream = np.array([168, 44, 44]), np.array([36, 50, 92]), np.array([226, 214, 190])
    cloth = cream * (1 - 0.8 * across) + red * 0.8 * across
    cloth = cloth * (1 - 0.7 * along) + navy * 0.7 * along
    threads = 0.88 + 0.12 * np.sin(x * size * 1.1) * np.sin(y * size * 1.1)
    return np.clip(cloth * threads[..., None], 0, 255).astype(np.uint8)


def tiles(size: int = 2048, count: int = 18) -> Pixels:
    """Floor tiles, each stained in its own way, with grout and a painted star."""
    y, x = np.mgrid[0:size, 0:size] / size * count
    column, row = np.floor(x).astype(int), np.floor(y).astype(int)
    own = np.random.default_rng(5).random((count, count))[row, column]
    stain = noise(size, size, 128, 6)
    dark = (column + row) % 2 == 0
    tone = np.clip(0.5 * own + 0.5 * stain, 0, 1)
    light = ramp(tone, (150, 132, 110), (206, 194, 172))
    deep = ramp(tone, (64, 74, 82), (112, 124, 128))
    floor = np.where(dark[..., None], deep, light)
    u, v = np.abs(x - column - 0.5), np.abs(y - row - 0.5)
    star = (np.sqrt(u) + np.sqrt(v) < 0.55) & ~dark
    floor = np.where(star[..., None], np.array([150, 74, 48]), floor)
    grout = np.maximum(u, v) > 0.475
    return np.where(grout[..., None], np.array([92, 88, 82]), floor).astype(np.uint8)


def wall(height: int = 900, width: int = 6400) -> Pixels:
    """Wallpaper above panelling, with framed pictures all around."""
    y, x = np.mgrid[0:height, 0:width]
    paper = ramp(noise(height, width, 200, 7), (86, 118, 112), (122, 150, 138))
    # Rows of leaves, every other row shifted by half a step.
    row = y // 50
    u, v = ((x + 25 * (row % 2)) % 50 - 25) / 25, (y % 50 - 25) / 25
    leaf = (np.abs(u) < 0.30 * (1 - v**2)) & (np.abs(u) > 0.03)
    paper = np.where(leaf[..., None], np.array([196, 190, 150]), paper).astype(np.uint8)
    panel = ramp(noise(height, width, 60, 8), (128, 92, 62), (176, 134, 92))
    groove = (x % 80 < 4) | (np.abs(y - 725) < 9)
    panel = np.where(groove[..., None], panel // 2, panel)
    picture = np.where((y > 720)[..., None], panel, paper).astype(np.uint8)
    random = np.random.default_rng(9)
    for k in range(16):
        centre = int((k + 0.5) * width / 16 + random.integers(-40, 40))
        _hang(picture, centre, 530 + int(random.integers(-40, 40)), k, random)
    return picture


def _hang(wall: Pixels, x: int, y: int, kind: int, random: np.random.Generator) -> None:
    """One framed picture on the wall, in place."""
    half_width, half_height = (int(n) for n in random.integers(75, 125, 2))
    frame = tuple(int(c) for c in random.integers(20, 90, 3))
    corner, opposite = (x - half_width, y - half_height), (x + half_width, y + half_height)
    cv2.rectangle(wall, corner, opposite, frame, -1)
    inner = wall[
        y - half_height + 12 : y + half_height - 12, x - half_width + 12 : x + half_width - 12
    ]
    rows, columns = inner.shape[:2]
    v, u = np.mgrid[0:rows, 0:columns] / max(rows, columns)
    colours = [tuple(int(c) for c in random.integers(30, 240, 3)) for _ in range(4)]
    value = (
        noise(rows, columns, 60, 40 + kind),
        0.5 + 0.5 * np.sin(40 * np.hypot(u - 0.4, v - 0.3)),
        (np.floor(u * 8) + np.floor(v * 8)) % 4 / 3,
        0.5 + 0.5 * np.sin(30 * (u + 0.3 * np.sin(9 * v))),
    )[kind % 4]
    inner[:] = ramp(value, *colours)


def cover(title: str, base: tuple[int, int, int], seed: int, size: int = 384) -> Pixels:
    """A book cover with a border, an ornament and a title."""
    cloth = noise(size, size, 12, seed)[..., None] * 36 - 18
    book = np.clip(np.array(base) + cloth, 0, 255).astype(np.uint8)
    gold = (214, 178, 96)
    cv2.rectangle(book, (20, 20), (size - 20, size - 20), gold, 5)
    cv2.circle(book, (size // 2, int(size * 0.62)), size // 7, gold, 6, cv2.LINE_AA)
    cv2.circle(book, (size // 2, int(size * 0.62)), size // 14, gold, -1, cv2.LINE_AA)
    for line, word in enumerate(title.split()):
        place = (36, 100 + 62 * line)
        cv2.putText(book, word, place, cv2.FONT_HERSHEY_DUPLEX, 1.7, gold, 4, cv2.LINE_AA)
    return book


def pages(size: int = 256) -> Pixels:
    """The cut edges of paper."""
    lines = cv2.blur(np.random.default_rng(11).random((size, size)), (91, 1))
    return ramp((lines - lines.min()) / np.ptp(lines), (172, 160, 132), (240, 234, 216))


def glaze(size: int = 512) -> Pixels:
    """A vase's painted bands: waves, dots and a crackled ground."""
    y, x = np.mgrid[0:size, 0:size] / size
    ground = ramp(noise(size, size, 96, 12), (214, 220, 222), (246, 244, 236))
    wave = np.abs(y - 0.35 - 0.05 * np.sin(2 * np.pi * 8 * x)) < 0.022
    wave |= np.abs(y - 0.48 - 0.05 * np.sin(2 * np.pi * 8 * x + np.pi)) < 0.022
    dots = np.hypot((x * 16) % 1 - 0.5, ((y - 0.62) * 16) - 0.5) < 0.34
    band = (np.abs(y - 0.8) < 0.05) | (np.abs(y - 0.15) < 0.03)
    blue = np.array([30, 62, 148])
    painted = np.where((wave | dots | band)[..., None], blue, ground)
    return painted.astype(np.uint8)


def leaf(size: int = 256, seed: int = 0) -> Pixels:
    """A leaf's veins; u runs across it, v along."""
    v, u = np.mgrid[0:size, 0:size] / size
    side = np.abs(u - 0.5)
    tone = 0.55 * noise(size, size, 48, 60 + seed) + 0.9 * side
    colours = ramp(np.clip(tone, 0, 1), (44, 104, 40), (96, 150, 60), (140, 176, 84))
    vein = (side < 0.02) | (((v * 9 - side * 6) % 1) < 0.10)
    return np.where(vein[..., None], np.array([172, 196, 120]), colours).astype(np.uint8)


def peel(base: tuple[int, int, int], blush: tuple[int, int, int], seed: int) -> Pixels:
    """A fruit's skin: blotches and pores."""
    size = 256
    skin = ramp(noise(size, size, 128, seed, 3), base, blush).astype(int)
    pores = noise(size, size, 6, seed + 1, 1)[..., None] > 0.72
    return np.where(pores, skin * 4 // 5, skin).astype(np.uint8)


def checks(count: int = 8, size: int = 512) -> Pixels:
    """A chess board of two woods with a border."""
    y, x = np.mgrid[0:size, 0:size] / size
    u, v = (x - 0.06) / 0.88 * count, (y - 0.06) / 0.88 * count
    grain = noise(size, size, 24, 14)
    dark = ramp(grain, (46, 28, 20), (84, 52, 34))
    light = ramp(grain, (206, 176, 128), (236, 212, 168))
    board = np.where(((np.floor(u) + np.floor(v)) % 2 == 0)[..., None], light, dark)
    border = (np.minimum(u, v) < 0) | (np.maximum(u, v) > count)
    return np.where(border[..., None], ramp(grain, (110, 40, 24), (140, 60, 36)), board).astype(
        np.uint8
    )


def stripes(*colours: tuple[int, int, int], turns: int = 7) -> Pixels:
    """Slanted stripes, as on a paper straw."""
    size = 128
    y, x = np.mgrid[0:size, 0:size] / size
    return np.array(colours, dtype=np.uint8)[
        np.floor((y * turns + x) * 2).astype(int) % len(colours)
    ]


def pips(base: tuple[int, int, int]) -> Pixels:
    """The five of a die."""
    face = np.full((128, 128, 3), base, dtype=np.uint8)
    for place in ((32, 32), (32, 96), (64, 64), (96, 32), (96, 96)):
        cv2.circle(face, place, 12, (250, 246, 236), -1, cv2.LINE_AA)
    return face


def sky(height: int = 64, width: int = 128) -> NDArray[np.float32]:
    """Radiance from above the wall, warm low and bluish high; nothing where the wall is."""
    v = (np.arange(height)[:, None, None] + 0.5) / height
    up = np.clip(1 - 2 * v, 0, 1)
    light = (1 - up) * np.array([1.0, 0.80, 0.58]) + up * np.array([0.55, 0.74, 1.05])
    open_above = np.clip((0.38 - v) / 0.04, 0, 1)
    return np.broadcast_to(0.7 * light * open_above, (height, width, 3)).astype(np.float32)
