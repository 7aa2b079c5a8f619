# SPDX-License-Identifier: Apache-2.0
"""Studies under one protocol: scales by name, each calibrated and tested on repeated splits.

Shrinkages, and the concentration of GAVIS, are chosen by width on the source scenes of the
target's predictor, so no label of the target influences a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.ranks import views_needed
from splatcert.conformal.splits import (
    SplitEstimate,
    calibration_size,
    draw_splits,
    evaluate_splits,
    saving,
)
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.errors import InputError
from splatcert_bench.statistics import compared_scales as scales
from splatcert_bench.statistics.compared_scales import Scale
from splatcert_bench.studies.study import Prediction, Study

Array = NDArray[np.float64]
MAGNITUDE = "magnitude"
UNLEARNED = "unlearned"
"""Magnitude and shape of the residual field, each with its own shrinkage: nothing is learned."""
WIDE = "wide"
"""Ours with wide holes, where a study has their map."""


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
class At:
    """Levels and calibration size of an evaluation. Default: the protocol's."""

    alpha: Fraction | None = None
    beta: Fraction | None = None
    calibration: int | None = None


AS_PROTOCOL = At()


@dataclass(frozen=True)
class Choice:
    """A map and a shrinkage chosen on source scenes."""

    map: str
    weight: Fraction
    width: float
    """Width relative to the constant scale, averaged over scenes."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Studies of distinct scenes, and the scenes that choices may be made on."""

    studies: tuple[Study, ...]
    sources: Mapping[str, Study]
    """By scene."""
    pool: str = "pool"
    """Pool whose predictor gives the view factors."""
    protocol: Protocol = field(default_factory=Protocol)

    @property
    def scenes(self) -> tuple[str, ...]:
        """Names of the scenes, in order."""
        return tuple(study.scene for study in self.studies)

    def where(self, keep: Callable[[Study], bool]) -> Evidence:
        """Only some of the scenes."""
        kept = tuple(study for study in self.studies if keep(study))
        return Evidence(kept, self.sources, self.pool, self.protocol)

    def by(self, pool: str) -> Evidence:
        """The scenes with a predictor from another pool, using that predictor."""
        kept = tuple(study for study in self.studies if pool in study.predictions)
        if not kept:
            raise MissingError(f"no scene has view factors from the pool {pool!r}")
        return Evidence(kept, self.sources, pool, self.protocol)

    def having(self, *methods: str) -> Evidence:
        """Only the scenes that have all of these scales."""
        found = self.where(lambda study: all(self.can(method, study) for method in methods))
        if not found.studies:
            raise MissingError(f"no scene has all of: {', '.join(methods)}")
        return found

    def can(self, method: str, study: Study) -> bool:
        """Whether a scene has a scale."""
        try:
            self.scale(method, study)
        except InputError:
            return False
        return True

    def somewhere(self, *methods: str) -> list[str]:
        """The methods that at least one scene has."""
        return [m for m in methods if any(self.can(m, study) for study in self.studies)]

    def prediction(self, study: Study) -> Prediction:
        """View factors from this evidence's pool."""
        return study.prediction(self.pool)

    def scale(self, method: str, study: Study, beta: Fraction | None = None) -> Scale:
        """A scale by name: one in FACTORED, the magnitude, a map, or a map's best variant."""
        level = self.protocol.beta if beta is None else beta
        if method in FACTORED:
            return FACTORED[method](study, self.prediction(study), level)
        if method == UNLEARNED:
            return product(study, *self.shrinkages(study), level)
        chosen = self.choice(method, study)
        return candidate(study, chosen.map, chosen.weight, level)

    def choice(self, method: str, study: Study) -> Choice:
        """The map and shrinkage chosen for a method on a target."""
        return choose(self.sources_of(study), variants(study, method), self.protocol)

    def shrinkages(self, study: Study) -> tuple[Fraction, Fraction]:
        """Shrinkages of magnitude and shape, chosen for a target without learning."""
        return choose_product(tuple(self.sources_of(study)), self.protocol)

    def sources_of(self, study: Study) -> list[Study]:
        """The source scenes of a target that choices are made on."""
        return [self.sources[s] for s in self.prediction(study).sources if s in self.sources]

    def outcome(self, method: str, study: Study, at: At = AS_PROTOCOL) -> SplitEstimate:
        """Coverage and width of a scale over repeated splits."""
        alpha = self.protocol.alpha if at.alpha is None else at.alpha
        size = calibration_size(len(study)) if at.calibration is None else at.calibration
        return evaluate(self.scale(method, study, at.beta), self.protocol, alpha, size)

    def saving(self, method: str, study: Study, at: At = AS_PROTOCOL) -> float:
        """Percentage of the constant scale's width that a scale saves on a scene."""
        widths = [self.outcome(name, study, at).mean_width for name in (method, "constant")]
        return 100 * saving(*widths)

    def savings(self, method: str, at: At = AS_PROTOCOL) -> Array:
        """Savings of every scene, in order, [scenes]."""
        return np.array([self.saving(method, study, at) for study in self.studies])

    def coverages(self, method: str, at: At = AS_PROTOCOL) -> Array:
        """Percentage of test views covered, averaged over splits, by scene."""
        return np.array([100 * self.outcome(method, study, at).coverage for study in self.studies])


