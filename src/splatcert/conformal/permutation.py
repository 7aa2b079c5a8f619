# SPDX-License-Identifier: Apache-2.0
"""Permutation tests: is difficulty even across a capture, do two groups of views differ?

`permutation_test` asks whether scores depend on the order and place of their views. If they
drift along the capture, or neighbouring cameras have similar ones, some regions are harder than
others. That violates nothing: cameras drawn at random in a room with one hard corner are
exchangeable. It means that coverage differs between regions, so a path that stays in one of
them may be covered more or less often than the average view.

`rank_sum_test` asks whether two groups of views differ in any of several features.

Under the null hypothesis every assignment of scores or groups to views is equally likely.
Statistics are computed from integer ranks: outliers do not dominate, and two assignments
that tie do so exactly. A large p-value approves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.errors import InputError

NEIGHBOURS = 3
"""Number of nearest cameras that a camera is compared with."""

_CHUNK = 256
_Ranks = NDArray[np.int64]


class PermutationError(InputError):
    """Scores or coordinates that cannot be tested."""


@dataclass(frozen=True)
class Finding:
    """One statistic of the scores along one coordinate."""

    coordinate: str
    statistic: str
    value: float
    """A correlation; for drift the largest cumulative sum, standardised."""
    p_value: float
    """P-value of this statistic alone, not corrected for the others."""


@dataclass(frozen=True)
class PermutationTest:
    """The outcome: one p-value, corrected for the number of statistics."""

    p_value: float
    findings: tuple[Finding, ...]
    views: int
    permutations: int
    seed: int

    @property
    def strongest(self) -> Finding:
        """The statistic with the strongest evidence of a dependence."""
        return min(self.findings, key=lambda finding: finding.p_value)

    def in_words(self) -> str:
        """The outcome in one line."""
        found = self.strongest
        return (
            f"p = {self.p_value:.2g} over {self.views} views, "
            f"strongest: {found.statistic} in {found.coordinate} ({found.value:+.2f})"
        )


def permutation_test(
    scores: ArrayLike,
    coordinates: Mapping[str, ArrayLike],
    *,
    permutations: int = 9999,
    seed: int = 0,
) -> PermutationTest:
    """Test the scores against coordinates of their views, all at once.

    A coordinate with one number per view, [m], is an order such as the time of capture. Along
    it we test for drift (the largest cumulative sum) and for similar successive views (lag-1
    correlation). A coordinate with several, [m, d], is a place such as a camera centre or a
    viewing direction. There we test for similar nearest neighbours (Moran's I).

    Every statistic gets a p-value, (1 + permutations at least as extreme) / (1 + all), and
    the smallest of them is compared with the smallest of each permutation (Westfall and
    Young's min-p). This corrects for the number of statistics, no more than necessary, and
    gives a valid p-value for any number of views, tied scores included.
    """
    known = np.asarray(scores, dtype=np.float64)
    if known.ndim != 1 or not known.size or np.isnan(known).any():
        raise PermutationError("scores must be one number per view, none of them NaN")
    if permutations < 1 or not coordinates:
        raise PermutationError("a test requires at least one permutation and one coordinate")
    statistics = [
        statistic
        for name, values in coordinates.items()
        for statistic in _statistics(name, np.asarray(values, dtype=np.float64), known.size)
    ]
    ranks = centred_ranks(known)
    # The first row is the observed assignment. It is one of the equally likely ones, and
    # counting it keeps every p-value above zero and valid.
    totals = np.concatenate(
        [
            np.stack([statistic.total(rows) for statistic in statistics], axis=1)
            for rows in _assignments(ranks, permutations, seed)
        ]
    )
    as_extreme = np.stack([_count_as_extreme(column) for column in totals.T], axis=1)
    smallest = as_extreme.min(axis=1)
    return PermutationTest(
        p_value=int((smallest <= smallest[0]).sum()) / len(totals),
        findings=tuple(
            Finding(
                statistic.coordinate,
                statistic.name,
                statistic.readable(int(total), int((ranks**2).sum())),
                int(count) / len(totals),
            )
            for statistic, total, count in zip(statistics, totals[0], as_extreme[0], strict=True)
        ),
        views=known.size,
        permutations=permutations,
        seed=seed,
    )


@dataclass(frozen=True, eq=False)
class RankSums:
    """The outcome of `rank_sum_test`."""

    p_value: float
    """One p-value that allows for all features having been tried."""
    z: NDArray[np.float64]
    """Standardised rank sum of the first group in each feature; positive where it is larger."""


def rank_sum_test(
    features: NDArray[np.float64], first: int, *, permutations: int, seed: int
) -> RankSums:
    """Compare the first rows of features [n, k] with the rest; every feature must vary.

    Each feature gives a rank sum; the largest |z| is compared with that of random relabellings:
    p = (1 + relabellings at least as extreme) / (1 + all).
    """
    n = len(features)
    # Sums of integers, exact below 2^53.
    ranks = np.stack([centred_ranks(column) for column in features.T], axis=1).astype(np.float64)
    spread = np.sqrt((ranks**2).sum(axis=0) * first * (n - first) / (n * (n - 1)))
    z = ranks[:first].sum(axis=0) / spread
    largest = np.abs(z).max()
    extreme = sum(
        int((np.abs(labels @ ranks / spread).max(axis=1) >= largest).sum())
        for labels in relabellings(first, n, permutations, seed)
    )
    return RankSums((1 + extreme) / (1 + permutations), z)


def relabellings(
    first: int, views: int, permutations: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """Random choices of the first group as rows of zeros and ones, a few hundred at a time."""
    generator = np.random.Generator(np.random.PCG64(seed))
    labels = (np.arange(views) < first).astype(np.float64)
    for start in range(0, permutations, _CHUNK):
        rows = min(_CHUNK, permutations - start)
        yield generator.permuted(np.tile(labels, (rows, 1)), axis=1)


def centred_ranks(scores: NDArray[np.float64]) -> _Ranks:
    """Twice the mid-rank of each score minus its mean: integers that sum to zero."""
    ordered = np.sort(scores)
    below = np.searchsorted(ordered, scores, side="left")
    up_to = np.searchsorted(ordered, scores, side="right")
    return (below + up_to - scores.size).astype(np.int64)


@dataclass(frozen=True)
class _Statistic:
    """An integer for each assignment of ranks; larger is stronger evidence."""

    coordinate: str
    name: str
    total: Callable[[_Ranks], _Ranks]
    """Maps assignments [P, m] to integers [P]."""
    value: Callable[[float, float], float]
    """A readable value from such an integer and the ranks' sum of squares."""

    def readable(self, total: int, squares: int) -> float:
        return self.value(total, squares) if squares else 0.0


def _statistics(name: str, coordinate: NDArray[np.float64], views: int) -> list[_Statistic]:
    if coordinate.ndim not in (1, 2) or len(coordinate) != views:
        raise PermutationError(
            f"coordinate {name!r} must have a row for each of {views} views, "
            f"[m] or [m, d], got {coordinate.shape}"
        )
    if not np.isfinite(coordinate).all():
        raise PermutationError(f"coordinate {name!r} must be finite")
    if coordinate.ndim == 1:
        return _along_an_order(name, np.argsort(coordinate, kind="stable"))
    return _around_places(name, _nearest(coordinate))


def _along_an_order(name: str, order: NDArray[np.intp]) -> list[_Statistic]:
    def drift(ranks: _Ranks) -> _Ranks:
        return np.abs(np.cumsum(ranks[:, order], axis=1)).max(axis=1)

    def likeness(ranks: _Ranks) -> _Ranks:
        along = ranks[:, order]
        return (along[:, 1:] * along[:, :-1]).sum(axis=1)

    return [
        _Statistic(name, "drift", drift, lambda total, squares: total / squares**0.5),
        _Statistic(name, "lag-1 correlation", likeness, lambda total, squares: total / squares),
    ]


def _around_places(name: str, nearest: NDArray[np.intp]) -> list[_Statistic]:
    each = max(nearest.shape[1], 1)

    def likeness(ranks: _Ranks) -> _Ranks:
        return (ranks * ranks[:, nearest].sum(axis=2)).sum(axis=1)

    return [
        _Statistic(name, "Moran's I", likeness, lambda total, squares: total / (each * squares))
    ]


def _nearest(places: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices of each view's nearest others, [m, neighbours]."""
    gaps = places[:, None] - places[None]
    distance = (gaps**2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    count = min(NEIGHBOURS, len(places) - 1)
    return np.argsort(distance, axis=1, kind="stable")[:, :count]


def _assignments(ranks: _Ranks, permutations: int, seed: int) -> Iterator[_Ranks]:
    """The ranks as observed, then permuted, a few hundred rows at a time."""
    yield ranks[None]
    generator = np.random.Generator(np.random.PCG64(seed))
    for start in range(0, permutations, _CHUNK):
        rows = min(_CHUNK, permutations - start)
        yield generator.permuted(np.tile(ranks, (rows, 1)), axis=1)


def _count_as_extreme(totals: _Ranks) -> _Ranks:
    """Number of entries at least as large as each entry, itself included."""
    return len(totals) - np.searchsorted(np.sort(totals), totals, side="left")
