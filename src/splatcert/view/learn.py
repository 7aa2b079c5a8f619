# SPDX-License-Identifier: Apache-2.0
"""Learning the view predictor on source scenes (alg:vscp, phase 1).

The target is log a*, the smallest factor a view needs at the shape that will be deployed,
centred within its scene. What is learned is how it departs from the magnitude of the residual
field, or from a constant, as the prior says; a ridge penalty draws towards that. Everything is
chosen by scenes left out: the penalty by rank correlation with the target, the shrinkages by
the width of calibrated boxes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert import __version__
from splatcert.config import LearnConfig
from splatcert.conformal.levels import parse_level
from splatcert.errors import InputError
from splatcert.evaluate.ranking import rank_correlation
from splatcert.evaluate.splits import calibration_size, draw_splits, estimate, saving
from splatcert.evaluate.views import SceneViews
from splatcert.scale import LAMBDA_GRID, unit_of, view_factor
from splatcert.view.descriptor import FEATURE_NAMES, check_schema
from splatcert.view.predictor import FeatureUnits, ViewPredictor

Array = NDArray[np.float64]

RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0)
ALPHA = Fraction(1, 10)
"""View level at which the width of shrinkages is compared."""
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
    """Log factors of all views at one shape, each predicted without its own part."""

    shape: int
    ridge: float
    scores: tuple[float, ...]
    """Mean rank correlation at each of RIDGES."""
    logs: tuple[Array, ...]
    """By source, [n] each."""

    def factor(self, source: int, lambda_a: Fraction) -> Array:
        """View factors of a source's views as one batch, [n]."""
        raw = np.exp(self.logs[source])
        return view_factor(raw, unit_of(raw), lambda_a)


def learn_predictor(scenes: Sequence[SceneViews], config: LearnConfig) -> ViewPredictor:
    """Fit theta and choose ridge, lambda_a and lambda_b on source scenes."""
    beta = parse_level(config.beta, "beta")
    sources = [_source(scene, config, beta) for scene in _distinct(scenes)]
    shapes = [_leave_out(sources, shape) for shape in range(len(LAMBDA_GRID))]
    widths = _relative_widths(sources, shapes)
    b, a = (int(k) for k in np.unravel_index(np.argmin(widths), widths.shape))
    chosen, lambda_a = shapes[b], LAMBDA_GRID[a]

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
        card=_card(sources, chosen, lambda_a, widths, config),
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


def _leave_out(sources: Sequence[Source], shape: int) -> LeftOut:
    """Predictions for parts left out, with the penalty whose predictions rank views best."""
    tried = {ridge: _predict_left_out(sources, shape, ridge) for ridge in RIDGES}
    scores = {
        ridge: float(
            np.mean(
                [
                    rank_correlation(log_factor, source.target(shape))
                    for log_factor, source in zip(logs, sources, strict=True)
                ]
            )
        )
        for ridge, logs in tried.items()
    }
    best = max(RIDGES, key=lambda ridge: (scores[ridge], ridge))
    return LeftOut(shape, best, tuple(scores.values()), tuple(tried[best]))


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


def _relative_widths(sources: Sequence[Source], shapes: Sequence[LeftOut]) -> Array:
    """Width over that of the constant scale, mean over scenes, [lambda_b, lambda_a].

    Every pair is scored once on the whole pool: a mean of per-scene minima could fall
    between grid points.
    """
    return np.array(
        [
            [
                np.mean([
                    1 - source.saving(left.shape, left.factor(k, lambda_a))
                    for k, source in enumerate(sources)
                ])
                for lambda_a in LAMBDA_GRID
            ]
            for left in shapes
        ]
    )  # fmt: skip


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
    chosen: LeftOut,
    lambda_a: Fraction,
    widths: Array,
    config: LearnConfig,
) -> dict[str, Any]:
    """What the predictor was learned from, and how it did on scenes it had not seen."""
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
        "ridge_scores": dict(zip(map(str, RIDGES), chosen.scores, strict=True)),
        "lambda_grid": [str(value) for value in LAMBDA_GRID],
        "relative_width": {
            f"lambda_b={value}": [float(width) for width in row]
            for value, row in zip(LAMBDA_GRID, widths, strict=True)
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
