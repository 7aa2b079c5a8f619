# SPDX-License-Identifier: Apache-2.0
"""The paper's scale s = a b~ (eq:scale): a residual field for the shape, a predictor for a."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from splatcert.certificate.content.record import Holes, ScaleRecord
from splatcert.difficulty.predictor import ViewPredictor
from splatcert.difficulty.rule import FactorRule, Unit
from splatcert.scales.scale import Array, Rule, Scale, Seen


@dataclass(frozen=True, eq=False)
class PaperScale(Scale):
    """A residual field on the Gaussians, and a view factor learned once on other scenes."""

    predictor: ViewPredictor | None = None
    """Predictor, frozen on source scenes; None for a = 1."""
    unit: Unit = "deployed"
    """Views over which a has mean one: training views, or the query batch as in the paper."""
    holes: Holes = "wide"
    """Boxes where the model shows nothing: b + (1 - alpha) prior, or the paper's plain b."""
    name: str = "paper"

    @property
    def card(self) -> Mapping[str, Any] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the predictor was learned from."""
        return None if self.predictor is None else self.predictor.card

    def settle(self, training: Seen, batch: Array) -> Rule:
        """The rule: units of the descriptor and of a, from views without labels."""
        described = np.array([view.descriptor for view in training])
        return _rule(FactorRule.freeze(self.predictor, described, batch, self.unit))

    def stored_rule(self, record: ScaleRecord) -> Rule:
        """The rule stored in a certificate."""
        return _rule(FactorRule.of(record.parameters, record.bounds))


def _rule(rule: FactorRule) -> Rule:
    return Rule(rule.lambda_b, rule.factor_of, rule.parameters(), rule.batch_only, rule.bounds)
