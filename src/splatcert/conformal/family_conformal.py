# SPDX-License-Identifier: Apache-2.0
"""A guarantee for several candidates at once, one of which may be chosen afterwards.

Candidates are scales, models or both. Each has a unit, a positive number fixed before
anybody looks at the calibration photos, which makes the candidates' scores comparable. The
score of a view, or of a stretch of a path, is its worst over the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from math import inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.boxes import Boxes
from splatcert.conformal.calibrate import (
    ordinal,
    scores_of,
    shortfall,
    state_calibration,
    threshold_of,
)
from splatcert.conformal.levels import Level, in_percent, parse_level
from splatcert.conformal.maps import MapError, Mask, view_maps
from splatcert.conformal.path_conformal import (
    PathConformal,
    state_path_guarantee,
    stretch_score,
)
from splatcert.conformal.ranks import ceil_rank, order_statistic, outer_rank
from splatcert.conformal.view_conformal import CallOrderError
from splatcert.errors import InputError

_NEIGHBOURS = 4
"""More floats than there are above q * unit that still give q when divided by the unit."""


class FamilyError(InputError):
    """Candidates, units or a number of views that do not allow a family guarantee."""


def family_scores(scores: ArrayLike, units: ArrayLike) -> NDArray[np.float64]:
    """Score of each view for all candidates together, [m], from scores [m, K] and units [K].

        R_v = max over k of R_v^(k) / c_k

    All candidates cover the view, each at its multiplier q c_k, if and only if q >= R_v.
    """
    known, positive = np.asarray(scores, dtype=np.float64), _checked_units(units)
    if known.ndim != 2 or known.shape[1] != positive.size or not (known >= 0).all():
        raise FamilyError(
            f"scores must be [views, {positive.size} candidates], at least 0 and not NaN, "
            f"got shape {known.shape}"
        )
    with np.errstate(over="ignore"):
        return (known / positive).max(axis=1)


def units_from(training_scores: ArrayLike) -> NDArray[np.float64]:
    """A unit for each candidate, [K]: the median of its scores [n, K] on training photographs.

    Use out-of-fold scores if possible, never those of calibration photographs. Poor units
    cost width, not coverage. The median is the ceil(n / 2)-th smallest score, not interpolated.
    """
    scores = np.asarray(training_scores, dtype=np.float64)
    if scores.ndim != 2 or not scores.size:
        raise FamilyError(f"training scores must be [views, candidates], got {scores.shape}")
    middle = ceil_rank(len(scores), Fraction(1, 2))
    return _checked_units([order_statistic(column, middle) for column in scores.T])


def member_threshold(q: float, unit: float) -> float:
    """A candidate's multiplier q * unit, as the largest number that gives q or less over `unit`.

    So R / unit <= q if and only if R <= the multiplier. The nearest float to q * unit can be
    one step too small, and a view that the family covers would be missed by its candidate.
    """
    found = q * unit
    for _ in range(_NEIGHBOURS):
        found = nextafter(found, inf)
    while found / unit > q:
        found = nextafter(found, 0)
    return found


@dataclass(frozen=True)
class Member:
    """One candidate of a calibrated family."""

    name: str
    unit: float
    """c_k, fixed before calibration."""
    threshold: float
    """Its multiplier, q c_k."""
    alone: float
    """Multiplier of a certificate for this candidate alone; not valid after a choice."""

    @property
    def price(self) -> float:
        """Relative cost of the choice: 0.26 means boxes 26% wider than for this candidate alone."""
        return self.threshold / self.alone - 1 if self.alone else 0.0


class FamilyConformal:
    """Boxes of K candidates that all cover a new view with probability 1 - alpha.

        family = FamilyConformal("1/10", "1/10", units, names=["full", "pruned"])
        family.conformalize(residuals, scales)
        boxes = family.predict_interval(center, scale, member="pruned")

    Any rule may choose among the candidates afterwards, even one that looks at the widths
    or at the new view. Candidates and units must be fixed before anybody looks at the
    calibration photos.
    """

    def __init__(self, alpha: Level, beta: Level, units: ArrayLike, names: Sequence[str]) -> None:
        self.alpha, self.beta = parse_level(alpha, "alpha"), parse_level(beta, "beta")
        self.units, self.names = _checked_units(units), tuple(names)
        if not len(set(self.names)) == len(self.names) == self.units.size:
            raise FamilyError(
                f"{self.units.size} units require {self.units.size} different names, "
                f"got {', '.join(self.names) or 'none'}"
            )
        self._scores: NDArray[np.float64] | None = None

    def require_views(self, count: int) -> None:
        """Refuse a number of calibration views that is too small for the guarantee.

        It does not depend on the number of candidates. Call it before any expensive work;
        `conformalize` calls it too.
        """
        if message := shortfall(count, self.alpha):
            raise FamilyError(message)

    def conformalize(
        self,
        residuals: Iterable[Sequence[ArrayLike] | NDArray[Any]],
        scales: Iterable[Sequence[ArrayLike] | NDArray[Any]],
        masks: Iterable[Mask | None] | None = None,
    ) -> FamilyConformal:
        """Score the calibration views: K residual maps [H, W], K scale maps, one mask per view.

        Candidates that share a model repeat its residual map.
        """
        if self._scores is not None:
            raise CallOrderError(
                f"already conformalized on {self.views} views.\n"
                "  A threshold is set once. Make a new FamilyConformal for other views."
            )
        rows = list(self._each_row(residuals, scales, masks))
        self.require_views(len(rows))
        self._scores = np.array(rows, dtype=np.float64)
        return self

    @property
    def member_scores(self) -> NDArray[np.float64]:
        """Scores of the calibration views under each candidate, [m, K]."""
        if self._scores is None:
            raise CallOrderError("there is no threshold yet: call conformalize first")
        return self._scores.copy()

    @property
    def views(self) -> int:
        """m, the number of calibration views."""
        return len(self.member_scores)

    @property
    def ranked(self) -> NDArray[np.float64]:
        """What is ranked under each candidate, [m, K]: here the scores of the views."""
        return self.member_scores

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores for all candidates together, [m]."""
        return family_scores(self.ranked, self.units)

    @property
    def threshold(self) -> float:
        """The threshold q in the candidates' units: candidate k uses q c_k."""
        return threshold_of(self.scores, self.alpha)

    def member(self, k: int | str) -> Member:
        """One candidate, by its name or by its number from 0."""
        index = self.names.index(k) if k in self.names else k
        if not isinstance(index, int) or not 0 <= index < len(self.names):
            raise FamilyError(f"there is no candidate {k!r}, only {', '.join(self.names)}")
        unit = float(self.units[index])
        alone = threshold_of(self.ranked[:, index], self.alpha)
        return Member(self.names[index], unit, member_threshold(self.threshold, unit), alone)

    def predict_interval(
        self, center: ArrayLike, scale: ArrayLike, mask: Mask | None = None, *, member: int | str
    ) -> Boxes:
        """Boxes of one candidate around its render [H, W, 3], from its scale map [H, W]."""
        return Boxes.around(center, scale, self.member(member).threshold, mask=mask)

    def guarantee(self) -> str:
        """The guarantee in words, its scope and its calibration."""
        return (
            f"{state_family_guarantee(self.alpha, self.beta, self.names)}, "
            f"if the view is exchangeable with the {self.views} calibration views "
            f"({state_calibration(self.alpha, self.views)}); "
            "any of them may be chosen afterwards"
        )

    def __repr__(self) -> str:
        levels = f"alpha='{self.alpha}', beta='{self.beta}'"
        return f"FamilyConformal({levels}, units={self.units.tolist()}, names={list(self.names)})"

    def _each_row(self, residuals: Any, scales: Any, masks: Any) -> Iterator[list[float]]:
        given = (residuals, scales) if masks is None else (residuals, scales, masks)
        # A sequence that ends early is padded with empty maps or masks, which are then refused.
        views: Iterable[Any] = zip_longest(*given, fillvalue=())
        for index, view in enumerate(views):
            residual, scale, mask = view if masks is not None else (*view, None)
            if not len(residual) == len(scale) == len(self.names):
                found = f"{len(residual)} residual and {len(scale)} scale maps"
                raise MapError(f"view {index} has {found} for {len(self.names)} candidates")
            rows = zip(residual, scale, self.names, strict=True)
            maps = [view_maps(r, s, mask, where=f"view {index}, {name}: ") for r, s, name in rows]
            yield [float(scores_of(one, [self.beta])[0]) for one in maps]


