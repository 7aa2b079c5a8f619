# SPDX-License-Identifier: Apache-2.0
"""The Gaussians being trained: parameters, gradients and Adam moments, row by row.

Density control adds and removes rows, so everything that belongs to a Gaussian is kept
together and moves together.
"""

from __future__ import annotations

import torch
from torch import Tensor

from splatcert import _native
from splatcert.splats.gaussians import Splats
from splatcert.training.portable import exp

PARAMETERS = ("means", "quats", "log_scales", "logit_opacities", "sh")
BETAS = (0.9, 0.999)
EPSILON = 1e-15


class GaussianTable:
    """Raw parameters [N, ...] with gradients and moments of the same shapes."""

    def __init__(self, splats: Splats) -> None:
        self.values = {name: getattr(splats, name).detach().clone() for name in PARAMETERS}
        self.first = {name: torch.zeros_like(t) for name, t in self.values.items()}
        self.second = {name: torch.zeros_like(t) for name, t in self.values.items()}
        self.grads = {name: torch.zeros_like(t) for name, t in self.values.items()}
        self.antialiased = splats.antialiased

    def __len__(self) -> int:
        return len(self.values["means"])

    def splats(self) -> Splats:
        """The Gaussians as they are now; tensors are shared, not copied."""
        return Splats(**self.values, antialiased=self.antialiased)

    def opacities(self) -> Tensor:
        """Peak opacities, [N]."""
        return self.values["logit_opacities"].sigmoid()

    def largest_scales(self) -> Tensor:
        """Standard deviation along the longest axis, [N]."""
        return exp(self.values["log_scales"].amax(dim=1))

    def adam(
        self,
        name: str,
        rate: float,
        step: int,
        *,
        rows: Tensor | None = None,
        columns: tuple[int, int] | None = None,
        clear: bool = False,
    ) -> None:
        """One Adam step of a parameter: all of it, or some rows (uint8 [N]) and columns.

        With `clear`, the gradients it used are zero afterwards.
        """
        value = self.values[name]
        width = value[0].numel() if len(self) else 1
        _native.adam(
            value.view(-1, width),
            self.grads[name].view(-1, width),
            self.first[name].view(-1, width),
            self.second[name].view(-1, width),
            rate,
            *BETAS,
            EPSILON,
            step,
            rows,
            columns or (0, width),
            clear,
        )

    def clamp_opacities(self, most: float) -> None:
        """Lower opacities to at most `most` and reset their moments."""
        limit = torch.tensor(most).logit().item()
        self.values["logit_opacities"].clamp_(max=limit)
        self.first["logit_opacities"].zero_()
        self.second["logit_opacities"].zero_()

    def keep(self, rows: Tensor) -> None:
        """Keep only the rows that a bool mask [N] selects."""
        for tensors in (self.values, self.first, self.second):
            for name in PARAMETERS:
                tensors[name] = tensors[name][rows].contiguous()
        self._fresh_grads()

    def append(self, values: dict[str, Tensor]) -> None:
        """Add Gaussians with empty moments."""
        for name in PARAMETERS:
            new = values[name]
            self.values[name] = torch.cat([self.values[name], new])
            for moments in (self.first, self.second):
                moments[name] = torch.cat([moments[name], torch.zeros_like(new)])
        self._fresh_grads()

    def rows(self, index: Tensor) -> dict[str, Tensor]:
        """Copies of some rows' parameters."""
        return {name: self.values[name][index] for name in PARAMETERS}

    def _fresh_grads(self) -> None:
        self.grads = {name: torch.zeros_like(t) for name, t in self.values.items()}

    def tensors(self) -> dict[str, Tensor]:
        """Everything a checkpoint must hold to resume with the same bits."""
        groups = {
            "value": self.values,
            "first": self.first,
            "second": self.second,
            "grad": self.grads,
        }
        return {f"{kind}.{name}": t[name] for kind, t in groups.items() for name in PARAMETERS}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], antialiased: bool) -> GaussianTable:
        """The inverse of `tensors`."""
        table = cls.__new__(cls)
        for kind, group in (
            ("value", "values"),
            ("first", "first"),
            ("second", "second"),
            ("grad", "grads"),
        ):
            setattr(table, group, {name: tensors[f"{kind}.{name}"].clone() for name in PARAMETERS})
        table.antialiased = antialiased
        table.splats()  # checks the shapes of the values
        for group in (table.values, table.first, table.second, table.grads):
            for name, tensor in group.items():
                if tensor.shape != table.values[name].shape or tensor.dtype != torch.float32:
                    raise ValueError(f"{name} has {tensor.dtype} of shape {list(tensor.shape)}")
        return table
