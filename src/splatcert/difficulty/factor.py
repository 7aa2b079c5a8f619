# SPDX-License-Identifier: Apache-2.0
"""The scale before calibration, s = a * b~ (eq:scale): a view's factor times its shape.

It uses only operators that NumPy arrays and torch tensors share, so that tables and the
renderer use the same code. Numbers keep their type and precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeVar, cast

from splatcert.errors import InputError

LAMBDA_GRID = tuple(Fraction(step, 4) for step in range(5))
"""Shrinkages that source scenes choose from: 0, 1/4, 1/2, 3/4, 1."""
Values = TypeVar("Values")


class ScaleError(InputError):
    """A factor or shape that cannot be formed."""


def shape(field_map: Values, lambda_b: Fraction | float) -> Values:
    """The relative difficulty within a view: [H, W] with mean one.

    eq:shrinkage   b~ = (1 - lambda_b) + lambda_b * b / mean(b)

    The mean is over the whole image, never over a mask: a mask belongs to a photo, and
    the scale of a view must not depend on its photo.
    """
    field: Any = field_map
    return shrink(field_map, field.mean(), lambda_b)


def view_factor(raw: Values, unit: float, lambda_a: Fraction | float) -> Values:
    """The difficulty of a view as a whole, from its raw prediction.

    eq:shrinkage   a = (1 - lambda_a) + lambda_a * raw / unit

    The unit must be the same for calibration and new views (prop:equivariance): `unit_of`
    the training views' predictions, or of the whole query batch.
    """
    return shrink(raw, unit, lambda_a)


def unit_of(raw: Iterable[float]) -> float:
    """Mean of positive raw predictions, rounded once, so the order of views does not matter."""
    values = [float(value) for value in raw]
    if not values or not all(0 < value < math.inf for value in values):
        raise ScaleError(f"raw view predictions must be positive and finite, got {values[:5]}")
    return math.fsum(values) / len(values)


def shrink(values: Values, unit: Any, weight: Fraction | float) -> Values:
    """Values in units of `unit`, shrunk towards one: weight 0 gives one, weight 1 no shrinkage.

    With one unit for a whole scene this also normalises other methods' maps
    (eq:baseline-normalization), and keeps their differences between views.
    """
    kept, numbers = shrinkage(unit, weight), cast("Any", values)
    shrunk = numbers / unit
    shrunk *= kept  # in place: a map of a large picture costs more to store than to compute
    shrunk += 1 - kept
    return shrunk


def shrinkage(unit: Any, weight: Fraction | float) -> float:
    """The weight of a shrinkage as a number; refuses one that means nothing."""
    kept = float(weight)
    if not 0 <= kept <= 1:
        raise ScaleError(f"a shrinkage must lie in [0, 1], got {weight}")
    if not 0 < unit < math.inf:
        raise ScaleError(f"the unit of a scale must be positive and finite, got {unit}")
    return kept
