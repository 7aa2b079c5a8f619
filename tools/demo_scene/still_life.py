# SPDX-License-Identifier: Apache-2.0
"""The scene: a table with things that are easy and hard to reconstruct, in a round room.

One unit is about a metre; z is up and the table's top is at 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mitsuba as mi
import numpy as np
import shapes
import textures
from obstacles import case, fence
from plans import Plan
from shapes import Mesh

mi.set_variant("scalar_rgb")
T = mi.ScalarTransform4f
Thing = dict[str, Any]

FLOOR, ROOM, WALL = -0.85, 4.2, 3.4
MIRRORING = ("ball", "brass", "copper", "glass")
"""Things whose look is elsewhere: structure from motion finds no points on them."""


def still_life(folder: Path, plan: Plan) -> mi.Scene:
    """The scene of a plan; meshes pass through `folder`."""

    def mesh(name: str, shape: Mesh, bsdf: Thing) -> Thing:
        path = folder / f"{name}.ply"
        write_ply(path, shape)
        return {"type": "ply", "filename": str(path), "bsdf": bsdf}

    things = room() | table(mesh)
    for group in plan.things:
        things |= GROUPS[group](mesh)
    return mi.load_dict(
        {"type": "scene", "integrator": {"type": "path", "max_depth": 12, "rr_depth": 4}, **things}
    )


def room() -> Thing:
    """Floor, wall, a lamp and the sky that comes in above the wall."""
    lamp = T().look_at(origin=[1.1, -1.5, 2.7], target=[0, 0, 0], up=[0, 0, 1]).scale(0.75)
    return {
        "floor": {
            "type": "rectangle",
            "to_world": T().translate([0, 0, FLOOR]).scale(ROOM + 0.1),
            "bsdf": painted(picture(textures.tiles()), 0.35),
        },
        "wall": {
            "type": "cylinder",
            "p0": [0, 0, FLOOR],
            "p1": [0, 0, FLOOR + WALL],
            "radius": ROOM,
            "flip_normals": True,
            "bsdf": painted(picture(textures.wall()[::-1]), 0.7),
        },
        "lamp": {
            "type": "rectangle",
            "to_world": lamp,
            "emitter": {"type": "area", "radiance": rgb(17.0, 15.6, 13.2)},
        },
        "sky": {
            "type": "envmap",
            "bitmap": mi.Bitmap(textures.sky()),
            "to_world": T().rotate([1, 0, 0], 90),
        },
    }


def table(mesh: Any) -> Thing:
    """A round table on one leg, and a cloth with folds across it."""
    outline = [(1.02, 0.0), (1.05, -0.012), (1.05, -0.045), (1.0, -0.06), (0.05, -0.06)]
    leg = [(0.07, -0.06), (0.05, -0.3), (0.09, -0.5), (0.06, -0.7), (0.3, FLOOR)]

    def cloth(u: Any, v: Any) -> Any:
        x, y = 1.75 * (u - 0.5), 0.62 * (v - 0.5)
        fold = 0.008 + 0.006 * np.sin(9 * x + 3 * y) * np.sin(7 * y + 2 * x)
        return x, y, np.maximum(fold, 0.002)

    wood = picture(textures.wood())
    return {
        "top": mesh("top", shapes.disc(1.02), painted(wood, 0.25, clearcoat=0.6)),
        "rim": mesh("rim", shapes.lathe(outline, smooth=1), painted(rgb(0.2, 0.1, 0.05), 0.3)),
        "leg": mesh("leg", shapes.lathe(leg), painted(rgb(0.12, 0.07, 0.05), 0.4)),
        "cloth": mesh(
            "cloth",
            shapes.sheet(cloth, 60, 160).turned(24),
            painted(picture(textures.plaid(), repeat=(2.8, 1.0)), 0.9),
        ),
    }


def books(mesh: Any) -> Thing:
    """A stack of three."""
    volumes = [
        ("ERROR BARS", (118, 30, 34), -8.0),
        ("FINITE SAMPLES", (28, 74, 66), 9.0),
        ("SPLATS", (40, 46, 98), 26.0),
    ]
    found: Thing = {}
    for level, (title, colour, turn) in enumerate(volumes):
        stand = T().translate([-0.47, 0.33, 0.035 + 0.072 * level]).rotate([0, 0, 1], turn)
        size = 1 - 0.09 * level
        cover = painted(picture(textures.cover(title, colour, 30 + level)), 0.45)
        for side in (-1, 1):
            board = stand.translate([0, 0, side * 0.031]).scale([0.2 * size, 0.26 * size, 0.0045])
            found[f"board{level}{side > 0}"] = {"type": "cube", "to_world": board, "bsdf": cover}
        block = stand.translate([0.006, 0, 0]).scale([0.187 * size, 0.25 * size, 0.028])
        paper = painted(picture(textures.pages()), 0.9)
        found[f"pages{level}"] = {"type": "cube", "to_world": block, "bsdf": paper}
        back = stand.translate([-0.197 * size, 0, 0]).scale([0.004, 0.26 * size, 0.031])
        spine = painted(rgb(*(c / 700 for c in colour)), 0.45)
        found[f"spine{level}"] = {"type": "cube", "to_world": back, "bsdf": spine}
    return found


def vase(mesh: Any) -> Thing:
    """A glazed vase with a plant: stems like wire, leaves seen from both sides."""
    x, y = 0.05, 0.32
    outline = [
        (0.0, 0.004), (0.075, 0.004), (0.12, 0.09), (0.125, 0.17), (0.07, 0.27),
        (0.055, 0.31), (0.075, 0.345), (0.068, 0.345), (0.048, 0.31), (0.06, 0.2), (0.0, 0.15),
    ]  # fmt: skip
    random = np.random.default_rng(33)
    stems, leaves = [], ([], [])
    for k in range(17):
        direction = 2.4 * k + random.normal(0, 0.2)
        lean, height = random.uniform(0.02, 0.16), random.uniform(0.42, 0.74)
        t = np.linspace(0, 1, 16)[:, None]
        foot = np.array([x, y, 0.2])
        tip = np.array([x + lean * np.cos(direction), y + lean * np.sin(direction), height])
        bend = np.array([0, 0, 0.06]) * np.sin(np.pi * t)
        stems.append(shapes.wire(foot + (tip - foot) * t ** [[1.6, 1.6, 1.0]] + bend, 0.0045))
        for pair in (0.0, 2.2):
            length = random.uniform(0.15, 0.26)
            blade = shapes.leaf(
                tip, direction + pair, length, 0.36 * length, random.uniform(0.06, 0.2),
                random.uniform(0.06, 0.22),
            )  # fmt: skip
            leaves[k % 2].append(blade)
    found = {
        "vase": mesh(
            "vase",
            shapes.lathe(outline).moved(x, y, 0),
            painted(picture(textures.glaze()), 0.12, clearcoat=1.0),
        ),
        "stems": mesh("stems", shapes.joined(stems), painted(rgb(0.14, 0.24, 0.07), 0.6)),
    }
    for kind, blades in enumerate(leaves):
        look = painted(picture(textures.leaf(seed=kind)), 0.35)
        found[f"leaves{kind}"] = mesh(f"leaves{kind}", shapes.joined(blades), look)
    return found


def drink(mesh: Any) -> Thing:
    """An empty tumbler with a straw."""
    x, y = 0.36, -0.22
    outside = [(0.0, 0.002), (0.058, 0.002), (0.062, 0.003), (0.064, 0.007), (0.08, 0.2)]
    lip = [(0.0795, 0.2025), (0.0775, 0.2025)]
    inside = [(0.077, 0.2), (0.063, 0.03), (0.061, 0.026), (0.056, 0.024), (0.0, 0.024)]
    glass = shapes.lathe(outside + lip + inside, 96, smooth=1).moved(x, y, 0)
    t = np.linspace(0, 1, 12)[:, None]
    straw = np.array([x - 0.045, y, 0.03]) + t * np.array([0.11, 0.03, 0.27])
    look = painted(picture(textures.stripes((222, 60, 52), (246, 240, 228))), 0.5)
    return {
        "glass": mesh("glass", glass, {"type": "dielectric", "int_ior": 1.5, "ext_ior": 1.0}),
        "straw": mesh("straw", shapes.wire(straw, 0.006, 12), look),
    }


def basket(mesh: Any) -> Thing:
    """Fruit in a basket of thin wire."""
    x, y = 0.5, 0.3
    heights = np.linspace(0.012, 0.17, 6)
    wires = [shapes.wire(shapes.circle(0.13 + 0.6 * h, h), 0.004) for h in heights]
    for k in range(22):
        angle = 2 * np.pi * k / 22
        radius = 0.13 + 0.6 * heights
        rail = np.stack([radius * np.cos(angle), radius * np.sin(angle), heights], axis=1)
        wires.append(shapes.wire(rail, 0.003))
    for k in range(-3, 4):
        half = np.sqrt(0.13**2 - (0.04 * k) ** 2)
        wires.append(shapes.wire([(0.04 * k, -half, 0.012), (0.04 * k, half, 0.012)], 0.003))
    handle = np.linspace(0, np.pi, 33)
    arc = np.stack([0.232 * np.cos(handle), 0 * handle, 0.17 + 0.2 * np.sin(handle)], axis=1)
    wires.append(shapes.wire(arc, 0.006))
    steel = {"type": "roughconductor", "material": "Cr", "alpha": 0.15}
    found = {"basket": mesh("basket", shapes.joined(wires).turned(35).moved(x, y, 0), steel)}
    orange, lemon = ((214, 104, 16), (240, 150, 40)), ((220, 186, 40), (246, 224, 96))
    apple = ((150, 24, 28), (206, 120, 50))
    fruit = [
        (0.075, -0.07, -0.05, 0.09, orange), (0.07, 0.08, -0.04, 0.088, apple),
        (0.072, 0.0, 0.08, 0.088, orange), (0.06, 0.01, -0.005, 0.185, lemon),
        (0.065, -0.10, 0.07, 0.10, apple),
    ]  # fmt: skip
    for k, (radius, dx, dy, z, colours) in enumerate(fruit):
        place = T().translate([x + dx, y + dy, z]).rotate([0.6, 0.8, 0.0], 50 * k)
        found[f"fruit{k}"] = {
            "type": "sphere",
            "to_world": place.scale(radius),
            "bsdf": painted(picture(textures.peel(*colours, 70 + 2 * k)), 0.3),
        }
    return found


def game(mesh: Any) -> Thing:
    """A chess board with some men left, and two dice beside it."""
    board = T().translate([-0.03, -0.56, 0.015]).rotate([0, 0, 1], -12)
    found: Thing = {
        "board": {
            "type": "cube",
            "to_world": board.scale([0.25, 0.25, 0.012]),
            "bsdf": painted(picture(textures.checks()), 0.2, clearcoat=0.8),
        }
    }
    pawn = [
        (0.0, 0.0), (0.021, 0.0), (0.021, 0.008), (0.013, 0.016), (0.008, 0.042),
        (0.013, 0.047), (0.007, 0.05), (0.013, 0.06), (0.009, 0.072), (0.0, 0.075),
    ]  # fmt: skip
    bishop = [(r * 1.15, h * 1.6) for r, h in pawn[:-1]] + [(0.004, 0.122), (0.0, 0.128)]
    squares = [
        (-3, -2, 0, 0),
        (-1, 2, 1, 0),
        (0, -1, 0, 1),
        (2, 1, 1, 1),
        (1, 3, 0, 0),
        (3, -2, 1, 0),
    ]
    for k, (column, row, dark, tall) in enumerate(squares):
        spot = np.array(
            board.transform_affine(mi.ScalarPoint3f(0.055 * (column - 0.5), 0.055 * (row - 0.5), 0))
        ).ravel()
        look = rgb(0.03, 0.022, 0.02) if dark else rgb(0.72, 0.55, 0.36)
        man = shapes.lathe(bishop if tall else pawn, 40).moved(spot[0], spot[1], 0.027)
        found[f"man{k}"] = mesh(f"man{k}", man, painted(look, 0.15, clearcoat=0.8))
    for k, (x, y, turn, colour) in enumerate(
        [(0.30, -0.46, 20, (170, 30, 34)), (0.36, -0.53, 65, (30, 60, 140))]
    ):
        place = T().translate([x, y, 0.026]).rotate([0, 0, 1], turn).scale(0.024)
        look = painted(picture(textures.pips(colour)), 0.1, clearcoat=1.0)
        found[f"die{k}"] = {"type": "cube", "to_world": place, "bsdf": look}
    return found


def metal(mesh: Any) -> Thing:
    """A mirror ball, a brass ball on the books, a copper bowl and a spring of wire."""
    bowl = [
        (0.0, 0.004), (0.06, 0.004), (0.09, 0.02), (0.125, 0.085), (0.13, 0.105),
        (0.122, 0.105), (0.115, 0.085), (0.08, 0.03), (0.0, 0.018),
    ]  # fmt: skip
    t = np.linspace(0, 1, 260)
    turns = [0.07 * np.cos(46 * t), 0.07 * np.sin(46 * t), 0.008 + 0.30 * t]
    spring = np.stack(turns, axis=1)
    return {
        "ball": {
            "type": "sphere",
            "center": [-0.40, -0.34, 0.125],
            "radius": 0.125,
            "bsdf": {"type": "roughconductor", "material": "Ag", "alpha": 0.02},
        },
        "brass": {
            "type": "sphere",
            "center": [-0.47, 0.33, 0.302],
            "radius": 0.08,
            "bsdf": {"type": "roughconductor", "material": "Au", "alpha": 0.18},
        },
        "copper": mesh(
            "copper",
            shapes.lathe(bowl).moved(-0.12, -0.08, 0.012),
            {"type": "roughconductor", "material": "Cu", "alpha": 0.14},
        ),
        "spring": mesh(
            "spring",
            shapes.wire(spring, 0.0045).moved(-0.70, -0.02, 0),
            painted(rgb(0.75, 0.12, 0.05), 0.3),
        ),
    }


GROUPS = {
    "books": books,
    "vase": vase,
    "drink": drink,
    "basket": basket,
    "game": game,
    "metal": metal,
    "case": case,
    "fence": fence,
}
"""Things by the name that a plan gives them."""


def painted(colour: Thing, roughness: float, clearcoat: float = 0.0) -> Thing:
    """A surface seen from both sides, as matt or as glossy as told."""
    look = {"type": "principled", "base_color": colour, "roughness": roughness}
    if clearcoat:
        look |= {"clearcoat": clearcoat, "clearcoat_gloss": 0.9}
    return {"type": "twosided", "bsdf": look}


def picture(pixels: textures.Pixels, repeat: tuple[float, float] = (1.0, 1.0)) -> Thing:
    """A texture, repeated across and along."""
    scale = T().scale([*repeat, 1.0])
    return {"type": "bitmap", "bitmap": mi.Bitmap(np.ascontiguousarray(pixels)), "to_uv": scale}


def rgb(*values: float) -> Thing:
    """A plain colour or radiance, linear."""
    return {"type": "rgb", "value": list(values)}


def write_ply(path: Path, mesh: Mesh) -> None:
    """A mesh with texture coordinates, as the renderer reads it."""
    vertices = np.concatenate([mesh.vertices, mesh.uv], axis=1).astype("<f4")
    faces = np.zeros(len(mesh.faces), dtype=[("n", "u1"), ("corner", "<i4", 3)])
    faces["n"], faces["corner"] = 3, mesh.faces
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(vertices)}"]
    header += [f"property float {name}" for name in ("x", "y", "z", "u", "v")]
    header += [f"element face {len(faces)}", "property list uchar int vertex_indices", "end_header"]
    path.write_bytes("\n".join(header).encode() + b"\n" + vertices.tobytes() + faces.tobytes())
