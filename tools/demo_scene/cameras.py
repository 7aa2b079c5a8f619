# SPDX-License-Identifier: Apache-2.0
"""Where the photographs are taken from: rings around the table, and close-ups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from plans import Plan

WIDTH, HEIGHT = 320, 240
FIELD_OF_VIEW = 54.0
"""Horizontal, in degrees."""
FOCAL = WIDTH / 2 / np.tan(np.radians(FIELD_OF_VIEW / 2))
SUBJECTS = (
    (0.05, 0.32, 0.40),
    (0.48, 0.30, 0.10),
    (0.34, -0.20, 0.12),
    (-0.45, 0.28, 0.18),
    (-0.42, -0.32, 0.12),
    (0.00, -0.52, 0.06),
)
"""What the close-ups look at."""


@dataclass(frozen=True)
class Pose:
    """A camera's centre, and the axes right, down, forward as columns (OpenCV)."""

    centre: NDArray[np.float64]
    rotation: NDArray[np.float64]

    @classmethod
    def looking(cls, centre: ArrayLike, target: ArrayLike, roll: float = 0.0) -> Pose:
        """From one point at another, upright but for `roll` radians."""
        place = np.asarray(centre, dtype=float)
        forward = np.asarray(target, dtype=float) - place
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        down = np.cross(forward, right)
        turned = np.cos(roll) * right + np.sin(roll) * down
        return cls(place, np.column_stack([turned, np.cross(forward, turned), forward]))


def poses(plan: Plan) -> list[Pose]:
    """All of them, in capture order: the same on every machine."""
    random = np.random.default_rng(plan.seed)
    found = []
    for count, radius, height in plan.rings:
        start = random.uniform(0, 2 * np.pi)
        for k in range(count):
            angle = start + 2 * np.pi * k / count + random.normal(0, 0.03)
            distance = radius * (1 + random.normal(0, 0.04))
            centre = (
                distance * np.cos(angle),
                distance * np.sin(angle),
                height + random.normal(0, 0.04),
            )
            target = np.array([0.0, 0.0, 0.14]) + random.normal(0, 0.05, 3)
            found.append(Pose.looking(centre, target, random.normal(0, 0.02)))
    for k in range(plan.close_ups):
        subject = np.array(SUBJECTS[k % len(SUBJECTS)])
        outwards = np.arctan2(subject[1], subject[0]) + random.normal(0, 0.5)
        distance = random.uniform(0.62, 0.85)
        offset = [np.cos(outwards), np.sin(outwards), random.uniform(0.35, 0.75)]
        found.append(Pose.looking(subject + distance * np.array(offset), subject))
    return found
