# SPDX-License-Identifier: Apache-2.0
"""A deep ensemble: how much models that differ only by their seed disagree.

Members may have been trained at a lower resolution than the centre. They are then rendered at
their own resolution, because Gaussians thin out when viewed more closely than in training, and
the map of their disagreement is enlarged.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from splatcert.camera import Camera
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.errors import InputError
from splatcert.raster.render import render
from splatcert_bench.baselines.baseline import Fitted, Reading

FEWEST = 2


class EnsembleError(InputError):
    """An ensemble with too few members."""


class Moments(NamedTuple):
    """Mean and deviation of the members' renders, at their own resolution."""

    mean: Tensor
    """[H, W, 3], in [0, 1]."""
    deviation: Tensor
    """Sample standard deviation, largest of the three colours, [H, W]."""


class Ensemble:
    """Standard deviation of the members' renders, in colour units."""

    reading: ClassVar[Reading | None] = "gaussian"

    def __init__(self, fitted: Fitted, *, full: bool = False) -> None:
        members = fitted.full_members if full else fitted.members
        if members is None or len(members.splats) < FEWEST:
            found = 0 if members is None else len(members.splats)
            raise EnsembleError(
                f"an ensemble requires at least {FEWEST} members, got {found}.\n"
                "  Train more, or leave the ensemble out of the methods."
            )
        self._members, self._fitted = members, fitted

    def moments(self, camera: Camera) -> Moments:
        """Mean and deviation of all members' renders for a camera."""
        own, fitted = self._members.camera(camera), self._fitted
        pictures = [
            render(
                splats, own, background=fitted.scene.background, backend=fitted.backend
            ).rgb.clamp(0, 1)
            for splats in self._members.splats
        ]
        stack = torch.stack(pictures).double()
        return Moments(stack.mean(0).float(), stack.std(0, correction=1).amax(2).float())

    def map(self, camera: Camera) -> Tensor:
        """[H, W] at the camera's own resolution."""
        deviation = self.moments(camera).deviation
        return enlarge(deviation, camera).clamp(min=EPSILON0)


def enlarge(plane: Tensor, camera: Camera) -> Tensor:
    """A map [h, w] enlarged bilinearly to the camera's size; unchanged if it already has it."""
    size = camera.height, camera.width
    if tuple(plane.shape) == size:
        return plane
    return interpolate(plane[None, None], size, mode="bilinear", align_corners=False)[0, 0]
