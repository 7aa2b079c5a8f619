# SPDX-License-Identifier: Apache-2.0
"""The paper's identities, checked on numbers that were measured on maps.

Left-hand sides use scores and means of the deployed scale a b~, pixel by pixel. Right-hand
sides use only the log error of the view factor, delta = log(a / a*).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.ranks import outer_rank
from splatcert.conformal.splits import calibration_size, draw_splits, split_thresholds
from splatcert_bench.statistics import compared_scales as scales
from splatcert_bench.statistics.choices import MissingError
from splatcert_bench.statistics.evidence import Evidence
from splatcert_bench.studies.study import Study

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Audit:
    """Largest relative errors of one scene over all splits and views, and mean factors."""

    threshold: float
    """q = exp(-delta_(j)) (eq:exact-width)."""
    widths: float
    """W_i(a) / W_i(a*) = exp(delta_i - delta_(j)) for every test view (eq:exact-width)."""
    aggregate: float
    """The product of test side and calibration tail (eq:aggregate-decomposition)."""
    gain: float
    """Oracle against constant factor (eq:realizable-gain-main)."""
    test_side: float
    """Test-side dispersion, with delta centred over the scene; mean over splits."""
    tail: float
    """Calibration-side lower tail, likewise."""
    ratio: float
    """Mean width over the oracle's; mean over splits."""
    rank: int
    """j, the rank of the calibration error that sets the width."""


def audit(evidence: Evidence, study: Study) -> Audit:
    """Check prop:decomposition and the realizable gain on every split of a scene."""
    prediction, protocol = evidence.prediction(study), evidence.protocol
    if not prediction.scores.size or not prediction.means.size:
        raise MissingError(f"scene {study.scene}: the deployed scale itself was not measured")
    splits = draw_splits(len(study), calibration_size(len(study)), protocol.splits, protocol.seed)
    shape = scales.map_scale(study, scales.SHAPE, prediction.lambda_b, protocol.beta)
    oracle, factors = shape.scores, prediction.factors
    if not (oracle > 0).all():
        raise MissingError(f"scene {study.scene} has a view without error, so log a* is not finite")

    measured = split_thresholds(
        prediction.scores[:, study.beta_index(protocol.beta)], protocol.alpha, splits
    )
    delta = np.log(factors / oracle)
    tail_error = low_order_statistic(delta, protocol.alpha, splits)
    test = ~splits
    # The oracle's threshold is one; its mean half-width in a view is a* times the shape's mean.
    ours, best = measured[:, None] * prediction.means, oracle * shape.means
    pointwise = np.exp(delta - tail_error[:, None])
    ratio = _test_mean(ours, test) / _test_mean(best, test)
    centred, tail_centred = delta - delta.mean(), tail_error - delta.mean()
    test_side = _test_mean(best * np.exp(centred), test) / _test_mean(best, test)
    constant = split_thresholds(oracle, protocol.alpha, splits)
    flat = _test_mean(constant[:, None] * shape.means, test)
    gain = _test_mean(best, test) / flat
    expected = _test_mean(best, test) / (
        _high_order_statistic(oracle, protocol.alpha, splits) * _test_mean(shape.means, test)
    )
    return Audit(
        threshold=_largest(measured, np.exp(-tail_error)),
        widths=_largest((ours / best)[test], pointwise[test]),
        aggregate=_largest(ratio, test_side * np.exp(-tail_centred)),
        gain=_largest(gain, expected),
        test_side=float(test_side.mean()),
        tail=float(np.exp(-tail_centred).mean()),
        ratio=float(ratio.mean()),
        rank=int(low_rank(int(splits[0].sum()), protocol.alpha)),
    )


def low_rank(views: int, alpha: Fraction) -> int:
    """Rank j = floor((m + 1) alpha) from below, which is rank k from above."""
    return views + 1 - outer_rank(views, alpha)


def low_order_statistic(values: Array, alpha: Fraction, splits: NDArray[np.bool_]) -> Array:
    """The j-th smallest calibration value of every split, sorted independently of View-CP."""
    return np.array([np.sort(values[s])[low_rank(int(s.sum()), alpha) - 1] for s in splits])


def _high_order_statistic(values: Array, alpha: Fraction, splits: NDArray[np.bool_]) -> Array:
    return np.array([np.sort(values[s])[outer_rank(int(s.sum()), alpha) - 1] for s in splits])


def _test_mean(values: Array, test: NDArray[np.bool_]) -> Array:
    return (test * values).sum(axis=1) / test.sum(axis=1)


def _largest(left: Array, right: Array) -> float:
    return float(np.max(np.abs(left / right - 1)))
