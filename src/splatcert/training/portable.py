# SPDX-License-Identifier: Apache-2.0
"""Functions with the same bits on processors of every maker.

Torch's own call a library that chooses its kernels by the maker of the processor, so the same
training would give other models on AMD than on Intel.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def exp(values: Tensor) -> Tensor:
    """The exponential of every entry."""
    return torch.from_numpy(np.exp(values.numpy()))


def exponential(count: int, random: torch.Generator) -> Tensor:
    """Samples of the exponential distribution with mean 1, [N]."""
    uniform = torch.rand(count, generator=random, dtype=torch.float64)
    return torch.from_numpy(-np.log1p(-uniform.numpy())).float()