FACTORED: Mapping[str, Callable[[Study, Prediction, Fraction], Scale]] = {
    "constant": lambda study, _, beta: scales.constant_scale(study, beta),
    "a": lambda study, prediction, beta: scales.factor_scale(
        study, scales.view_factors(prediction), scales.FLAT, beta
    ),
    "shape": lambda study, prediction, beta: scales.map_scale(
        study, scales.SHAPE, prediction.lambda_b, beta
    ),
    "full": lambda study, prediction, beta: scales.factor_scale(
        study, scales.view_factors(prediction), prediction.lambda_b, beta
    ),
    WIDE: lambda study, prediction, beta: scales.factor_scale(
        study, scales.view_factors(prediction), prediction.lambda_b, beta, scales.WIDE_SHAPE
    ),
    "oracle": lambda study, prediction, beta: scales.oracle_scale(study, prediction.lambda_b, beta),
}
"""Scales built from a predictor's factor and shrinkages, by name."""


def candidate(study: Study, name: str, weight: Fraction, beta: Fraction) -> Scale:
    """A map, or the magnitude of the raw field alone, at one shrinkage."""
    if name == MAGNITUDE:
        factors = scales.magnitudes(study, weight)
        return scales.factor_scale(study, factors, scales.FLAT, beta)
    return scales.map_scale(study, name, weight, beta)


def product(study: Study, lambda_a: Fraction, lambda_b: Fraction, beta: Fraction) -> Scale:
    """The field's own magnitude on its shape."""
    return scales.factor_scale(study, scales.magnitudes(study, lambda_a), lambda_b, beta)


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
def choose_product(sources: tuple[Study, ...], protocol: Protocol) -> tuple[Fraction, Fraction]:
    """Shrinkages of magnitude and shape with the least mean relative width on source scenes."""
    if not sources:
        raise MissingError("there is no source scene to choose shrinkages on")

    def width(pair: tuple[Fraction, Fraction]) -> float:
        return float(np.mean([_product_width(study, *pair, protocol) for study in sources]))

    return min(((a, b) for a in LAMBDA_GRID for b in LAMBDA_GRID), key=width)


def pool_width(studies: Sequence[Study], name: str, weight: Fraction, protocol: Protocol) -> float:
    """Mean over scenes of a map's width relative to the constant scale's."""
    return float(np.mean([_relative_width(study, name, weight, protocol) for study in studies]))


_splits = lru_cache(maxsize=64)(draw_splits)


@lru_cache(maxsize=1 << 14)
def _relative_width(study: Study, name: str, weight: Fraction, protocol: Protocol) -> float:
    return _against_constant(study, candidate(study, name, weight, protocol.beta), protocol)


@lru_cache(maxsize=1 << 14)
def _product_width(
    study: Study, lambda_a: Fraction, lambda_b: Fraction, protocol: Protocol
) -> float:
    return _against_constant(study, product(study, lambda_a, lambda_b, protocol.beta), protocol)


def _against_constant(study: Study, scale: Scale, protocol: Protocol) -> float:
    size = calibration_size(len(study))
    forms = (scale, scales.constant_scale(study, protocol.beta))
    widths = [evaluate(form, protocol, protocol.alpha, size).mean_width for form in forms]
    return widths[0] / widths[1]


def variants(study: Study, method: str) -> list[str]:
    """The map of that name, or the maps that differ from it only by a parameter.

    gavis-16 and gavis-64 are variants of gavis, gavis-64-pv is one of gavis-pv.
    """
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
