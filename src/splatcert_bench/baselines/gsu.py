# SPDX-License-Identifier: Apache-2.0
"""3DGS-U's spatial field: training residuals carried by the Gaussians.

It is the field b that our own shape is made of, with its magnitude kept: what changes
between the two is one constant a scene instead of one a view.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from splatcert.camera import Camera
from splatcert_bench.baselines.baseline import Fitted, Reading


class ResidualMap:
    """B = max(A C, epsilon0), rendered like one more colour."""

    reading: ClassVar[Reading | None] = "residual"

    def __init__(self, fitted: Fitted) -> None:
        self._fitted = fitted

    def map(self, camera: Camera) -> Tensor:
        """[H, W], in units of colour."""
        fitted = self._fitted
        return fitted.observed.query(camera, backend=fitted.backend).field
