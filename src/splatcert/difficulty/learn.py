# SPDX-License-Identifier: Apache-2.0
"""Learning the view predictor on source scenes (alg:vscp, phase 1).

The target is log a*, the smallest factor a view needs at the shape that will be deployed,
centred within its scene. The weights model its deviation from the prior, which is the magnitude
of the residual field or a constant; a ridge penalty shrinks towards the prior. Penalty and
shrinkages are chosen together, by the width of calibrated boxes on scenes left out. The paper
chooses the penalty by rank correlation with the target (`penalty = "rank"`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from splatcert.config import LearnConfig
from splatcert.conformal.levels import parse_level
from splatcert.conformal.ranks import rank_correlation
from splatcert.difficulty.card import card_of
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.factor import LAMBDA_GRID, unit_of, view_factor
from splatcert.difficulty.predictor import ViewPredictor
from splatcert.difficulty.sources import (
    Array,
    LeftOutGroup,
    Source,
    left_out_parts,
    magnitude_of,
)

if TYPE_CHECKING:
    from splatcert.difficulty.predictor import ViewPredictor

RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0)
AS_NARROW = 0.005
"""Relative widths that differ by less count as equal when a penalty is chosen."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Log factors of all views at one shape and penalty, each view's part left out."""

    shape: int
    ridge: float
    logs: tuple[Array, ...]
    """Log factors by source, [n] each."""
    rank: float
    """Mean rank correlation with the target."""
    widths: tuple[float, ...]
    """Width relative to the constant scale, mean over scenes, at each lambda_a.

    Every choice is scored once on all scenes: a mean of per-scene minima could fall between
    grid points.
    """

    @classmethod
    def of(cls, sources: Sequence[Source], shape: int, ridge: float) -> LeftOut:
        """Predict every part without itself, and measure how well that works."""
        logs = _predict_left_out(sources, shape, ridge)
        pairs = list(zip(logs, sources, strict=True))
        ranks = [rank_correlation(log, source.target(shape)) for log, source in pairs]
        widths = [
            float(np.mean([1 - s.saving(shape, _factor(log, value)) for log, s in pairs]))
            for value in LAMBDA_GRID
        ]
        return cls(shape, ridge, tuple(logs), float(np.mean(ranks)), tuple(widths))

    def factor(self, source: int, lambda_a: Fraction) -> Array:
        """View factors of a source's views as one batch, [n]."""
        return _factor(self.logs[source], lambda_a)


def try_all(sources: Sequence[Source]) -> list[list[LeftOut]]:
    """Every shape of the grid with every penalty, each view predicted with its part left out."""
    shapes = range(len(LAMBDA_GRID))
    return [[LeftOut.of(sources, shape, ridge) for ridge in RIDGES] for shape in shapes]


def choose(tried: Sequence[Sequence[LeftOut]], penalty: str) -> list[LeftOut]:
    """The best penalty for every shape, the shape with the narrowest boxes first."""
    pick = _best_ranking if penalty == "rank" else _narrowest
    return sorted((pick(row) for row in tried), key=lambda left: min(left.widths))


def fit_predictor(
    sources: Sequence[Source],
    tried: Sequence[Sequence[LeftOut]],
    best: Sequence[LeftOut],
    config: LearnConfig,
) -> ViewPredictor:
    """The predictor fitted to all sources at the chosen settings, with its card."""
    chosen = best[0]
    lambda_a = LAMBDA_GRID[int(np.argmin(chosen.widths))]
    everything = [LeftOutGroup(k, slice(None)) for k in range(len(sources))]
    weights = fit_ridge(sources, everything, chosen.shape, chosen.ridge)
    raw = np.exp(np.concatenate([source.log_factor(weights) for source in sources]))
    in_order = sorted(best, key=lambda left: left.shape)
    return ViewPredictor(
        weights=weights,
        intercept=-float(np.log(raw.mean())),
        lambda_a=lambda_a,
        lambda_b=LAMBDA_GRID[chosen.shape],
        ridge=chosen.ridge,
        beta=parse_level(config.beta, "beta"),
        magnitude=magnitude_of(config),
        card=card_of(sources, tried, in_order, (chosen, lambda_a), config),
    )


def fit_ridge(
    sources: Sequence[Source], parts: Sequence[LeftOutGroup], shape: int, ridge: float
) -> Array:
    """Least-squares weights for the deviation of some parts' targets from the prior, [24].

    Features are centred within their scene like the targets, which gives every scene an
    intercept of its own: only differences between views of one scene are learned.
    """
    normal, moment = ridge * np.eye(len(FEATURE_NAMES)), np.zeros(len(FEATURE_NAMES))
    for part in parts:
        source = sources[part.source]
        x = (source.features - source.features.mean(axis=0))[part.rows]
        normal += x.T @ x
        moment += x.T @ source.departure(shape)[part.rows]
    return np.asarray(np.linalg.solve(normal, moment), dtype=np.float64)


def _best_ranking(tried: Sequence[LeftOut]) -> LeftOut:
    """The penalty whose predictions rank views best."""
    return max(tried, key=lambda left: (left.rank, left.ridge))


def _narrowest(tried: Sequence[LeftOut]) -> LeftOut:
    """The penalty with the narrowest boxes; among equals, the largest."""
    limit = min(min(left.widths) for left in tried) + AS_NARROW
    return max((left for left in tried if min(left.widths) <= limit), key=lambda left: left.ridge)


def _factor(log_factor: Array, lambda_a: Fraction) -> Array:
    raw = np.exp(log_factor)
    return view_factor(raw, unit_of(raw), lambda_a)


def _predict_left_out(sources: Sequence[Source], shape: int, ridge: float) -> list[Array]:
    parts = left_out_parts(sources)
    logs = [np.zeros(len(source.features)) for source in sources]
    for part in parts:
        others = [other for other in parts if other is not part]
        weights = fit_ridge(sources, others, shape, ridge)
        logs[part.source][part.rows] = sources[part.source].log_factor(weights)[part.rows]
    return logs