class PathFamilyConformal(FamilyConformal):
    """Boxes of K candidates, each of which covers a share 1 - gamma of a new stretch's views.

        family = PathFamilyConformal("1/10", "1/10", "1/5", 5, units, names)
        family.conformalize(residuals, scales)  # views in capture order
        boxes = family.predict_interval(center, scale, member="pruned")

    With probability 1 - alpha this holds for all candidates at once. Any rule may choose one
    of them afterwards for the whole stretch; a choice made anew for every view is not covered.
    """

    def __init__(
        self,
        alpha: Level,
        beta: Level,
        gamma: Level,
        length: int,
        units: ArrayLike,
        names: Sequence[str],
    ) -> None:
        super().__init__(alpha, beta, units, names)
        self.path = PathConformal(alpha, beta, gamma, length)

    def require_views(self, count: int) -> None:
        """Refuse a number of calibration views that makes too few stretches."""
        self.path.require_photographs(count)

    @property
    def ranked(self) -> NDArray[np.float64]:
        """Score of each calibration stretch under each candidate, [m, K]."""
        scores, length = self.member_scores, self.path.length
        whole = scores[: len(scores) // length * length].reshape(-1, length, scores.shape[1])
        return np.array([[stretch_score(c, self.path.gamma) for c in run.T] for run in whole])

    def guarantee(self) -> str:
        """The guarantee in words, its scope and its calibration."""
        m, gamma, length = len(self.ranked), self.path.gamma, self.path.length
        return (
            f"{state_path_guarantee(self.alpha, self.beta, gamma, length, names=self.names)}, "
            f"if the stretch is exchangeable with the {m} calibration stretches "
            f"({m} runs of {length} consecutive held-out views, threshold = "
            f"{ordinal(outer_rank(m, self.alpha))} smallest of {m} stretch scores); "
            "any of them may be chosen afterwards, for the whole stretch"
        )

    def __repr__(self) -> str:
        units = f"units={self.units.tolist()}, names={list(self.names)}"
        return f"PathFamilyConformal({self.path!r}, {units})"


def state_family_guarantee(
    alpha: Fraction, beta: Fraction, names: Sequence[str], *, masked: bool = False
) -> str:
    """The guarantee for a new view, whichever candidate is used."""
    pixels = "the pixels that count (masks)" if masked else "the pixels"
    return (
        f"With probability at least {in_percent(1 - alpha)}, each of the {len(names)} candidates "
        f"({', '.join(names)}) has at least {in_percent(1 - beta)} of {pixels} of a new view "
        "inside its boxes"
    )


def _checked_units(units: ArrayLike) -> NDArray[np.float64]:
    known = np.array(units, dtype=np.float64)
    if known.ndim != 1 or not known.size or not ((known > 0) & (known < inf)).all():
        raise FamilyError(f"units must be one positive number per candidate, got {units}")
    return known
