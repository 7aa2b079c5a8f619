# SPDX-License-Identifier: Apache-2.0
"""How much each Gaussian was seen, from which directions, and how badly it was rendered.

eq:support   E_i = sum_tp w_tpi      D_i = sum_t (sum_p w_tpi) d_ti

Directions d_ti run from the Gaussian to the camera.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


def folds_of(names: Sequence[str], folds: int) -> list[int]:
    """Fold of each training view: folds are interleaved in the order of the names."""
    place = {name: k for k, name in enumerate(sorted(names))}
    return [place[name] % folds for name in names]


@dataclass(frozen=True, eq=False)
class Support:
    """How a set of training views observed each Gaussian."""

    exposure: Tensor
    """E_i, sum of weights over views and pixels, [N]."""
    direction: Tensor
    """D_i, weighted sum of directions to the cameras, [N, 3]."""
    error: Tensor
    """Sum of weight times residual over the pixels that count, [N]."""

    @classmethod
    def from_sums(cls, sums: Tensor) -> Support:
        """Support from columns of exposure, direction and error, [N, 5]."""
        return cls(sums[:, 0], sums[:, 1:4], sums[:, 4])

    def log_exposure(self) -> Tensor:
        """log(1 + E), [N]."""
        return torch.log1p(self.exposure)

    def spread(self) -> Tensor:
        """1 - |D| / E: 0 where all views saw it from one side or no view saw it, [N]."""
        seen = self.exposure > 0
        ratio = self.direction.norm(dim=1) / torch.where(seen, self.exposure, 1.0)
        return torch.where(seen, (1 - ratio).clamp(0, 1), 0.0)

    def residual_summary(self) -> Tensor:
        """Weighted mean of the training residual over its pixels; 0 if unseen, [N]."""
        return self.error / self.exposure.clamp(min=torch.finfo(self.exposure.dtype).tiny)


@dataclass(frozen=True, eq=False)
class FoldedSupport:
    """Support of each fold of training views."""

    sums: Tensor
    """Exposure, direction and error of each fold, [F, N, 5]."""

    def __len__(self) -> int:
        return len(self.sums)

    @property
    def folds(self) -> tuple[Support, ...]:
        """Support of each fold alone."""
        return tuple(Support.from_sums(part) for part in self.sums)

    @cached_property
    def total(self) -> Support:
        """All training views together."""
        return Support.from_sums(self.sums.sum(0))

    def without(self, fold: int) -> Support:
        """All training views except those of one fold.

        The other folds are added up. Subtracting the fold from the total would leave rounding
        errors where only that fold saw a Gaussian, which would look like an exposure.
        """
        if not 0 <= fold < len(self):
            raise IndexError(f"fold {fold} of {len(self)}")
        others = [part for k, part in enumerate(self.sums) if k != fold]
        return Support.from_sums(sum(others[1:], others[0]))
