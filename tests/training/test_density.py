# SPDX-License-Identifier: Apache-2.0
"""When the density rules grow and reset, in runs of different lengths."""

import pytest

from splatcert.config import TrainConfig
from splatcert.training.density_rules import FastGSDensity, VanillaDensity

NONE = 0


def schedule(rule, iterations: int) -> tuple[int, int, int, int]:
    """First and last step of growth, steps between rounds, steps between resets."""
    made = rule(TrainConfig(iterations=iterations))
    resets = [step for step in range(1, made.end) if step % made.reset_every == 0]
    return made.start, made.end, made.every, made.reset_every if resets else NONE


@pytest.mark.parametrize(
    ("rule", "every"), [(VanillaDensity, 100), (FastGSDensity, 500)], ids=["vanilla", "fastgs"]
)
def test_as_published_at_30000_steps(rule, every):
    assert schedule(rule, 30_000) == (500, 15_000, every, 3_000)
    assert schedule(rule, 60_000) == (1_000, 30_000, 2 * every, 6_000)


def test_what_a_short_run_cannot_scale():
    """New Gaussians take time to settle, and reset opacities to recover."""
    assert schedule(FastGSDensity, 7_000) == (117, 3_500, 117, 700)
    assert schedule(VanillaDensity, 7_000) == (117, 3_500, 100, NONE)
    assert schedule(VanillaDensity, 15_000) == (250, 7_500, 100, 3_000)
    assert schedule(FastGSDensity, 3_000) == (50, 1_500, 100, NONE)
    assert schedule(VanillaDensity, 3_000) == (50, 1_500, 100, NONE)
    assert schedule(VanillaDensity, 600) == (10, 300, 50, NONE)
