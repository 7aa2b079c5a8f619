# SPDX-License-Identifier: Apache-2.0
"""How a query becomes a scale, s = a b~ (eq:scale), without any held-out label."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.scale import shape, view_factor
from splatcert.view.predictor import FeatureUnits, ViewPredictor

Array = NDArray[np.float64]
Unit = Literal["deployed", "batch"]

PLAIN_LAMBDA_B = Fraction(1, 2)
"""Shrinkage of the shape where no predictor says otherwise: half way to a constant."""


@dataclass(frozen=True, eq=False)
class ScaleRule:
    """The frozen scale construction of one scene.

    `deployed`: the view factor has mean one over the training views, so a camera's box is
    the same whatever else is asked. `batch`: mean one over the query batch, as in the paper.
    With lambda_a = 1 the two differ by one constant, which calibration cancels (lem:gauge).
    """

    predictor: ViewPredictor | None
    """Frozen on source scenes; None for a = 1."""
    units: FeatureUnits
    """Of the descriptor, from training views described out of fold."""
    unit: Unit
    reference: float
    """Mean raw prediction of the views that set the unit."""

    @classmethod
    def freeze(
        cls, predictor: ViewPredictor | None, training: Array, batch: Array, unit: Unit
    ) -> ScaleRule:
        """The rule for descriptors of training views [T, 24] and of the query batch [V, 24]."""
        units = FeatureUnits.from_descriptors(training)
        raw = raw_predictions(predictor, units, training if unit == "deployed" else batch)
        # A mean that does not depend on the order of views, to the last bit.
        return cls(predictor, units, unit, float(np.sort(raw).mean()))

    @property
    def lambda_a(self) -> Fraction:
        """Shrinkage of the view factor towards one."""
        return Fraction(0) if self.predictor is None else self.predictor.lambda_a

    @property
    def lambda_b(self) -> Fraction:
        """Shrinkage of the shape towards a constant."""
        return PLAIN_LAMBDA_B if self.predictor is None else self.predictor.lambda_b

    def factors(self, descriptors: Array) -> Array:
        """a_v of views described by rows, [n]."""
        raw = raw_predictions(self.predictor, self.units, descriptors)
        return np.asarray(view_factor(raw, self.reference, self.lambda_a), dtype=np.float64)

    def factor(self, descriptor: Array) -> float:
        """a_v of one view."""
        return float(self.factors(descriptor[None])[0])

    def shape(self, field: Tensor) -> Tensor:
        """b~ of a rendered field, within-view mean one, [H, W]."""
        return shape(field, self.lambda_b)


def raw_predictions(
    predictor: ViewPredictor | None, units: FeatureUnits, descriptors: Array
) -> Array:
    """Positive predictions before unit and shrinkage, [n]; all one without a predictor.

    One view at a time: a matrix product may round differently for another number of rows,
    and a view's answer must not depend on its company, not even in the last bit.
    """
    if predictor is None:
        return np.ones(len(descriptors))
    rows = [predictor.raw(row[None], units) for row in descriptors]
    return np.concatenate(rows).astype(np.float64)
