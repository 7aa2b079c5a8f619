# SPDX-License-Identifier: Apache-2.0
"""3DGS-U's spatial field: training residuals stored on the Gaussians.

Our shape is the same field b without its magnitude: it is normalised per view, this map by one
constant per scene.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from splatcert.camera import Camera
from splatcert.certificate.content.record import Holes
from splatcert_bench.baselines.baseline import Fitted, Reading


class ResidualMap:
    """B = max(A C, epsilon0), rendered like a colour channel."""

    reading: ClassVar[Reading | None] = "residual"
    holes: ClassVar[Holes] = "paper"

    def __init__(self, fitted: Fitted) -> None:
        self._fitted = fitted

    def map(self, camera: Camera) -> Tensor:
        """[H, W], in colour units."""
        fitted = self._fitted
        return fitted.scene.query(camera, backend=fitted.backend, holes=self.holes).field


class WideHoles(ResidualMap):
    """B + (1 - alpha) prior: the map of a certificate whose holes are wide (decision 0023)."""

    reading: ClassVar[Reading | None] = None
    holes: ClassVar[Holes] = "wide"
