# SPDX-License-Identifier: Apache-2.0
"""Smooth camera paths through or around the training cameras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, pi

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation, RotationSpline

from splatcert.camera import Camera
from splatcert.errors import InputError
from splatcert.scene.lens import INTRINSICS
from splatcert.scene.scene import extent_of

Floats = NDArray[np.float64]

SECONDS_PER_EXTENT = 2.0
"""Default pace: a walk, not a flight."""
SHORTEST, LONGEST = 6.0, 16.0
"""Range of the default duration, in seconds."""
SECONDS_PER_KEY = 0.75
"""Fewer keys make a steadier path, because photographs are taken by hand."""
KERNEL = np.radians(25)
"""Angle over which an orbit averages the cameras beside it."""
WIDEST_GAP = np.radians(100)
"""A capture with a larger gap is not a ring; its orbit swings back and forth within its arc."""
CLOSING_STEPS = 4.0
"""The path closes if its ends are at most this many median steps apart."""


class CameraPathError(InputError):
    """Cameras from which no path can be made."""


@dataclass(frozen=True, eq=False)
class Layout:
    """How the cameras of a capture stand around what they look at."""

    centres: Floats
    """[T, 3]."""
    axes: Floats
    """Viewing directions, [T, 3]."""
    up: Floats
    """Mean upward direction of the pictures, [3]."""
    focus: Floats
    """Point nearest to all viewing axes, [3]."""
    is_inward: bool
    """Whether most cameras look towards the focus, as around an object."""

    @classmethod
    def of(cls, cameras: Sequence[Camera]) -> Layout:
        """From the cameras alone."""
        centres = np.array([camera.centre for camera in cameras])
        axes = np.array([camera.forward for camera in cameras])
        up = -np.array([camera.world_to_camera[1, :3] for camera in cameras]).mean(axis=0)
        norm = np.linalg.norm(up)
        up = up / norm if norm > 1e-6 else np.array([0.0, -1.0, 0.0])
        focus = nearest_to_axes(centres, axes)
        ahead = np.einsum("ij,ij->i", axes, focus - centres)
        return cls(centres, axes, up, focus, bool((ahead > 0).mean() > 0.8))

    def plane(self) -> tuple[Floats, Floats]:
        """Two horizontal directions, the first from the focus to the cameras' mean, [3] each."""
        away = self.centres.mean(axis=0) - self.focus
        first: Floats = away - (away @ self.up) * self.up
        if np.linalg.norm(first) < 1e-6 * (1 + np.linalg.norm(away)):
            other = np.cross(self.up, np.eye(3)[np.abs(self.up).argmin()])
            first = np.asarray(other, dtype=np.float64)
        first = first / np.linalg.norm(first)
        return first, np.asarray(np.cross(self.up, first), dtype=np.float64)


def nearest_to_axes(centres: Floats, axes: Floats) -> Floats:
    """Point with the least squared distance to all viewing axes, [3].

    A little weight on the cameras' own mean decides where the axes are parallel.
    """
    across = np.eye(3) - axes[:, :, None] * axes[:, None]
    matrix = across.sum(axis=0) + 1e-3 * len(centres) * np.eye(3)
    target = np.einsum("nij,nj->i", across, centres) + 1e-3 * centres.sum(axis=0)
    return np.linalg.solve(matrix, target)


def look_at(centre: Floats, forward: Floats, up: Floats) -> Floats:
    """World-to-camera pose of a camera that looks along `forward`, its picture upright, [4, 4]."""
    z = forward / np.linalg.norm(forward)
    x = np.cross(z, up)
    if np.linalg.norm(x) < 1e-6:  # straight up or down: any roll is upright
        x = np.cross(z, np.eye(3)[np.abs(z).argmin()])
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z])
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, -rotation @ centre
    return pose


