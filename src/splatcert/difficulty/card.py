# SPDX-License-Identifier: Apache-2.0
"""A predictor's card: its training scenes, and its performance on scenes left out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from splatcert import __version__
from splatcert.config import FieldConfig, LearnConfig
from splatcert.conformal.ranks import rank_correlation
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.difficulty.sources import ALPHA, FOLDS, Source

if TYPE_CHECKING:
    from splatcert.difficulty.learn import LeftOut


def field_card(field: FieldConfig) -> dict[str, float]:
    """Settings of the residual field that a predictor's features and targets depend on."""
    return {"ridge": field.ridge, "degree": field.degree}


def card_of(
    sources: Sequence[Source],
    shapes: Sequence[Sequence[LeftOut]],
    best: Sequence[LeftOut],
    choice: tuple[LeftOut, Fraction],
    config: LearnConfig,
) -> dict[str, Any]:
    """The card: training scenes, and performance on scenes left out."""
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
    """One scene when left out: rank correlation and the saving of each factor."""
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
    """SHA-256 of the numbers that the predictor was learned from."""
    digest = hashlib.sha256()
    for array in (source.features, source.oracle, source.prior):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
