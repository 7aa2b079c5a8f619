# SPDX-License-Identifier: Apache-2.0
"""Learning rates of all parameters at each step of a run, by recipe.

The published rates are for 30,000 steps. Kept in a short run, they leave it far from
convergence. The fast recipe takes larger steps at first and small ones at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from splatcert.config import REFERENCE_ITERATIONS, TrainConfig

MEANS = (1.6e-4, 1.6e-6)
"""Rates of the centres at the first and last step, in scene extents; log-linear in between."""
GEOMETRY = {"quats": 1e-3, "log_scales": 5e-3, "logit_opacities": 2.5e-2}
COLOUR = 2.5e-3
HARMONICS = {"vanilla": 2.5e-3 / 20, "fastgs": 5e-3 / 20}
HARMONICS_EVERY = {"vanilla": 1, "fastgs": 16}
"""FastGS updates the higher harmonics rarely, with gradients summed in between. The interval is
for 30,000 steps. A shorter run updates them more often, or they would not be learned, but at
most about 750 times, because such an update touches most of a run's memory."""
MOST_GAIN = 4.0
FALL_FROM, FALL_TO = 0.5, 0.1
"""Share of the run after which the fast recipe lowers its rates, and the factor at its end."""


@dataclass(frozen=True)
class Rates:
    """Adam's step sizes at one step."""

    means: float
    """In world units."""
    geometry: dict[str, float]
    """Of quaternions, logarithmic scales and opacity logits."""
    colour: float
    harmonics: float
    """Of all harmonics but the constant one."""


def rates_at(step: int, config: TrainConfig, extent: float) -> Rates:
    """The rates of a step, counted from 1, in a scene of this extent."""
    done = (step - 1) / max(1, config.iterations - 1)
    first, last = MEANS
    gain = late = 1.0
    if config.recipe == "fast":
        # Adam moves a parameter by about its rate per step, whatever the gradient. The square
        # root lies between equal distances in total and equal noise.
        gain = min(MOST_GAIN, max(1.0, sqrt(REFERENCE_ITERATIONS / config.iterations)))
        late = FALL_TO ** max(0.0, (done - FALL_FROM) / (1 - FALL_FROM))
    first *= gain
    return Rates(
        means=extent * first * (last / first) ** done,
        geometry={name: gain * late * rate for name, rate in GEOMETRY.items()},
        colour=gain * late * COLOUR,
        harmonics=gain * late * HARMONICS[config.density],
    )


def harmonics_every(config: TrainConfig) -> int:
    """Number of steps between updates of the higher harmonics."""
    published = HARMONICS_EVERY[config.density]
    least = min(4, published, config.iterations // 750)
    return max(1, least, config.scaled(published))
