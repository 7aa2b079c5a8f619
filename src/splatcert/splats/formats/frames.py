# SPDX-License-Identifier: Apache-2.0
"""Axis conventions: how the formats point their axes, and the turns by which files differ.

A convention is three letters: where x, y and z point, of Right/Left, Up/Down and
Front/Back. PLY files of captures are RDF, as COLMAP's cameras are.
"""

from __future__ import annotations

from math import nan

import numpy as np
from numpy.typing import NDArray

from splatcert.splats.gsplat_frame import FrameCandidate

DIRECTIONS = {
    "R": (1.0, 0.0, 0.0),
    "L": (-1.0, 0.0, 0.0),
    "D": (0.0, 1.0, 0.0),
    "U": (0.0, -1.0, 0.0),
    "F": (0.0, 0.0, 1.0),
    "B": (0.0, 0.0, -1.0),
}
COMMON = {
    "as stored": "RDF",
    "half turn about x": "RUB",
    "half turn about z": "LUF",
    "half turn about y": "LDB",
    "z up, y forward": "RFU",
    "z up, y back": "LBU",
    "z down, y back": "RBD",
    "z down, y forward": "LFD",
}
"""Every right-handed convention with x to the side, by the turn that leads to it."""


def axes_to_ply(axes: str) -> NDArray[np.float64]:
    """The 4x4 matrix from a convention such as RUB to the axes of a PLY, RDF."""
    matrix = np.eye(4)
    matrix[:3, :3] = np.array([DIRECTIONS[letter] for letter in axes]).T
    return matrix


def common_frames() -> list[FrameCandidate]:
    """The frames that a converted model may be in, relative to the capture's own, identity first.

    Converters disagree about the axes of a format, most often by a half turn about x. Each
    candidate leads from the capture's frame to the model's, for `rank_frames` to undo.
    """
    turns = {f"{name} ({axes})": axes_to_ply(axes).T for name, axes in COMMON.items()}
    return [FrameCandidate(name, turn, nan) for name, turn in turns.items()]