def orbit(cameras: Sequence[Camera], *, fps: int, seconds: float | None = None) -> list[Camera]:
    """Once around what the cameras look at, at their distance and height.

    Each frame stands at the average of the cameras in its direction, so the path stays where
    photographs were taken. If they cover less than a ring, it swings back and forth.
    """
    _require_several(cameras)
    layout = Layout.of(cameras)
    first, second = layout.plane()
    away = layout.centres - layout.focus
    flat = np.stack([away @ first, away @ second], axis=1)
    angles = np.arctan2(flat[:, 1], flat[:, 0])
    start, sweep, is_ring = _covered(angles)
    spread = np.linalg.norm(flat, axis=1).mean()
    length = (1 if is_ring else 2) * sweep * spread
    frames = _frames(length / extent_of(cameras), fps, seconds)
    phase = np.arange(frames) / frames
    turned = start + sweep * (phase if is_ring else 0.5 - 0.5 * np.cos(2 * pi * phase))

    apart = (turned[:, None] - angles + pi) % (2 * pi) - pi
    weights = np.exp(-0.5 * (apart / KERNEL) ** 2) + 1e-12
    weights /= weights.sum(axis=1, keepdims=True)
    radius, height = weights @ np.linalg.norm(flat, axis=1), weights @ (away @ layout.up)
    centres = (
        layout.focus
        + radius[:, None] * (np.cos(turned)[:, None] * first + np.sin(turned)[:, None] * second)
        + height[:, None] * layout.up
    )
    forwards = layout.focus - centres if layout.is_inward else weights @ layout.axes
    poses = [look_at(*at, layout.up) for at in zip(centres, forwards, strict=True)]
    return _with_lens(usual_lens(cameras), poses)


def spline(cameras: Sequence[Camera], *, fps: int, seconds: float | None = None) -> list[Camera]:
    """Through the cameras in the order of capture, at an even pace; closed where the capture is."""
    _require_several(cameras)
    ordered = [cameras[k] for k in _order(np.array([camera.centre for camera in cameras]))]
    centres, turns = _placed(ordered)
    extent = max(extent_of(cameras), 1e-12)
    steps = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    is_closed = bool(np.linalg.norm(centres[-1] - centres[0]) <= CLOSING_STEPS * np.median(steps))
    frames = _frames(steps.sum() / extent, fps, seconds)
    along = _along(centres, turns, extent)
    keys = _keys(along, min(len(ordered), max(4, ceil(frames / fps / SECONDS_PER_KEY))))
    times, centres, turns = along[keys], centres[keys], turns[keys]
    if is_closed:
        closing = max(times[-1] / (len(keys) - 1), 1e-9)
        times, centres, turns = _wrapped(times, centres, turns, closing)
        asked = np.linspace(0, along[keys][-1] + closing, frames, endpoint=False)
    else:
        asked = np.linspace(0, times[-1], frames)
    poses = _smooth(times, centres, turns, asked, is_closed)
    return _with_lens(usual_lens(cameras), poses)


def through(keys: Sequence[Camera], *, fps: int, seconds: float) -> list[Camera]:
    """Through these cameras in their order, from the first to the last, at an even pace."""
    if len(keys) < 2:
        raise CameraPathError(
            f"a path requires at least 2 views, got {len(keys)}.\n  Add another view."
        )
    centres, turns = _placed(keys)
    times = _along(centres, turns, extent_of(keys) or 1.0)
    asked = np.linspace(0, times[-1], _frames(0, fps, seconds))
    return _with_lens(usual_lens(keys), _smooth(times, centres, turns, asked, False))


def _placed(cameras: Sequence[Camera]) -> tuple[Floats, Floats]:
    """Centres [n, 3] and camera-to-world rotations [n, 3, 3]."""
    turns = np.array([camera.world_to_camera[:3, :3].T for camera in cameras])
    return np.array([camera.centre for camera in cameras]), turns


def _along(centres: Floats, turns: Floats, extent: float) -> Floats:
    """When a path is at each camera, [n]; turning takes time as well.

    Half an extent per radian is how far away things are.
    """
    steps = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    between = Rotation.from_matrix(turns[1:] @ turns[:-1].transpose(0, 2, 1))
    pace = steps + 0.5 * extent * between.magnitude()
    return np.concatenate([[0.0], np.cumsum(np.maximum(pace, 1e-9 * extent))])


def _smooth(
    times: Floats, centres: Floats, turns: Floats, asked: Floats, is_closed: bool
) -> list[Floats]:
    """World-to-camera poses on a smooth curve through the cameras at these times."""
    asked = _evenly(CubicSpline(times, centres), asked, is_closed)
    places = CubicSpline(times, centres)(asked)
    poses = RotationSpline(times, Rotation.from_matrix(turns))(asked).as_matrix()
    return [_pose(place, turn) for place, turn in zip(places, poses, strict=True)]


