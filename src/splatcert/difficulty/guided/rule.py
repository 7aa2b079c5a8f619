# SPDX-License-Identifier: Apache-2.0
"""The frozen rule of the guided scale: from the mean scale of a view to its factor a."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.difficulty.guided.guide import Guide
from splatcert.difficulty.predictor import LOG_BOUND
from splatcert.storage.schema import from_plain, to_plain

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GuidedRule:
    """The mapping from a view to its factor, as a certificate stores it."""

    guide: Guide

    @classmethod
    def of(cls, parameters: dict[str, Any]) -> GuidedRule:
        """The rule stored in a certificate."""
        return from_plain(cls, parameters, "scale")

    def parameters(self) -> dict[str, Any]:
        """The rule as plain values, for a certificate."""
        return to_plain(self)

    def factor(self, mean: float) -> float:
        """The factor of a view with this mean scale."""
        log_factor = self.guide.power * np.log(mean)
        return float(np.exp(np.clip(log_factor, -LOG_BOUND, LOG_BOUND)))

    def factors(self, means: Array) -> Array:
        """The factors of several views, [n]."""
        return np.array([self.factor(mean) for mean in means.tolist()])
