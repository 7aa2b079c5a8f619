# SPDX-License-Identifier: Apache-2.0
"""The frozen rule for the view factor a: from a descriptor, without any held-out label."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.factor import unit_of, view_factor
from splatcert.difficulty.predictor import FeatureUnits, ViewPredictor, predictor_from_json
from splatcert.storage.schema import from_plain, to_plain

Array = NDArray[np.float64]
Unit = Literal["deployed", "batch"]
PLAIN_LAMBDA_B = Fraction(1, 2)
"""Shrinkage of the shape without a predictor: halfway to a constant."""
REACH = 4.0
"""A raw prediction is clipped to this many times the largest one of a training view, and to the
same part of the smallest: a linear model says nothing about views that far from its own."""
Bounds = tuple[float, float]
"""Smallest and largest raw prediction."""


@dataclass(frozen=True, kw_only=True)
class FactorParameters:
    """The entries of a `FactorRule` that a certificate stores."""

    lambda_a: Fraction
    lambda_b: Fraction
    unit: Unit
    reference: float
    """Mean raw prediction of the views that set the unit of a."""
    predictor: dict[str, Any] | None
    """The frozen view predictor; None for a = 1."""
    features: tuple[str, ...]
    feature_means: tuple[float, ...]
    feature_stds: tuple[float, ...]
    """Units of the descriptor, from training views, each described by the other folds."""


@dataclass(frozen=True, eq=False)
class FactorRule:
    """The mapping from a view's descriptor to its factor a, frozen for one scene.

    `deployed`: the factor has mean one over the training views, so a camera's box does not
    depend on other queries. `batch`: mean one over the query batch, as in the paper, which
    covers views of that batch and no other camera.
    With lambda_a = 1 the two differ by one constant, which calibration cancels (lem:gauge).
    """

    predictor: ViewPredictor | None
    """Predictor, frozen on source scenes; None for a = 1."""
    units: FeatureUnits
    """Units of the descriptor, from training views described out of fold."""
    unit: Unit
    reference: float
    """Mean raw prediction of the views that set the unit."""
    bounds: Bounds | None = None
    """Range that raw predictions are clipped to; None in certificates of older schemas.

    It follows from training views alone. If calibration views could widen it, they would never
    be clipped and a new view would be, and the two would no longer be exchangeable.
    """

    @classmethod
    def freeze(
        cls, predictor: ViewPredictor | None, training: Array, batch: Array, unit: Unit
    ) -> FactorRule:
        """The rule for descriptors of training views [T, 24] and of the query batch [V, 24]."""
        units = FeatureUnits.from_descriptors(training)
        trained = raw_predictions(predictor, units, training)
        bounds = float(trained.min()) / REACH, REACH * float(trained.max())
        raw = trained if unit == "deployed" else raw_predictions(predictor, units, batch)
        return cls(predictor, units, unit, unit_of(raw), bounds)

    @classmethod
    def of(cls, parameters: dict[str, Any], bounds: Bounds | None = None) -> FactorRule:
        """The rule stored in a certificate."""
        known = from_plain(FactorParameters, parameters, "scale")
        stored = known.predictor
        predictor = None if stored is None else predictor_from_json(stored, "the stored predictor")
        units = FeatureUnits(np.array(known.feature_means), np.array(known.feature_stds))
        return cls(predictor, units, known.unit, known.reference, bounds)

    def parameters(self) -> dict[str, Any]:
        """The rule as plain values, for a certificate."""
        known = FactorParameters(
            lambda_a=self.lambda_a,
            lambda_b=self.lambda_b,
            unit=self.unit,
            reference=self.reference,
            predictor=None if self.predictor is None else self.predictor.without_field().to_json(),
            features=FEATURE_NAMES,
            feature_means=tuple(self.units.mean.tolist()),
            feature_stds=tuple(self.units.std.tolist()),
        )
        return to_plain(known)

    @property
    def lambda_a(self) -> Fraction:
        """Shrinkage of the view factor towards one."""
        return Fraction(0) if self.predictor is None else self.predictor.lambda_a

    @property
    def lambda_b(self) -> Fraction:
        """Shrinkage of the shape towards a constant."""
        return PLAIN_LAMBDA_B if self.predictor is None else self.predictor.lambda_b

    @property
    def batch_only(self) -> bool:
        """Whether only views of the query batch are covered."""
        return self.unit == "batch" and 0 < self.lambda_a < 1

    def factors(self, descriptors: Array) -> Array:
        """a_v of views with these descriptors, one per row, [n]."""
        raw = raw_predictions(self.predictor, self.units, descriptors)
        raw = raw if self.bounds is None else raw.clip(*self.bounds)
        return np.asarray(view_factor(raw, self.reference, self.lambda_a), dtype=np.float64)

    def factor(self, descriptor: Array) -> float:
        """a_v of one view."""
        return float(self.factors(descriptor[None])[0])

    def factor_of(self, query: Any) -> float:
        """a_v of a query, from its descriptor."""
        return self.factor(query.descriptor)


def raw_predictions(
    predictor: ViewPredictor | None, units: FeatureUnits, descriptors: Array
) -> Array:
    """Positive predictions before unit and shrinkage, [n]; all one without a predictor.

    Views are predicted one at a time: a matrix product may round differently for a different
    number of rows, and a prediction must not depend on other views, not even in the last bit.
    """
    if predictor is None:
        return np.ones(len(descriptors))
    rows = [predictor.raw(row[None], units) for row in descriptors]
    return np.concatenate(rows).astype(np.float64)
