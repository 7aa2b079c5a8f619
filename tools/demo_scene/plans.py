# SPDX-License-Identifier: Apache-2.0
"""What can be photographed: the demo's still life, and two captures that are harder to model.

The harder ones are evidence for the bench (`benchmarks/made.toml`). They are a family of their
own: everything in them follows from a formula, so they are never averaged with photographs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Things on the table, photographs around it, and how the exposure drifts."""

    things: tuple[str, ...]
    """Groups of `still_life.GROUPS`, besides room and table."""
    rings: tuple[tuple[int, float, float], ...]
    """Photographs, distance from the axis, height above the table."""
    close_ups: int
    seed: int
    """Of poses and troubles."""
    drift: float = 0.03
    """Deviation of the exposure of every photograph, in stops."""
    wave: float = 0.0
    """Height of a slow wave of the exposure on top, in stops, as automatic exposure has."""


PLANS = {
    "still-life": Plan(
        things=("books", "vase", "drink", "basket", "game", "metal"),
        rings=((34, 1.75, 0.95), (28, 1.55, 0.48), (18, 1.35, 1.45)),
        close_ups=16,
        seed=20,
    ),
    # Everything is seen through glass, which mirrors the room.
    "showcase": Plan(
        things=("books", "vase", "drink", "metal", "case"),
        rings=((44, 1.8, 0.9), (40, 1.65, 0.45), (36, 1.5, 1.5)),
        close_ups=0,
        seed=120,
    ),
    # A fence of thin wire in front of things, few photographs, exposure that comes and goes.
    "lattice": Plan(
        things=("books", "basket", "game", "metal", "fence"),
        rings=((26, 1.75, 0.8), (22, 1.5, 0.4), (16, 1.4, 1.3)),
        close_ups=0,
        seed=220,
        drift=0.1,
        wave=0.6,
    ),
}
"""By name."""
