# SPDX-License-Identifier: Apache-2.0
"""Poses a photographer could take, starting from existing training cameras.

Midpoints between neighbours, orbits to the side, up and down around what a camera looks at,
steps closer and back, and turns on the spot; all within the capture's extent and clear of
solid surfaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation, Slerp

from splatcert.camera import Camera
from splatcert.raster.render import Backend, render
from splatcert.raster.view import View
from splatcert.scene.camera_paths import Layout, look_at
from splatcert.scene.scene import extent_of
from splatcert.splats.gaussians import Splats

Floats = NDArray[np.float64]

SEEDS = 40
"""Training cameras that steps start from, spread over the capture."""
NEIGHBOURS = 3
STEPS = {"left": -20.0, "right": 20.0, "up": 12.0, "down": -12.0}
"""Degrees around what the camera looks at."""
TURNS = {"left": -25.0, "right": 25.0}
"""Degrees on the spot."""
CLOSER, BACK = 0.3, 0.2
"""Shares of the distance to what the camera looks at."""
REACH = 0.35
"""Largest distance from a training camera, in scene extents."""
HEADROOM = 0.05
"""Largest height above or below all training cameras, in scene extents."""
OPAQUE = 0.5
LEAST_OPACITY = 0.6
"""Poses must see at least this share of the training cameras' median opacity."""
CLEARANCE = 0.5
"""Poses must keep this share of the training cameras' own distance to solid surfaces."""
WAY_AHEAD = 1.25
"""The way to a pose must be free for this many times its length."""
PEEP = 9
"""Side in pixels of the picture that checks the way."""


@dataclass(frozen=True, eq=False)
class Pose:
    """A camera, and how to get there from a training view."""

    camera: Camera
    start: str
    """Training view to start from."""
    move: str
    """How to move from there, in words."""


def reachable_poses(
    cameras: Mapping[str, Camera], splats: Splats, depths: Mapping[str, float]
) -> list[Pose]:
    """Poses within the capture; `depths` are the distances from seeds to what they look at."""
    everything = list(cameras.values())
    layout, extent = Layout.of(everything), extent_of(everything)
    near = KDTree(layout.centres)
    opaque = (splats.opacities >= OPAQUE).cpu().numpy()
    solid = KDTree(splats.means.cpu().double().numpy()[opaque]) if opaque.any() else None
    clearance = 0.0
    if solid is not None:
        clearance = CLEARANCE * float(np.quantile(solid.query(layout.centres)[0], 0.05))
    heights = layout.centres @ layout.up
    lowest, highest = heights.min() - HEADROOM * extent, heights.max() + HEADROOM * extent

    def is_reachable(camera: Camera) -> bool:
        centre = camera.centre
        return (
            near.query(centre)[0] <= REACH * extent
            and lowest <= centre @ layout.up <= highest
            and (solid is None or solid.query(centre)[0] >= clearance)
        )

    found = [*_between(cameras, list(depths))]
    for name, depth in depths.items():
        found += _steps(name, cameras[name], depth)
    return [pose for pose in found if is_reachable(pose.camera)]


def is_way_free(splats: Splats, pose: Pose, start: Camera, backend: Backend) -> bool:
    """Whether the straight way from the start to a pose is free of walls and floors.

    Decided on a small picture from the start, a few degrees wide, in that direction.
    """
    way = pose.camera.centre - start.centre
    length = float(np.linalg.norm(way))
    if length < 1e-9:
        return True
    peep = replace(
        start,
        world_to_camera=look_at(start.centre, way, -start.world_to_camera[1, :3]),
        **dict.fromkeys(("fx", "fy"), 6.0 * PEEP),
        **dict.fromkeys(("cx", "cy"), PEEP / 2),
        **dict.fromkeys(("width", "height"), PEEP),
    )
    picture = render(splats, peep, backend=backend)
    blocked = (picture.alpha > OPAQUE) & (picture.depth < WAY_AHEAD * length)
    return bool(blocked.double().mean() < 0.25)


