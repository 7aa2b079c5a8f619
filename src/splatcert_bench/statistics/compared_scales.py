# SPDX-License-Identifier: Apache-2.0
"""The compared scales, each as view scores and means from a study."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from splatcert.difficulty.factor import LAMBDA_GRID, shrink, unit_of, view_factor
from splatcert_bench.studies.study import SHAPE, Prediction, Study

Array = NDArray[np.float64]
FLAT = Fraction(0)
FIELD = "gsu"
"""The residual field with the ridge of `[field]`; gsu@R has ridge R."""
GUIDED, CORRECTED = "guided", "corrected"
"""The guided scale around the render, and around the picture that its witnesses correct."""
HOLES, WIDE_SHAPE = "holes", "holes-pv"
"""The shape of certificates whose holes are wide; SHAPE is the paper's."""


@dataclass(frozen=True, eq=False)
class Scale:
    """A positive scale map at one beta, reduced to what View-CP and the width use."""

    scores: Array
    """R_v(s), [V]."""
    means: Array
    """Mean of s in each view, [V]."""


def map_scale(study: Study, name: str, weight: Fraction, beta: Fraction) -> Scale:
    """A stored map at one shrinkage."""
    stored = study.map(name)
    at = study.beta_index(beta), LAMBDA_GRID.index(weight)
    return Scale(stored.scores[:, at[0], at[1]], shrink(stored.means, 1.0, weight))


def factor_scale(
    study: Study, factors: Array, lambda_b: Fraction, beta: Fraction, shape_map: str = SHAPE
) -> Scale:
    """View factors on the residual field's shape: R_v(a b~) = a*_v / a_v (prop:oracle)."""
    shape = map_scale(study, shape_map, lambda_b, beta)
    return Scale(shape.scores / factors, shape.means * factors)


def guided_scale(study: Study, method: str, pool: str, beta: Fraction) -> Scale:
    """The guided scale with the guide of a pool, as it is deployed."""
    stored = study.guided_scores(method, pool)
    return Scale(stored.scores[:, study.beta_index(beta)], stored.means)


def constant_scale(study: Study, beta: Fraction) -> Scale:
    """The constant scale, against which every saving is measured."""
    return map_scale(study, SHAPE, FLAT, beta)


def oracle_scale(study: Study, lambda_b: Fraction, beta: Fraction) -> Scale:
    """The factor that each view requires; no predictor can save more with this shape."""
    return factor_scale(study, oracle_factors(study, lambda_b, beta), lambda_b, beta)


def oracle_factors(study: Study, lambda_b: Fraction, beta: Fraction) -> Array:
    """a*_v (eq:oracle-factor), [V]."""
    return map_scale(study, SHAPE, lambda_b, beta).scores


def batch_factors(prediction: Prediction) -> Array:
    """a_v in the paper's unit: mean one over the whole query batch, [V]."""
    return view_factor(prediction.raw, unit_of(prediction.raw), prediction.lambda_a)


def magnitudes(study: Study, weight: Fraction, field: str = FIELD) -> Array:
    """The magnitude of a raw field per view, without its shape, [V]."""
    stored = study.map(field)
    means = study.field_means if field == FIELD else stored.means * stored.unit
    return view_factor(means, unit_of(means), weight)


def shape_of(field: str) -> str:
    """The map that is a field normalised within each view."""
    return f"{field}-pv"
