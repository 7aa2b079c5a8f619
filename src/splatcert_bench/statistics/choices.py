# SPDX-License-Identifier: Apache-2.0
"""Shrinkages and parameters of maps, chosen by width on source scenes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from splatcert.conformal.ranks import views_needed
from splatcert.conformal.splits import (
    SplitEstimate,
    calibration_size,
    draw_splits,
    evaluate_splits,
)
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.errors import InputError
from splatcert_bench.statistics import compared_scales as scales
from splatcert_bench.statistics.compared_scales import Scale
from splatcert_bench.studies.study import Study

MAGNITUDE = "magnitude"
ANY_RIDGE = "gsu-any-ridge"
"""The residual field with the ridge that source scenes prefer for it."""


class MissingError(InputError):
    """Studies that lack something a table requires; the message says what."""


@dataclass(frozen=True)
class Protocol:
    """How scales are calibrated and compared."""

    alpha: Fraction = Fraction(1, 10)
    beta: Fraction = Fraction(1, 10)
    splits: int = 200
    native_splits: int = 100
    """Number of splits for tab:validity."""
    seed: int = 0
    resamples: int = 10_000


@dataclass(frozen=True)
class Choice:
    """A map and a shrinkage chosen on source scenes."""

    map: str
    weight: Fraction
    width: float
    """Width relative to the constant scale, averaged over scenes."""


def candidate(study: Study, name: str, weight: Fraction, beta: Fraction) -> Scale:
    """A map, or the magnitude of the raw field alone, at one shrinkage."""
    if name == MAGNITUDE:
        factors = scales.magnitudes(study, weight)
        return scales.factor_scale(study, factors, scales.FLAT, beta)
    return scales.map_scale(study, name, weight, beta)


@dataclass(frozen=True)
class Product:
    """A field's own magnitude on its shape, each with its shrinkage."""

    field: str
    lambda_a: Fraction
    lambda_b: Fraction

    def scale(self, study: Study, beta: Fraction) -> Scale:
        """The scale on a study."""
        factors = scales.magnitudes(study, self.lambda_a, self.field)
        shape = scales.shape_of(self.field)
        return scales.factor_scale(study, factors, self.lambda_b, beta, shape)


@dataclass(frozen=True)
class Form:
    """A field, and whether its view factor is learned or its own magnitude."""

    field: str
    product: Product | None
    """None if the factor is learned."""
    width: float
    """Width relative to the constant scale on the sources of the choice."""


def evaluate(scale: Scale, protocol: Protocol, alpha: Fraction, calibration: int) -> SplitEstimate:
    """A scale on the protocol's splits."""
    if calibration < views_needed(alpha):
        raise MissingError(f"{calibration} calibration views give no finite threshold at {alpha}")
    splits = _splits(scale.scores.size, calibration, protocol.splits, protocol.seed)
    return evaluate_splits(scale.scores, scale.means, alpha, splits)


def choose(sources: Sequence[Study], names: Sequence[str], protocol: Protocol) -> Choice:
    """The map and shrinkage with the least mean relative width on source scenes.

    Every candidate is scored once on the whole pool, because a mean of per-scene minima could
    fall between grid points. The rule here is the first minimum among the candidates, every map
    at every shrinkage. `splatcert.difficulty.learn` chooses a predictor's shrinkages by another
    rule: at each lambda_b the firmest ridge whose width is within 0.005 of the narrowest, then
    the narrowest of those. Sharing one rule would change published tables.
    """
    known = [s for s in sources if all(name == MAGNITUDE or name in s.maps for name in names)]
    if not known:
        raise MissingError(f"no source scene has {' and '.join(names)} to choose a shrinkage on")
    tried = [
        Choice(name, weight, pool_width(known, name, weight, protocol))
        for name in names
        for weight in LAMBDA_GRID
    ]
    return min(tried, key=lambda choice: choice.width)


@lru_cache(maxsize=256)
def choose_product(sources: tuple[Study, ...], protocol: Protocol, field: str) -> Form:
    """The product of magnitude and shape with the least mean relative width on source scenes."""
    if not sources:
        raise MissingError("no source scenes to choose shrinkages on")
    tried = [Product(field, a, b) for a in LAMBDA_GRID for b in LAMBDA_GRID]
    widths = [np.mean([_product_width(s, one, protocol) for s in sources]) for one in tried]
    best = int(np.argmin(widths))
    return Form(field, tried[best], float(widths[best]))


def pool_width(studies: Sequence[Study], name: str, weight: Fraction, protocol: Protocol) -> float:
    """Mean over scenes of a map's width relative to the constant scale's."""
    return float(np.mean([_relative_width(study, name, weight, protocol) for study in studies]))


_splits = lru_cache(maxsize=64)(draw_splits)


@lru_cache(maxsize=1 << 14)
def _relative_width(study: Study, name: str, weight: Fraction, protocol: Protocol) -> float:
    return _against_constant(study, candidate(study, name, weight, protocol.beta), protocol)


@lru_cache(maxsize=1 << 14)
def _product_width(study: Study, product: Product, protocol: Protocol) -> float:
    return _against_constant(study, product.scale(study, protocol.beta), protocol)


def _against_constant(study: Study, scale: Scale, protocol: Protocol) -> float:
    size = calibration_size(len(study))
    forms = (scale, scales.constant_scale(study, protocol.beta))
    widths = [evaluate(form, protocol, protocol.alpha, size).mean_width for form in forms]
    return widths[0] / widths[1]


def fields_of(study: Study) -> list[str]:
    """The residual fields of a study, by ridge; more than one, or none can be chosen."""
    found = [n for n in sorted(study.maps) if n.startswith(f"{scales.FIELD}@")]
    found = [name for name in found if not name.endswith("-pv")]
    if not found:
        raise MissingError(f"scene {study.scene} has fields of one ridge only")
    return [scales.FIELD, *found]


def variants(study: Study, method: str) -> list[str]:
    """The map of that name, or the maps that differ from it only by a parameter.

    gavis-16 and gavis-64 are variants of gavis, gavis-64-pv is one of gavis-pv.
    """
    if method == ANY_RIDGE:
        return fields_of(study)
    if method == MAGNITUDE or method in study.maps:
        return [method]
    stem, per_view = method.removesuffix("-pv"), method.endswith("-pv")
    found = [
        name
        for name in sorted(study.maps)
        if name.endswith("-pv") == per_view
        and name.startswith(f"{stem}-")
        and name.removesuffix("-pv").removeprefix(f"{stem}-").isdigit()
    ]
    if not found:
        raise MissingError(f"scene {study.scene} has no map {method!r}")
    return found