def spread_views(cameras: Mapping[str, Camera], count: int = SEEDS) -> list[str]:
    """Names of cameras that are far from each other in place and direction."""
    names, everything = list(cameras), list(cameras.values())
    extent = max(extent_of(everything), 1e-12)
    places = np.array([[*(c.centre / extent), *(0.5 * c.forward)] for c in everything])
    chosen = [0]
    apart = np.linalg.norm(places - places[0], axis=1)
    while len(chosen) < min(count, len(names)) and apart.max() > 0:
        chosen.append(int(apart.argmax()))
        apart = np.minimum(apart, np.linalg.norm(places - places[chosen[-1]], axis=1))
    return [names[k] for k in sorted(chosen)]


def _between(cameras: Mapping[str, Camera], names: list[str]) -> Iterator[Pose]:
    """Half-way between neighbouring seeds that look in about the same direction."""
    centres = np.array([cameras[name].centre for name in names])
    done = set()
    for index, name in enumerate(names):
        order = np.linalg.norm(centres - centres[index], axis=1).argsort(kind="stable")
        for other in order[1 : NEIGHBOURS + 1]:
            pair = frozenset((index, int(other)))
            one, two = cameras[name], cameras[names[other]]
            if pair in done or one.forward @ two.forward < 0.5:
                continue
            done.add(pair)
            turns = Rotation.from_matrix([c.world_to_camera[:3, :3] for c in (one, two)])
            rotation = Slerp([0, 1], turns)(0.5).as_matrix()
            move = f"half-way to {names[other]}"
            yield Pose(_placed(one, (one.centre + two.centre) / 2, rotation), name, move)


def _steps(name: str, camera: Camera, depth: float) -> Iterator[Pose]:
    """Orbits around, steps towards and away from what a camera looks at, and turns on the spot."""
    rotation, centre = camera.world_to_camera[:3, :3], camera.centre
    right, up = rotation[0], -rotation[1]
    target = centre + depth * camera.forward

    def about(axis: Floats, degrees: float) -> Floats:
        return Rotation.from_rotvec(np.radians(degrees) * axis).as_matrix()

    for direction, degrees in STEPS.items():
        # Turning the camera about its target moves it along a circle, still looking there.
        turn = about(up, degrees) if direction in ("left", "right") else about(right, -degrees)
        moved = target + turn @ (centre - target)
        move = f"orbit {abs(degrees):.0f}° {direction}"
        yield Pose(_placed(camera, moved, rotation @ turn.T), name, move)
    for way, share in (("closer", CLOSER), ("back", -BACK)):
        moved = centre + share * depth * camera.forward
        yield Pose(_placed(camera, moved, rotation), name, f"{abs(share):.0%} {way}")
    for direction, degrees in TURNS.items():
        turn = about(-up, degrees)
        move = f"turn {abs(degrees):.0f}° {direction}"
        yield Pose(_placed(camera, centre, rotation @ turn.T), name, move)


def _placed(camera: Camera, centre: Floats, rotation: Floats) -> Camera:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, -rotation @ centre
    return replace(camera, world_to_camera=pose)


@dataclass(frozen=True)
class DepthView:
    """How much a camera sees, and how far away it is."""

    opacity: float
    """Mean accumulated opacity."""
    depth: float
    """Median depth of what is opaque."""
    nearest: float
    """Fifth percentile of the depth: what is in the way."""

    @classmethod
    def of(cls, view: View) -> DepthView:
        """From the opacity and depth of one view."""
        depths = view.depths()
        picture = view.composite(torch.stack([depths, torch.ones_like(depths)], dim=1))
        total, alpha = picture.detach().cpu().unbind(-1)
        opaque = alpha > OPAQUE
        if not opaque.any():
            return cls(0.0, 0.0, 0.0)
        nearest, middle = np.quantile((total[opaque] / alpha[opaque]).numpy(), (0.05, 0.5))
        return cls(float(alpha.mean()), float(middle), float(nearest))

    def is_clear(self, usual: list[DepthView]) -> bool:
        """Whether the camera sees about as much as training cameras do, from about as far away."""
        opacity = float(np.median([depth_view.opacity for depth_view in usual]))
        nearest = float(np.quantile([depth_view.nearest for depth_view in usual], 0.05))
        return self.opacity >= LEAST_OPACITY * opacity and self.nearest >= CLEARANCE * nearest
