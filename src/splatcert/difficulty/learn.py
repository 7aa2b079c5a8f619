# SPDX-License-Identifier: Apache-2.0
"""Learning the view predictor on source scenes (alg:vscp, phase 1).

The target is log a*, the smallest factor a view needs at the shape that will be deployed,
centred within its scene. What is learned is how it departs from the magnitude of the residual
field, or from a constant, as the prior says; a ridge penalty draws towards that. Penalty and
shrinkages are chosen together, by the width of calibrated boxes on scenes left out. The paper
chooses the penalty by rank correlation with the target (`penalty = "rank"`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from splatcert import __version__
from splatcert.config import LearnConfig
from splatcert.conformal.levels import parse_level
from splatcert.conformal.ranks import rank_correlation
from splatcert.conformal.splits import calibration_size, draw_splits, estimate, saving
from splatcert.difficulty.descriptor import FEATURE_NAMES, check_schema
from splatcert.difficulty.factor import LAMBDA_GRID, unit_of, view_factor
from splatcert.difficulty.predictor import FeatureUnits, ViewPredictor
from splatcert.difficulty.views_file import SceneViews
from splatcert.errors import InputError

if TYPE_CHECKING:
    from splatcert.difficulty.predictor import ViewPredictor

Array = NDArray[np.float64]
RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0)
ALPHA = Fraction(1, 10)
"""View level at which the width of shrinkages is compared."""
AS_NARROW = 0.005
"""Difference between relative widths that counts as none when a penalty is chosen."""
FOLDS = 5
"""Of a single source scene, interleaved, in place of scenes left out."""


class LearnError(InputError):
    """Source scenes that a predictor cannot be learned from."""


@dataclass(frozen=True, eq=False)
class Source:
    """One source scene as learning sees it."""

    views: SceneViews
    features: Array
    """Descriptors in the scene's own units, [n, 24]."""
    oracle: Array
    """a* at each shape of LAMBDA_GRID, [n, 5]."""
    prior: Array
    """Log factor that weights of zero stand for, up to a constant of the scene, [n]."""
    splits: NDArray[np.bool_]
    """[count, n]."""
    dropped: int = 0
    """Further views, without a target."""

    def target(self, shape: int) -> Array:
        """Log a* at shape `shape` of the grid, centred, [n]."""
        log_oracle = np.log(self.oracle[:, shape])
        return log_oracle - log_oracle.mean()

    def departure(self, shape: int) -> Array:
        """What the weights have to explain: the target without the prior, centred, [n]."""
        return self.target(shape) - (self.prior - self.prior.mean())

    def log_factor(self, weights: Array) -> Array:
        """Predictions of all views, up to a constant, [n]."""
        return self.features @ weights + self.prior

    def width(self, shape: int, factor: Array) -> float:
        """Mean half-width at that shape with these view factors, over random splits."""
        return estimate(self.oracle[:, shape], factor, ALPHA, self.splits).mean_width

    def saving(self, shape: int, factor: Array) -> float:
        """What that scale saves against the constant one."""
        return saving(self.width(shape, factor), self.width(0, np.ones(len(factor))))


@dataclass(frozen=True)
class Part:
    """Views that are left out together: a scene, or a fold of the only one."""

    source: int
    rows: slice


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Log factors of all views at one shape and penalty, each predicted without its own part."""

    shape: int
    ridge: float
    logs: tuple[Array, ...]
    """By source, [n] each."""
    rank: float
    """Mean rank correlation with the target."""
    widths: tuple[float, ...]
    """Width over that of the constant scale, mean over scenes, at each lambda_a.

    Every choice is scored once on the whole pool: a mean of per-scene minima could fall
    between grid points.
    """

    @classmethod
    def of(cls, sources: Sequence[Source], shape: int, ridge: float) -> LeftOut:
        """Predict every part without itself, and see how well that does."""
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


def learn_predictor(scenes: Sequence[SceneViews], config: LearnConfig) -> ViewPredictor:
    """Fit theta and choose ridge, lambda_a and lambda_b on source scenes."""
    beta = parse_level(config.beta, "beta")
    sources = [_source(scene, config, beta) for scene in _distinct(scenes)]
    shapes = [
        [LeftOut.of(sources, shape, ridge) for ridge in RIDGES] for shape in range(len(LAMBDA_GRID))
    ]
    choose = _best_ranking if config.penalty == "rank" else _narrowest
    best = [choose(tried) for tried in shapes]
    chosen = min(best, key=lambda left: min(left.widths))
    lambda_a = LAMBDA_GRID[int(np.argmin(chosen.widths))]

    everything = [Part(k, slice(None)) for k in range(len(sources))]
    weights = fit_ridge(sources, everything, chosen.shape, chosen.ridge)
    raw = np.exp(np.concatenate([source.log_factor(weights) for source in sources]))
    return ViewPredictor(
        weights=weights,
        intercept=-float(np.log(raw.mean())),
        lambda_a=lambda_a,
        lambda_b=LAMBDA_GRID[chosen.shape],
        ridge=chosen.ridge,
        beta=beta,
        magnitude=_magnitude(config),
        card=_card(sources, shapes, best, (chosen, lambda_a), config),
    )


def fit_ridge(sources: Sequence[Source], parts: Sequence[Part], shape: int, ridge: float) -> Array:
    """Weights of least squares on how the targets of some parts depart from the prior, [24].

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
    """The penalty with the narrowest boxes; of those that do as well, the firmest."""
    limit = min(min(left.widths) for left in tried) + AS_NARROW
    return max((left for left in tried if min(left.widths) <= limit), key=lambda left: left.ridge)


def _factor(log_factor: Array, lambda_a: Fraction) -> Array:
    raw = np.exp(log_factor)
    return view_factor(raw, unit_of(raw), lambda_a)


