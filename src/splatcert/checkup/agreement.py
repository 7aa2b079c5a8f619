# SPDX-License-Identifier: Apache-2.0
"""How far a back end is from the float64 reference, and whether it repeats itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from splatcert.checkup.scenes import MadeScene, plain
from splatcert.raster.render import Backend, open_view
from splatcert.raster.view import View

MEDIAN, ADJOINT = 1e-5, 2e-5
"""Largest errors that a back end may have: in the median, and of the transpose."""
STEP = 1e-4
"""Error that rounding alone does not explain. A Gaussian at the alpha floor (1/255) may count in
one precision and not in the other, so a few numbers may be off by more."""
STEPS, LARGEST = 1e-2, 3e-2
"""Share of numbers that may be off by more than a step, and by how much."""
UNORDERED = ("cuda",)
"""Back ends whose transpose adds in the order in which threads arrive."""


@dataclass(frozen=True)
class Agreement:
    """Differences of a back end from the float64 reference, over all scenes."""

    largest: float
    """Largest difference of a channel of a picture or a residual field."""
    median: float
    steps: float
    """Share of numbers that differ by more than a step."""
    adjoint: float
    """|<A x, y> - <x, A^T y>|, relative to <|A x|, |y|>."""
    repeats: bool
    """Whether a second render has the same bits."""
    adjoint_repeats: bool
    """Whether a second transpose has the same bits."""

    def faults(self, backend: str) -> tuple[str, ...]:
        """The ways in which the back end disagrees, in words; empty if it agrees."""
        rows = (
            (self.median <= MEDIAN, f"median error {self.median:.1e}, allowed {MEDIAN:g}"),
            (self.largest <= LARGEST, f"largest error {self.largest:.1e}, allowed {LARGEST:g}"),
            (
                self.steps <= STEPS,
                f"{100 * self.steps:.2g}% of the numbers differ by more than {STEP:g}, allowed "
                f"{100 * STEPS:g}%",
            ),
            (self.adjoint <= ADJOINT, f"adjoint error {self.adjoint:.1e}, allowed {ADJOINT:g}"),
            (self.repeats, "a second render has other bits"),
            (self.adjoint_repeats or backend in UNORDERED, "a second transpose has other bits"),
        )
        return tuple(fault for fine, fault in rows if not fine)


@torch.no_grad()
def measure_agreement(backend: Backend, scenes: Sequence[MadeScene]) -> Agreement:
    """Compare a back end with the float64 reference on every scene."""
    apart, adjoint, repeats, adjoint_repeats = [], 0.0, True, True
    for scene in scenes:
        view, again = (open_view(scene.splats, scene.camera, backend) for _ in range(2))
        shown, pulled = scene.shown_by(view), plain(view.scatter(scene.image))
        apart.append(np.abs(shown - scene.truth).ravel())
        repeats &= np.array_equal(shown, scene.shown_by(again))
        adjoint_repeats &= np.array_equal(pulled, plain(again.scatter(scene.image)))
        adjoint = max(adjoint, _adjoint_error(view, scene.values, scene.image))
        adjoint = max(adjoint, _adjoint_error(view, scene.values.abs(), scene.image.abs()))
    errors = np.nan_to_num(np.concatenate(apart), nan=np.inf)
    return Agreement(
        largest=float(errors.max()),
        median=float(np.median(errors)),
        steps=float((errors > STEP).mean()),
        adjoint=adjoint,
        repeats=repeats,
        adjoint_repeats=adjoint_repeats,
    )


def _adjoint_error(view: View, values: Tensor, image: Tensor) -> float:
    """Signs show what lands in the wrong place; without them, nothing cancels."""
    there = plain(view.composite(values)) * plain(image)
    back = plain(values) * plain(view.scatter(image))
    return float(abs(there.sum() - back.sum()) / np.abs(there).sum())
