# SPDX-License-Identifier: Apache-2.0
"""Repeated calibration/test splits: a diagnostic of coverage and width, never the guarantee.

Splits reuse the same views, so their spread shows how much the choice of calibration views
matters, and nothing about new scenes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.levels import Level, parse_level
from splatcert.conformal.ranks import outer_rank
from splatcert.errors import InputError

SMALLEST_CALIBRATION = 11


class SplitError(InputError):
    """Splits that cannot be drawn or evaluated."""


def calibration_size(views: int) -> int:
    """Calibration views per split, as in the paper: a third of the views, at least 11."""
    return max(SMALLEST_CALIBRATION, views // 3)


def draw_splits(views: int, calibration: int, count: int = 200, seed: int = 0) -> NDArray[np.bool_]:
    """Random splits, [count, views], True where a view calibrates."""
    if not 1 <= calibration < views:
        raise SplitError(
            f"{calibration} calibration views of {views} leave no test view.\n"
            f"  A split estimate requires at least {calibration + 1} held-out views."
        )
    if count < 1:
        raise SplitError(f"at least one split is required, got {count}")
    generator = np.random.Generator(np.random.PCG64(seed))
    splits = np.zeros((count, views), dtype=bool)
    for split in splits:
        split[generator.permutation(views)[:calibration]] = True
    return splits


def draw_tested_splits(
    views: int, calibration: int, tested: int, count: int = 200, seed: int = 0
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Calibration and test views, [count, views] each: more calibration, the same test views."""
    if calibration + tested > views:
        raise SplitError(f"{views} views are too few for {calibration} and {tested} test views")
    generator = np.random.Generator(np.random.PCG64(seed))
    splits, test = np.zeros((2, count, views), dtype=bool)
    for split, kept in zip(splits, test, strict=True):
        order = generator.permutation(views)
        kept[order[:tested]] = True
        split[order[tested : tested + calibration]] = True
    return splits, test


@dataclass(frozen=True, eq=False)
class SplitEstimate:
    """Coverage of the view event and mean half-width, split by split."""

    coverages: NDArray[np.float64]
    """Share of a split's test views that are covered, [count]."""
    widths: NDArray[np.float64]
    """Mean half-width over a split's test views, [count]; infinite without a threshold."""
    thresholds: NDArray[np.float64]
    """[count]."""

    @property
    def coverage(self) -> float:
        """Mean coverage over splits."""
        return float(self.coverages.mean())

    @property
    def mean_width(self) -> float:
        """Mean width over splits: infinite if any split had too few calibration views."""
        return float(self.widths.mean())


def estimate(
    oracle: ArrayLike, factor: ArrayLike, alpha: Level, splits: NDArray[np.bool_]
) -> SplitEstimate:
    """Calibrate and test on every split, from one number per view instead of its pixels.

    With a shape of mean one, a view's score is a*_v / a_v (eq:ratio-identity) and its mean
    half-width is q a_v. So only the oracle factor at the shape, [V], and the factor used,
    [V], are needed. The constant scale is the oracle at the flat shape with factor one.
    """
    difficulty, used = np.asarray(oracle, dtype=np.float64), np.asarray(factor, dtype=np.float64)
    if not (difficulty >= 0).all():
        raise SplitError("oracle factors must be known for every view and at least 0")
    if not ((used > 0) & (used < np.inf)).all():
        raise SplitError("view factors must be positive and finite")
    if difficulty.shape != used.shape:
        raise SplitError(
            f"oracle {difficulty.shape} and factor {used.shape} must agree: both are [V]"
        )
    return evaluate_splits(difficulty / used, used, alpha, splits)


def evaluate_splits(
    scores: NDArray[np.float64],
    means: NDArray[np.float64],
    alpha: Level,
    splits: NDArray[np.bool_],
    test: NDArray[np.bool_] | None = None,
) -> SplitEstimate:
    """Calibrate and test any scale map on every split, from its score and mean per view, [V] each.

    A view's mean half-width is q times the mean of its scale. Views that do not calibrate
    are test views unless `test`, [count, V], names some of them.
    """
    level = parse_level(alpha, "alpha")
    test = np.logical_not(splits) if test is None else test
    _check(scores, means, splits, test)
    thresholds = split_thresholds(scores, level, splits)
    tested = test.sum(axis=1)
    covered = (test & (scores <= thresholds[:, None])).sum(axis=1)
    return SplitEstimate(
        coverages=covered / tested,
        widths=thresholds * ((test * means).sum(axis=1) / tested),
        thresholds=thresholds,
    )


def saving(width: float, constant_width: float) -> float:
    """Share of the constant scale's width that is saved; NaN if neither width is finite."""
    if constant_width == 0:
        return float("nan")
    return 1 - width / constant_width


def split_thresholds(
    scores: NDArray[np.float64], alpha: Fraction, splits: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Each split's threshold: the k-th smallest score of its calibration views."""
    order = np.argsort(scores, kind="stable")
    counted = np.cumsum(splits[:, order], axis=1)
    sizes, which = np.unique(counted[:, -1], return_inverse=True)
    ranks = np.array([outer_rank(int(m), alpha) for m in sizes])[which]
    place = (counted >= ranks[:, None]).argmax(axis=1)
    return np.where(ranks <= counted[:, -1], scores[order][place], np.inf)


def _check(
    scores: NDArray[np.float64],
    means: NDArray[np.float64],
    splits: NDArray[np.bool_],
    test: NDArray[np.bool_],
) -> None:
    views = scores.size
    shapes = scores.shape, means.shape, splits.shape[1:], test.shape[1:]
    if shapes != ((views,),) * 4 or splits.shape != test.shape:
        raise SplitError(
            "scores [V], means [V] and splits [count, V] must agree, "
            f"got {scores.shape}, {means.shape} and {splits.shape}"
        )
    if splits.dtype != np.bool_ or not test.any(axis=1).all() or not splits.size:
        raise SplitError("splits must be bool, and each must leave a test view")
    if (splits & test).any():
        raise SplitError("a calibration view must not be a test view")
