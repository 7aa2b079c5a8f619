# SPDX-License-Identifier: Apache-2.0
"""Every knob, one frozen dataclass per stage. Standard library only, so help is instant.

A field's docstring is its help text on the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from splatcert.errors import InputError

REFERENCE_ITERATIONS = 30_000
"""Length of the published schedules, to which all of ours are relative."""


class ConfigError(InputError):
    """A setting out of its range."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How splats are fitted to photographs."""

    iterations: int = 7_000
    """Steps, one photograph each. Schedules published for 30,000 are scaled to it."""
    density: Literal["fastgs", "vanilla"] = "fastgs"
    """Rule that adds and removes Gaussians."""
    max_gaussians: int = 1_000_000
    """Hard limit; densification stops short of it."""
    sh_degree: int = 3
    """Degree of the colour harmonics, reached one degree at a time."""
    seed: int = 0
    """Of the initial jitter, the order of photographs and the splits."""
    ssim_weight: float = 0.2
    """Loss = (1 - w) L1 + w (1 - SSIM)."""
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Colour behind the splats, RGB in [0, 1]."""
    coarse_to_fine: bool = False
    """Start at a quarter of the resolution, then half, for the first third of the steps."""
    antialiased: bool = False
    """Compensate opacities for the low-pass filter, as Mip-Splatting does."""
    random_points: int = 50_000
    """Gaussians to start from where the scene has no sparse points."""

    def __post_init__(self) -> None:
        _require(self.iterations >= 1, f"iterations must be at least 1, got {self.iterations}")
        _require(
            self.density in ("fastgs", "vanilla"),
            f"density must be fastgs or vanilla, got {self.density!r}",
        )
        _require(
            self.max_gaussians >= 1, f"max_gaussians must be positive, got {self.max_gaussians}"
        )
        _require(0 <= self.sh_degree <= 4, f"sh_degree must be 0 to 4, got {self.sh_degree}")
        _require(0 <= self.ssim_weight <= 1, f"ssim_weight must be 0 to 1, got {self.ssim_weight}")
        _require(
            all(0 <= c <= 1 for c in self.background),
            f"background must lie in [0, 1], got {self.background}",
        )
        _require(
            self.random_points >= 1, f"random_points must be positive, got {self.random_points}"
        )

    def scaled(self, published: int) -> int:
        """A step of the published 30,000-step schedule, in ours."""
        return max(1, round(published * self.iterations / REFERENCE_ITERATIONS))
