# SPDX-License-Identifier: Apache-2.0
"""Adam over one table of parameters, in one native sweep over its memory."""

from __future__ import annotations

import torch
from torch import Tensor

from splatcert import _native


class AdamTable:
    """Moments of a parameter [N, ...] and its step; rows may be stepped selectively.

    Training touches tens of floats per Gaussian and step, so memory traffic is the
    cost: one sweep reads and writes everything once, and `rows` leaves out Gaussians
    the view did not draw.
    """

    def __init__(
        self,
        parameter: Tensor,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-15,
    ) -> None:
        if parameter.dtype != torch.float32 or not parameter.is_contiguous():
            raise ValueError("AdamTable steps contiguous float32 parameters")
        self.parameter = parameter
        self.first = torch.zeros_like(parameter)
        self.second = torch.zeros_like(parameter)
        self.betas = betas
        self.epsilon = epsilon
        self.steps = 0

    def step(
        self,
        grad: Tensor,
        rate: float,
        *,
        rows: Tensor | None = None,
        columns: tuple[int, int] | None = None,
    ) -> None:
        """Move the parameter in place: all of it, or some rows (bool [N]) and columns."""
        self.steps += 1
        count = self.parameter.shape[0]
        _native.adam(
            self.parameter.detach().view(count, -1),
            grad.detach().view(count, -1),
            self.first.view(count, -1),
            self.second.view(count, -1),
            rate,
            *self.betas,
            self.epsilon,
            self.steps,
            None if rows is None else rows.to(torch.uint8),
            columns or (0, self.parameter[0].numel() if count else 0),
        )