def _with_lens(lens: Camera, poses: Sequence[Floats]) -> list[Camera]:
    return [replace(lens, world_to_camera=pose) for pose in poses]


def usual_lens(cameras: Sequence[Camera]) -> Camera:
    """A camera with the commonest picture size and the median lens of those that have it."""
    sizes = [(camera.width, camera.height) for camera in cameras]
    size = max(sizes, key=sizes.count)
    alike = [camera for camera in cameras if (camera.width, camera.height) == size]
    lens = {name: float(np.median([getattr(c, name) for c in alike])) for name in INTRINSICS}
    return replace(alike[0], **lens)


def _require_several(cameras: Sequence[Camera]) -> None:
    if len(cameras) < 4 or extent_of(cameras) == 0:
        raise CameraPathError(
            "a path requires at least 4 training cameras at different positions, "
            f"got {len(cameras)}.\n"
            "  Pass the cameras themselves: --cameras FILE."
        )


def _frames(length: float, fps: int, seconds: float | None) -> int:
    """Number of frames of a path of this length in scene extents."""
    if seconds is None:
        seconds = float(np.clip(SECONDS_PER_EXTENT * length, SHORTEST, LONGEST))
    return max(2, round(seconds * fps))


def _covered(angles: Floats) -> tuple[float, float, bool]:
    """Start and extent of the arc that the cameras cover, and whether it is a full ring."""
    ordered = np.sort(angles)
    gaps = np.diff(np.concatenate([ordered, ordered[:1] + 2 * pi]))
    widest = int(gaps.argmax())
    start = float(ordered[(widest + 1) % len(ordered)])
    if gaps[widest] <= WIDEST_GAP:
        return start, 2 * pi, True
    return start, float(2 * pi - gaps[widest]), False


def _order(centres: Floats) -> list[int]:
    """The order of the names, or from neighbour to neighbour if that order jumps about."""
    tour = _neighbour_tour(centres)
    named = np.linalg.norm(np.diff(centres, axis=0), axis=1).sum()
    walked = np.linalg.norm(np.diff(centres[tour], axis=0), axis=1).sum()
    return list(range(len(centres))) if named <= 3 * walked else tour


def _neighbour_tour(centres: Floats) -> list[int]:
    left, tour = set(range(1, len(centres))), [0]
    while left:
        rest = np.fromiter(left, dtype=np.int64)
        nearest = int(rest[np.linalg.norm(centres[rest] - centres[tour[-1]], axis=1).argmin()])
        tour.append(nearest)
        left.remove(nearest)
    return tour


def _keys(along: Floats, count: int) -> NDArray[np.int64]:
    """Cameras at about even distances along the path, including the first and the last."""
    wanted = np.linspace(0, along[-1], count)
    return np.unique(np.abs(along[None] - wanted[:, None]).argmin(axis=1))


def _wrapped(
    times: Floats, centres: Floats, turns: Floats, closing: float
) -> tuple[Floats, Floats, Floats]:
    """Keys of a closed path continued at both ends, so that the seam is as smooth as the rest."""
    period, pad = times[-1] + closing, min(3, len(times) - 1)
    order = np.concatenate([np.arange(-pad, 0), np.arange(len(times)), np.arange(pad)])
    shift = np.concatenate([np.full(pad, -period), np.zeros(len(times)), np.full(pad, period)])
    return times[order] + shift, centres[order], turns[order]


def _evenly(curve: CubicSpline, times: Floats, is_closed: bool) -> Floats:
    """Times moved so that the pace along a curve changes gently: no rushing between keys."""
    pace = np.linalg.norm(curve(times, 1), axis=1)
    mode = "wrap" if is_closed else "nearest"
    pace = pace / np.maximum(gaussian_filter1d(pace, len(times) / 24, mode=mode), 1e-12)
    done = np.concatenate([[0.0], np.cumsum(0.5 * (pace[1:] + pace[:-1]) + 1e-3)])
    share = np.arange(len(times)) / (len(times) - 1)
    return np.interp(share, done / done[-1], times)


def _pose(centre: Floats, to_world: Floats) -> Floats:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = to_world.T, -to_world.T @ centre
    return pose
