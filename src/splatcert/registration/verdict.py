# SPDX-License-Identifier: Apache-2.0
"""When a pose is certain enough to calibrate on; docs/new-photos.md gives the reasons."""

from __future__ import annotations

from splatcert.registration.localise import GRID, Located

INLIERS = 40
RATIO = 0.25
ERROR = 0.002
"""Largest median reprojection error of the inliers, as a share of the picture's long side."""
CELLS = 6
"""Fewest cells of the grid of 4 x 4 that contain an inlier."""
TURN = 0.5
"""Largest angle between the poses of two halves of the points, in degrees."""
SHIFT = 0.01
"""Largest distance between their centres, as a share of the capture's extent."""


def doubts(found: Located, long_side: int, extent: float) -> list[str]:
    """Why a pose is uncertain, the most telling reason first; none if it can be used."""
    if found.world_to_camera is None:
        return [f"no pose: {found.points} points matched"]
    tests = {
        f"{found.inliers} inliers, {INLIERS} needed": found.inliers >= INLIERS,
        f"{found.ratio:.0%} of the points are inliers, {RATIO:.0%} needed": found.ratio >= RATIO,
        f"error {found.error:.1f} px, at most {ERROR * long_side:.1f} allowed": found.error
        <= ERROR * long_side,
        f"inliers in {found.cells} of {GRID * GRID} parts of the picture, {CELLS} needed": (
            found.cells >= CELLS
        ),
        f"two halves of the points give different poses ({_apart(found, extent)})": (
            found.turn <= TURN and found.shift <= SHIFT * extent
        ),
    }
    return [why for why, passed in tests.items() if not passed]


def _apart(found: Located, extent: float) -> str:
    share = found.shift / max(extent, 1e-12)
    if not found.turn < 360:
        return "one half gives none"
    return f"{found.turn:.2f}°, {share:.1%} of the extent"
