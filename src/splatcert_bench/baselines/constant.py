# SPDX-License-Identifier: Apache-2.0
"""The constant scale, against which every saving is measured."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert_bench.baselines.baseline import Fitted, Reading


class Constant:
    """One for every pixel."""

    reading: ClassVar[Reading | None] = None

    def __init__(self, fitted: Fitted | None = None) -> None:
        """Take a fitted scene like every baseline, and ignore it."""

    def map(self, camera: Camera) -> Tensor:
        """Ones, [H, W]."""
        return torch.ones(camera.height, camera.width)
