# SPDX-License-Identifier: Apache-2.0
"""Studies under one protocol: scales by name, each calibrated and tested on repeated splits.

Shrinkages, and the concentration of GAVIS, are chosen by width on the source scenes of the
target's predictor, so no label of the target influences a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.splits import SplitEstimate, calibration_size, saving
from splatcert.errors import InputError
from splatcert_bench.statistics import compared_scales as scales
from splatcert_bench.statistics.choices import (
    Choice,
    MissingError,
    Protocol,
    candidate,
    choose,
    choose_product,
    evaluate,
    product,
    variants,
)
from splatcert_bench.statistics.compared_scales import CORRECTED, GUIDED, Scale
from splatcert_bench.studies.study import Prediction, Study

Array = NDArray[np.float64]
UNLEARNED = "unlearned"
"""Magnitude and shape of the residual field, each with its own shrinkage: nothing is learned."""
WIDE = "wide"
"""Ours with wide holes, where a study has their map."""


@dataclass(frozen=True)
class At:
    """Levels and calibration size of an evaluation. Default: the protocol's."""

    alpha: Fraction | None = None
    beta: Fraction | None = None
    calibration: int | None = None


AS_PROTOCOL = At()


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
        if method in (GUIDED, CORRECTED):
            return scales.guided_scale(study, method, self.pool, level)
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