def _predict_left_out(sources: Sequence[Source], shape: int, ridge: float) -> list[Array]:
    parts = _parts(sources)
    logs = [np.zeros(len(source.features)) for source in sources]
    for part in parts:
        others = [other for other in parts if other is not part]
        weights = fit_ridge(sources, others, shape, ridge)
        logs[part.source][part.rows] = sources[part.source].log_factor(weights)[part.rows]
    return logs


def _parts(sources: Sequence[Source]) -> list[Part]:
    if len(sources) > 1:
        return [Part(k, slice(None)) for k in range(len(sources))]
    return [Part(0, slice(fold, None, FOLDS)) for fold in range(FOLDS)]


def _distinct(scenes: Sequence[SceneViews]) -> Sequence[SceneViews]:
    """Scenes of different captures; folders may be called as they like."""
    if not scenes:
        raise LearnError("a view predictor needs at least one source scene, got none")
    known: dict[str, SceneViews] = {}
    for scene in scenes:
        identity = _identity(scene)
        if twin := next((known[mark] for mark in identity if mark in known), None):
            names = sorted({twin.scene, scene.scene})
            again = "" if len(names) == 1 else f" (as {' and '.join(names)})"
            raise LearnError(
                f"scene {names[0]} was given twice{again}: leaving one out would leave it in.\n"
                "  Give every capture once."
            )
        known |= dict.fromkeys(identity, scene)
    return scenes


def _identity(scene: SceneViews) -> list[str]:
    """What no other capture shares: the hash of its splats and those of its photos."""
    marks = {name: text.partition(" ")[0] for name, text in scene.hashes.items()}
    return sorted(set(marks.values())) or [f"name {scene.scene}"]


def _source(scene: SceneViews, config: LearnConfig, beta: Fraction) -> Source:
    """A scene's views in its own units, those with a target.

    There is none for a view without a photo, one that is masked altogether, and one that
    is rendered without any error.
    """
    check_schema(scene.schema, f"the views of scene {scene.scene}")
    table = scene.views(config.views)
    oracle = np.stack([scene.oracle(config.views, beta, value) for value in LAMBDA_GRID], axis=1)
    usable = np.isfinite(oracle).all(axis=1) & (oracle > 0).all(axis=1)
    count = int(usable.sum())
    calibration = calibration_size(count)
    if count <= calibration:
        unusable = len(table) - count
        without = f" with a target and {unusable} without" if unusable else ""
        raise LearnError(
            f"scene {scene.scene} has {count} {config.views} views{without}; widths are compared "
            f"on splits of at least {calibration + 1}.\n  Leave it out, or use its other views."
        )
    units = FeatureUnits.from_descriptors(scene.training.descriptors)
    splits = draw_splits(count, calibration, config.splits, config.seed)
    return Source(
        views=scene,
        features=units.standardise(table.descriptors[usable]),
        oracle=oracle[usable],
        prior=_magnitude(config) * units.log_magnitude(table.descriptors[usable]),
        splits=splits,
        dropped=len(table) - count,
    )


def _magnitude(config: LearnConfig) -> float:
    return 1.0 if config.prior == "magnitude" else 0.0


def _card(
    sources: Sequence[Source],
    shapes: Sequence[Sequence[LeftOut]],
    best: Sequence[LeftOut],
    choice: tuple[LeftOut, Fraction],
    config: LearnConfig,
) -> dict[str, Any]:
    """What the predictor was learned from, and how it did on scenes it had not seen."""
    chosen, lambda_a = choice
    tried, column = shapes[chosen.shape], LAMBDA_GRID.index(lambda_a)
    rows = [_card_row(source, k, chosen, lambda_a) for k, source in enumerate(sources)]
    means = {
        name: float(np.mean([row["saving"][name] for row in rows])) for name in rows[0]["saving"]
    }
    alone = f"interleaved folds of the only scene, {FOLDS}"
    return {
        "splatcert": __version__,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "views": config.views,
        "prior": config.prior,
        "alpha": str(ALPHA),
        "splits": config.splits,
        "seed": config.seed,
        "left_out": "one scene at a time" if len(sources) > 1 else alone,
        "penalty": config.penalty,
        "ridge_scores": {str(left.ridge): left.rank for left in tried},
        "ridge_widths": {str(left.ridge): left.widths[column] for left in tried},
        "lambda_grid": [str(value) for value in LAMBDA_GRID],
        "relative_width": {
            f"lambda_b={LAMBDA_GRID[left.shape]}": list(left.widths) for left in best
        },
        "scenes": rows,
        "mean_saving": means,
        "mean_spearman": float(np.mean([row["spearman"] for row in rows])),
    }


def _card_row(source: Source, at: int, chosen: LeftOut, lambda_a: Fraction) -> dict[str, Any]:
    """One scene, predicted without it: rank correlation and what each factor saves."""
    factor = chosen.factor(at, lambda_a)
    oracle = source.oracle[:, chosen.shape]
    return {
        "scene": source.views.scene,
        "views": len(source.features),
        "dropped": source.dropped,
        "spearman": rank_correlation(chosen.logs[at], oracle),
        "saving": {
            "full": source.saving(chosen.shape, factor),
            "a": source.saving(0, factor),
            "b": source.saving(chosen.shape, np.ones(len(factor))),
            "oracle": source.saving(chosen.shape, oracle),
        },
        "hashes": dict(sorted(source.views.hashes.items())),
        "table": _table_hash(source),
    }


def _table_hash(source: Source) -> str:
    """SHA-256 of the numbers that were learned from."""
    digest = hashlib.sha256()
    for array in (source.features, source.oracle, source.prior):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
