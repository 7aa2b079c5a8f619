# SPDX-License-Identifier: Apache-2.0
"""A guarantee for camera paths: for pixels in a view, views in a stretch, and stretches.

It is the view-level guarantee, one level up. The statistical unit is a stretch, a run of
consecutive views. These may depend on each other in any way, as neighbours on a path do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.boxes import Boxes
from splatcert.conformal.calibrate import ordinal, scores_of, threshold_of
from splatcert.conformal.levels import Level, in_percent, parse_level
from splatcert.conformal.maps import MapError, Mask, each_view
from splatcert.conformal.ranks import ceil_rank, order_statistic, outer_rank, views_needed
from splatcert.conformal.view_conformal import CallOrderError
from splatcert.errors import InputError


class PathError(InputError):
    """A gamma, stretch length or number of photographs that does not allow a path guarantee."""


@dataclass(frozen=True)
class Stretches:
    """Held-out photographs cut into stretches of one length."""

    runs: tuple[tuple[str, ...], ...]
    """Names of the photographs of each stretch, in capture order."""
    dropped: tuple[str, ...]
    """Photographs at the end that do not fill a stretch and are not used to calibrate."""


def stretches_of(names_in_order: Sequence[str], length: int) -> Stretches:
    """Runs of `length` consecutive held-out photographs; the remainder at the end is dropped.

    Runs do not overlap: two that share a photograph resemble each other more than a new
    stretch resembles either. If photographs come in separate blocks, cut each separately.
    """
    whole = len(names_in_order) // _checked_length(length) * length
    runs = tuple(tuple(names_in_order[at : at + length]) for at in range(0, whole, length))
    return Stretches(runs, tuple(names_in_order[whole:]))


def stretch_score(view_scores: ArrayLike, gamma: Level) -> float:
    """Smallest multiplier at which a share 1 - gamma of the stretch's views are covered.

        S = R_(j), j = ceil(L (1 - gamma)), of the scores R of the stretch's L views

    A view is covered if and only if q >= R_v (lem:event), so the stretch has at most
    floor(L gamma) misses if and only if q >= S.
    """
    share, scores = _parse_gamma(gamma), np.asarray(view_scores, dtype=np.float64)
    if scores.ndim != 1 or not scores.size:
        raise MapError(f"view scores must be one number per view, got shape {scores.shape}")
    return order_statistic(scores, ceil_rank(scores.size, 1 - share))


def path_threshold(stretch_scores: ArrayLike, alpha: Level) -> float:
    """The multiplier that covers a new stretch with probability at least 1 - alpha.

    q = S_(k), k = ceil((m + 1) (1 - alpha)), of the scores S of m calibration stretches.
    Raises an error if there are too few stretches for a finite threshold.
    """
    level, scores = parse_level(alpha, "alpha"), np.asarray(stretch_scores, dtype=np.float64)
    if scores.ndim != 1:
        raise MapError(f"stretch scores must be one number per stretch, got {scores.shape}")
    if scores.size < views_needed(level):
        raise PathError(
            f"{scores.size} stretches are too few for alpha = {level}.\n"
            f"  Use at least {views_needed(level)} stretches{_or_alpha(scores.size)}."
        )
    return threshold_of(scores, level)


class PathConformal:
    """Boxes that cover a share 1 - gamma of a new stretch's views with probability 1 - alpha.

        conformal = PathConformal(alpha="1/10", beta="1/10", gamma="1/5", length=5)
        conformal.conformalize(residuals, scales)
        boxes = conformal.predict_interval(center, scale)

    A view is covered if at least a fraction 1 - beta of its pixels lie inside their boxes.
    With gamma = 0 the guarantee is about every view of a stretch. All four numbers must be
    chosen before anybody looks at the calibration photos.
    """

    def __init__(self, alpha: Level, beta: Level, gamma: Level, length: int) -> None:
        self.alpha, self.beta = parse_level(alpha, "alpha"), parse_level(beta, "beta")
        self.gamma, self.length = _parse_gamma(gamma), _checked_length(length)
        if length < self.shortest:
            raise PathError(
                f"gamma = {self.gamma} allows no miss in a stretch of {length} views: "
                f"floor({length} * {self.gamma}) = 0.\n"
                f"  Use gamma >= 1/{length} or stretches of at least {self.shortest} views.\n"
                "  To certify every view of a stretch, use gamma = 0."
            )
        self._scores: NDArray[np.float64] | None = None

    def require_photographs(self, count: int) -> None:
        """Refuse a number of held-out photographs that is too small for the guarantee.

        Call it before any expensive work; `conformalize` calls it too.
        """
        stretches, needed = count // self.length, views_needed(self.alpha)
        if stretches >= needed:
            return
        # Do not propose stretches so short that gamma allows no miss in them.
        shorter = f", use stretches of at most {count // needed} views"
        raise PathError(
            f"{count} held-out photographs make {stretches} stretches of {self.length}, "
            f"too few for alpha = {self.alpha}.\n"
            f"  A finite threshold requires ceil((m + 1) * {1 - self.alpha}) <= m, that is "
            f"{needed} stretches or {needed * self.length} photographs.\n"
            f"  Hold out at least {needed * self.length - count} more"
            f"{shorter if count // needed >= self.shortest else ''}{_or_alpha(stretches)}."
        )

    def conformalize(
        self,
        residuals: Iterable[ArrayLike],
        scales: Iterable[ArrayLike],
        masks: Iterable[Mask | None] | None = None,
    ) -> PathConformal:
        """Score the calibration views in capture order: one [H, W] map of each kind per view.

        Every `length` views make a stretch; the remainder at the end is dropped.
        """
        if self._scores is not None:
            raise CallOrderError(
                f"already conformalized on {self.stretches} stretches.\n"
                "  A threshold is set once. Make a new PathConformal for other views."
            )
        rows = [scores_of(view, [self.beta])[0] for view in each_view(residuals, scales, masks)]
        self.require_photographs(len(rows))
        self._scores = np.array(rows, dtype=np.float64)
        return self

    @property
    def view_scores(self) -> NDArray[np.float64]:
        """Scores of the calibration views in the order given, dropped ones included."""
        if self._scores is None:
            raise CallOrderError("there is no threshold yet: call conformalize first")
        return self._scores.copy()

    @property
    def stretches(self) -> int:
        """m, the number of calibration stretches."""
        return self.view_scores.size // self.length

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the calibration stretches, [m]."""
        whole = self.view_scores[: self.stretches * self.length].reshape(-1, self.length)
        return np.array([stretch_score(run, self.gamma) for run in whole])

    @property
    def threshold(self) -> float:
        """The multiplier q for every view of a path."""
        return path_threshold(self.scores, self.alpha)

    def predict_interval(
        self, center: ArrayLike, scale: ArrayLike, mask: Mask | None = None
    ) -> Boxes:
        """Boxes around the render [H, W, 3] of one view of a path, from its scale map [H, W]."""
        return Boxes.around(center, scale, self.threshold, mask=mask)

    def guarantee(self) -> str:
        """The guarantee in words, its scope and its calibration."""
        m, left = self.stretches, self.view_scores.size % self.length
        unused = f", the last {left} of {self.view_scores.size} views not used" if left else ""
        return (
            f"{state_path_guarantee(self.alpha, self.beta, self.gamma, self.length)}, "
            f"if the stretch is exchangeable with the {m} calibration stretches "
            f"({m} runs of {self.length} consecutive held-out views{unused}; threshold = "
            f"{ordinal(outer_rank(m, self.alpha))} smallest of {m} stretch scores)"
        )

    def __repr__(self) -> str:
        levels = f"alpha='{self.alpha}', beta='{self.beta}', gamma='{self.gamma}'"
        return f"PathConformal({levels}, length={self.length})"

    @property
    def shortest(self) -> int:
        """Smallest number of views in a stretch at which gamma allows a miss."""
        return ceil(1 / self.gamma) if self.gamma else 2


