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
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.errors import InputError
from splatcert_bench.statistics import compared_scales as scales
from splatcert_bench.statistics.choices import (
    Choice,
    Form,
    MissingError,
    Protocol,
    candidate,
    choose,
    choose_product,
    evaluate,
    fields_of,
    variants,
)
from splatcert_bench.statistics.compared_scales import CORRECTED, GUIDED, Scale
from splatcert_bench.studies.study import Prediction, Study

Array = NDArray[np.float64]
UNLEARNED = "unlearned"
"""Magnitude and shape of the residual field, each with its own shrinkage: nothing is learned."""
NESTED = "nested"
"""Ours with the field's ridge and the form of the factor chosen on source scenes too."""
PAPER_RECIPE = "paper"
"""Ours with the predictor of the pool of this name, learned as in the paper."""
BATCH = "batch"
"""Ours in the paper's unit, mean one over the query batch."""
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
        if method == PAPER_RECIPE:
            return FACTORED["full"](study, study.prediction(PAPER_RECIPE), level)
        if method in (UNLEARNED, NESTED):
            form = self.unlearned(study) if method == UNLEARNED else self.form(study)
            if form.product is not None:
                return form.product.scale(study, level)
            prediction = study.prediction(self._at(form.field))
            shape, factors = scales.shape_of(form.field), prediction.factors
            return scales.factor_scale(study, factors, prediction.lambda_b, level, shape)
        chosen = self.choice(method, study)
        return candidate(study, chosen.map, chosen.weight, level)

    def parts(self, method: str, study: Study) -> tuple[str, int, Array | None]:
        """Map of a scale, index of its shrinkage, and view factors if it has any."""
        if method in ("full", WIDE):
            prediction = self.prediction(study)
            name = scales.SHAPE if method == "full" else scales.WIDE_SHAPE
            return name, LAMBDA_GRID.index(prediction.lambda_b), prediction.factors
        if method == UNLEARNED and (chosen := self.unlearned(study).product) is not None:
            factors = scales.magnitudes(study, chosen.lambda_a)
            return scales.SHAPE, LAMBDA_GRID.index(chosen.lambda_b), factors
        choice = self.choice(method, study)
        return choice.map, LAMBDA_GRID.index(choice.weight), None

    def choice(self, method: str, study: Study) -> Choice:
        """The map and shrinkage chosen for a method on a target."""
        return choose(self.sources_of(study), variants(study, method), self.protocol)

    def unlearned(self, study: Study, field: str = scales.FIELD) -> Form:
        """Magnitude and shape of a field with the shrinkages chosen for a target."""
        return choose_product(tuple(self.sources_of(study)), self.protocol, field)

    def form(self, study: Study) -> Form:
        """Ridge of the field and form of the factor, chosen for a target on its sources.

        A learned factor is judged on sources that its predictor was learned without, and none
        of them has seen the target.
        """
        tried = []
        for name in fields_of(study):
            learned = study.prediction(self._at(name))
            if not np.isfinite(learned.width):
                raise MissingError("forms are compared where predictors learn from held-out views")
            tried += [Form(name, None, learned.width), self.unlearned(study, name)]
        return min(tried, key=lambda form: form.width)

    def _at(self, field: str) -> str:
        """The pool whose predictors belong to a field."""
        return field.replace(scales.FIELD, self.pool, 1)

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
        study, prediction.factors, scales.FLAT, beta
    ),
    "shape": lambda study, prediction, beta: scales.map_scale(
        study, scales.SHAPE, prediction.lambda_b, beta
    ),
    "full": lambda study, prediction, beta: scales.factor_scale(
        study, prediction.factors, prediction.lambda_b, beta
    ),
    BATCH: lambda study, prediction, beta: scales.factor_scale(
        study, scales.batch_factors(prediction), prediction.lambda_b, beta
    ),
    WIDE: lambda study, prediction, beta: scales.factor_scale(
        study, prediction.factors, prediction.lambda_b, beta, scales.WIDE_SHAPE
    ),
    "oracle": lambda study, prediction, beta: scales.oracle_scale(study, prediction.lambda_b, beta),
}
"""Scales built from a predictor's factor and shrinkages, by name."""
