# SPDX-License-Identifier: Apache-2.0
"""Coverage where test views are not drawn like the calibration views, and within views.

Nothing here is guaranteed: calibration on one stretch, or on all regions but one, breaks the
assumption on purpose, and the guarantee says nothing about a tenth of a view's pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.splits import evaluate_splits, split_thresholds
from splatcert.strangeness.limit import StrangenessLimit
from splatcert_bench.statistics.compared_scales import Scale
from splatcert_bench.studies.counts import TENTH_EDGES, Counts

Array, Mask = NDArray[np.float64], NDArray[np.bool_]
REGIONS = 4


def blocks(views: int, size: int) -> Mask:
    """Every stretch of this many consecutive views as calibration views, [stretches, views]."""
    starts = np.arange(views - size + 1)[:, None]
    places = np.arange(views)[None]
    return (places >= starts) & (places < starts + size)


def leave_region_out(centres: Array) -> Mask:
    """All regions but one as calibration views, [4, views].

    A camera's region is the nearest of four cameras that were chosen far apart.
    """
    chosen = [int(np.argmax(np.linalg.norm(centres - centres.mean(axis=0), axis=1)))]
    while len(chosen) < REGIONS:
        gaps = np.linalg.norm(centres[:, None] - centres[chosen], axis=2).min(axis=1)
        chosen.append(int(np.argmax(gaps)))
    nearest = np.linalg.norm(centres[:, None] - centres[chosen], axis=2).argmin(axis=1)
    return nearest[None] != np.arange(REGIONS)[:, None]


@dataclass(frozen=True)
class ShiftedCoverage:
    """Coverage over splits that are not random."""

    mean: float
    """Share of all test views covered."""
    worst: float
    """The same in the worst split."""
    width: float
    """Mean half-width of the test views."""
    unbounded: int
    """Splits with too few calibration views for finite boxes, which do not count."""


def shifted_coverage(scale: Scale, alpha: Fraction, splits: Mask) -> ShiftedCoverage | None:
    """Coverage over splits; None if no split has finite boxes and a test view."""
    tested = splits[(~splits).any(axis=1) & splits.any(axis=1)]
    if not len(tested):
        return None
    each = evaluate_splits(scale.scores, scale.means, alpha, tested)
    bounded = np.isfinite(each.thresholds)  # else all views are covered, trivially
    if not bounded.any():
        return None
    counts = (~tested).sum(axis=1)[bounded]
    return ShiftedCoverage(
        mean=float((each.coverages[bounded] * counts).sum() / counts.sum()),
        worst=float(each.coverages[bounded].min()),
        width=float((each.widths[bounded] * counts).sum() / counts.sum()),
        unbounded=len(splits) - int(bounded.sum()),
    )


@dataclass(frozen=True)
class FlaggedCoverage:
    """Coverage of test views by whether the flag of their split's calibration views is raised."""

    promised: float
    """Largest share of alike views that is flagged."""
    flagged: float
    """Share of test views that is flagged."""
    of_flagged: float | None
    of_others: float | None


def flagged_coverage(
    scale: Scale, strangeness: Array, alpha: Fraction, splits: Mask
) -> FlaggedCoverage:
    """Each split's calibration views set the threshold and the limit of the flag."""
    thresholds = split_thresholds(scale.scores, alpha, splits)
    size = int(splits[0].sum())
    rank = StrangenessLimit.rank_for(size)
    limits = np.array([np.sort(strangeness[split])[rank - 1] for split in splits])
    flagged = strangeness[None] > limits[:, None]
    covered = scale.scores[None] <= thresholds[:, None]

    def share(of: Mask) -> float | None:
        return float((covered & of).sum() / of.sum()) if of.any() else None

    return FlaggedCoverage(
        promised=(size + 1 - rank) / (size + 1),
        flagged=float((flagged & ~splits).sum() / (~splits).sum()),
        of_flagged=share(flagged & ~splits),
        of_others=share(~flagged & ~splits),
    )


def tenth_coverage(counts: Counts, multipliers: Array, splits: Mask) -> Array:
    """Share of test pixels inside, by tenths of their view's half-width, [10].

    `counts` holds pixels of each view and tenth by ratio, [V, 10, bins]; `multipliers` is
    q a_v, [splits, V]. Ratios are rounded up, so shares are never too large. NaN where no pixel is.
    """
    covered = np.cumsum(counts, axis=2, dtype=np.int64)
    places = np.searchsorted(TENTH_EDGES, multipliers, side="right") - 1
    views = np.arange(len(counts))
    inside = np.zeros(counts.shape[1])
    pixels = np.zeros(counts.shape[1])
    for split, place in zip(splits, places, strict=True):
        test = ~split
        reached = covered[views[test], :, place[test].clip(min=0)]
        inside += (reached * (place[test] >= 0)[:, None]).sum(axis=0)
        pixels += covered[test, :, -1].sum(axis=0)
    return np.where(pixels > 0, inside / np.maximum(pixels, 1), np.nan)
