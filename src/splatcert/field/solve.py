# SPDX-License-Identifier: Apache-2.0
"""Conjugate gradients with a reliable trace.

The vectors are float64 while the operator renders in float32. The residual that the
recurrence carries along is therefore checked against the true one before anything is
called converged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Operator = Callable[[Tensor], Tensor]
Reason = Literal["tolerance", "progress", "steps", "precision"]

CHECK_EVERY = 100
"""Steps of a long descent after which its residual is compared with the true one."""
DRIFTED = 2.0
"""Ratio of the true residual to the recurrence's above which rounding errors dominate."""
JITTER = 1e-4
"""Share of a block's trace that is added to its diagonal. Blocks are float32 sums and singular
where all views saw a Gaussian from one side. Rounding then leaves small negative eigenvalues,
which would make a fit that ends early depend on the axes of the frame."""
CHUNK = 1 << 15
"""Blocks inverted at a time, which bounds the memory in float64."""


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """When a fit ends."""

    tolerance: float
    """Residual relative to the right-hand side at which it has converged."""
    progress: float
    """Share of the decrease so far below which two steps in a row end it."""
    max_steps: int


@dataclass(frozen=True, kw_only=True)
class FitTrace:
    """How a fit went. Entry k of a sequence belongs to the state after k steps."""

    relative_residuals: tuple[float, ...]
    """|rhs - H x| / |rhs| by the recurrence; starts at 1 and need not fall at every step."""
    objective: tuple[float, ...]
    """What is minimised, relative to its value at the prior; falls at every step."""
    true_residual: float
    """The last relative residual, computed from its definition."""
    converged: bool
    """Whether the true residual is within the tolerance."""
    reason: Reason
    """Why it ended: within the tolerance, too little progress, step limit reached, or limited by
    float32."""

    @property
    def steps(self) -> int:
        """Steps taken."""
        return len(self.relative_residuals) - 1

    def sentence(self) -> str:
        """The outcome in words."""
        why = {
            "tolerance": "converged",
            "progress": "converged",
            "steps": "step limit reached, not converged",
            "precision": "limited by the renderer's precision, not converged",
        }[self.reason]
        return f"{why} after {self.steps} steps (relative residual {self.true_residual:.1e})"


class BlockPreconditioner:
    """One small symmetric positive matrix per Gaussian, applied as its inverse."""

    def __init__(self, blocks: Tensor, ridge: float) -> None:
        """`blocks` are lower halves by rows, [N, K (K + 1) / 2]; the ridge is added to them."""
        size = int((2 * blocks.shape[1]) ** 0.5)
        row, column = torch.tril_indices(size, size)
        self._inverse = torch.empty(len(blocks), size, size)
        for start in range(0, len(blocks), CHUNK):
            lower = blocks[start : start + CHUNK].double()
            full = lower.new_zeros(len(lower), size, size)
            full[:, row, column] = lower
            full[:, column, row] = lower
            diagonal = full.diagonal(dim1=1, dim2=2)
            diagonal += ridge + JITTER * diagonal.sum(1, keepdim=True)
            factor = torch.linalg.cholesky(full)
            self._inverse[start : start + CHUNK] = torch.cholesky_inverse(factor)

    def __call__(self, residual: Tensor) -> Tensor:
        """[N, K] to [N, K]."""
        return torch.bmm(self._inverse, residual.float()[:, :, None])[:, :, 0].double()


class Descent:
    """The state of the iteration."""

    def __init__(self, operator: Operator, precondition: Operator, rhs: Tensor) -> None:
        self.operator, self.precondition, self.rhs = operator, precondition, rhs
        self.x, self.residual = torch.zeros_like(rhs), rhs.clone()
        self.norm = _norm(rhs)
        self.residuals, self.gains = [1.0], [0.0]
        self._aim()

    def _aim(self) -> None:
        """Restart from the preconditioned residual, without earlier directions."""
        self._direction = self.precondition(self.residual)
        self._slope = _dot(self.residual, self._direction)

    def step(self) -> bool:
        """Take one step; False if rounding errors leave no descent direction."""
        image = self.operator(self._direction)
        curvature = _dot(self._direction, image)
        if not (curvature > 0 and self._slope > 0):
            return False
        length = self._slope / curvature
        self.x += length * self._direction
        self.residual -= length * image
        self.gains.append(self.gains[-1] + length * self._slope)
        self.residuals.append(_norm(self.residual) / self.norm)

        towards = self.precondition(self.residual)
        slope = _dot(self.residual, towards)
        self._direction = towards + (slope / self._slope) * self._direction
        self._slope = slope
        return True

    def check(self) -> tuple[float, bool]:
        """The true relative residual, and whether the recurrence has drifted away from it.

        If it has, the descent restarts from the true residual.
        """
        residual = self.rhs - self.operator(self.x)
        true = _norm(residual) / self.norm
        drifted = true > DRIFTED * self.residuals[-1]
        if drifted:
            self.residual = residual
            self._aim()
        return true, drifted

    def stalled(self, share: float) -> bool:
        """Whether each of the last two steps gained less than this share of the total gain."""
        if len(self.gains) < 3:
            return False
        a, b, c = self.gains[-3:]
        return max(b - a, c - b) < share * c

    def run(self, stop: Stopping, report: Callable[[int], None] | None) -> Reason | None:
        """Take steps until there is a reason to stop or the residual is due for a check."""
        for _ in range(CHECK_EVERY):
            if len(self.residuals) > stop.max_steps:
                return "steps"
            if not self.step():
                return "precision"
            if report is not None:
                report(len(self.residuals) - 1)
            if self.residuals[-1] <= stop.tolerance:
                return "tolerance"
            if self.stalled(stop.progress):
                return "progress"
        return None


def conjugate_gradients(
    operator: Operator,
    rhs: Tensor,
    precondition: Operator,
    stop: Stopping,
    *,
    start: float,
    report: Callable[[int], None] | None = None,
) -> tuple[Tensor, FitTrace]:
    """Solve operator(x) = rhs for a symmetric positive operator, from zero.

    `start` is the value at zero of the quadratic whose gradient this is; the trace is
    relative to it. If rounding has made the true residual larger than the recurrence's, the
    descent restarts from the true one, until that no longer reduces it.
    """
    if _norm(rhs) == 0:
        return torch.zeros_like(rhs), _trace([1.0], [0.0], start, 0.0, "tolerance", stop)
    descent = Descent(operator, precondition, rhs)
    best = float("inf")
    while True:
        reason = descent.run(stop, report)
        true, drifted = descent.check()
        if reason is not None and (reason != "tolerance" or true <= stop.tolerance):
            break
        if drifted and true >= best:
            reason = "precision"
            break
        best = true if drifted else best
    return descent.x, _trace(descent.residuals, descent.gains, start, true, reason, stop)


def _trace(
    residuals: list[float],
    gains: list[float],
    start: float,
    true: float,
    reason: Reason,
    stop: Stopping,
) -> FitTrace:
    return FitTrace(
        relative_residuals=tuple(residuals),
        objective=tuple(1 - gain / start if start > 0 else 1.0 for gain in gains),
        true_residual=true,
        converged=true <= stop.tolerance,
        reason=reason,
    )


def _dot(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum())


def _norm(a: Tensor) -> float:
    return _dot(a, a) ** 0.5