def state_path_guarantee(
    alpha: Fraction,
    beta: Fraction,
    gamma: Fraction,
    length: int,
    *,
    names: Sequence[str] = (),
    masked: bool = False,
) -> str:
    """The guarantee for a new stretch, in whole views; with names, for each of these candidates."""
    covered = ceil_rank(length, 1 - gamma)
    pixels = "their pixels that count (masks)" if masked else "their pixels"
    views = f"all {length}" if covered == length else f"at least {covered} of the {length}"
    each = f"for each of the {len(names)} candidates ({', '.join(names)}), " if names else ""
    return (
        f"With probability at least {in_percent(1 - alpha)}, {each}{views} views of a new stretch "
        f"have at least {in_percent(1 - beta)} of {pixels} inside their boxes"
    )


def _parse_gamma(gamma: Level) -> Fraction:
    """A share of views; unlike other levels it may be 0, which requires every view."""
    none = re.fullmatch(r"0+(\.0*)?%?", str(gamma).strip())
    return Fraction(0) if none else parse_level(gamma, "gamma")


def _checked_length(length: int) -> int:
    if length < 2:
        hint = "Choose a longer one, or make a promise about single views."
        raise PathError(f"a stretch must have at least 2 views, got {length}.\n  {hint}")
    return length


def _or_alpha(stretches: int) -> str:
    return f", or use alpha >= 1/{stretches + 1}" if stretches else ""
