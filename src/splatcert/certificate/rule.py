# SPDX-License-Identifier: Apache-2.0
"""How a query becomes a scale, s = a b~ (eq:scale), without any held-out label."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.record import ScaleRecord
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.factor import unit_of, view_factor
from splatcert.difficulty.predictor import FeatureUnits, ViewPredictor, predictor_from_json
from splatcert.field.fitted_scene import Query

Array = NDArray[np.float64]
Unit = Literal["deployed", "batch"]

PLAIN_LAMBDA_B = Fraction(1, 2)
"""Shrinkage of the shape where no predictor says otherwise: half way to a constant."""


@dataclass(frozen=True, eq=False)
class ScaleRule:
    """The frozen scale construction of one scene.

    `deployed`: the view factor has mean one over the training views, so a camera's box is
    the same whatever else is asked. `batch`: mean one over the query batch, as in the paper,
    which covers views of that batch and no camera asked later.
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
        return cls(predictor, units, unit, unit_of(raw))

    @classmethod
    def of(cls, record: ScaleRecord) -> ScaleRule:
        """The rule that a certificate has stored."""
        stored = record.predictor
        predictor = None if stored is None else predictor_from_json(stored, "the stored predictor")
        means, stds = np.array(record.feature_means), np.array(record.feature_stds)
        return cls(predictor, FeatureUnits(means, stds), record.unit, record.reference)

    def record(self) -> ScaleRecord:
        """The rule for a certificate to store."""
        return ScaleRecord(
            lambda_a=self.lambda_a,
            lambda_b=self.lambda_b,
            unit=self.unit,
            reference=self.reference,
            predictor=None if self.predictor is None else self.predictor.to_json(),
            features=FEATURE_NAMES,
            feature_means=tuple(self.units.mean.tolist()),
            feature_stds=tuple(self.units.std.tolist()),
        )

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

    def scale(self, query: Query) -> Array:
        """S = a b~ (eq:scale) of a query, float64 [H, W]."""
        shape = query.shape(self.lambda_b).cpu().numpy().astype(np.float64)
        return self.factor(query.descriptor) * shape


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
