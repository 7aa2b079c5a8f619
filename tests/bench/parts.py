# SPDX-License-Identifier: Apache-2.0
"""Our scale and its parts as maps of their own, and variants of any other map (tab:ablation).

Tables compute these from stored scores instead: a factor that is the same for all pixels of
a view divides its score (eq:ratio-identity).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.difficulty.rule import FactorRule
from splatcert.scales.scale import ScaledView
from splatcert_bench.baselines.baseline import Baseline, Fitted, Reading


@dataclass(frozen=True, eq=False)
class PerView:
    """Any map over its own mean in each view: only where in the view, no longer how much."""

    other: Baseline
    reading: ClassVar[Reading | None] = None

    def map(self, camera: Camera) -> Tensor:
        """[H, W], mean one."""
        values = self.other.map(camera)
        return values / values.double().mean()


@dataclass(frozen=True, eq=False)
class Magnitude:
    """The mean of any map in each view: only how much, no longer where."""

    other: Baseline
    reading: ClassVar[Reading | None] = None

    def map(self, camera: Camera) -> Tensor:
        """[H, W], the same everywhere."""
        values = self.other.map(camera)
        return torch.full_like(values, float(values.double().mean()))


@dataclass(frozen=True, eq=False)
class Full:
    """Ours, s = a b~ (eq:scale)."""

    fitted: Fitted
    rule: FactorRule
    reading: ClassVar[Reading | None] = None

    def map(self, camera: Camera) -> Tensor:
        """[H, W], float64."""
        query = self.fitted.scene.query(camera, backend=self.fitted.backend)
        return torch.from_numpy(
            ScaledView.of(query, self.rule.factor_of(query), self.rule.lambda_b).scale()
        )


def factor_only(fitted: Fitted, rule: FactorRule) -> Magnitude:
    """Our view factor a, the same for all pixels of a view."""
    return Magnitude(Full(fitted, rule))


def shape_only(fitted: Fitted, rule: FactorRule) -> PerView:
    """Our shape b~, with mean one in every view."""
    return PerView(Full(fitted, rule))
