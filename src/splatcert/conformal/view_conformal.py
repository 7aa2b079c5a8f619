# SPDX-License-Identifier: Apache-2.0
"""View-CP for any positive uncertainty map: conformalize once, then predict boxes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.boxes import Boxes
from splatcert.conformal.calibrate import (
    CalibrationTooSmall,
    scores_of,
    shortfall,
    state_calibration,
    state_guarantee,
    threshold_of,
)
from splatcert.conformal.levels import Level, LevelError, parse_level
from splatcert.conformal.maps import Coverage, Mask, Quantity, each_view, measure_coverage
from splatcert.errors import InputError


class CallOrderError(InputError):
    """A step called before the one it depends on, or called twice."""


class ViewConformal:
    """Boxes that cover a fraction 1 - beta of a new view with probability 1 - alpha.

        conformal = ViewConformal(alpha="1/10", beta="1/10")
        conformal.conformalize(residuals, scales)
        boxes = conformal.predict_interval(center, scale)

    The scales may come from any source, as long as they were fixed before anybody looked at
    the calibration photos. A poor map costs width, never coverage (cor:transfer).

    `alpha` and `beta` may also be sequences: all pairs are calibrated in one pass over the
    pixels. Each pair's guarantee holds separately, for a pair chosen before looking at
    the widths.

    Residuals need not be of colour. `quantity` names what they are of and their unit, for the
    sentences: `Quantity("depth", "m")`. Centres of such boxes are [H, W, 1].
    """

    def __init__(
        self,
        alpha: Level | Sequence[Level],
        beta: Level | Sequence[Level],
        quantity: Quantity | None = None,
    ) -> None:
        self.alphas = _levels(alpha, "alpha")
        """The levels alpha, exact."""
        self.betas = _levels(beta, "beta")
        """The levels beta, exact."""
        self.quantity = quantity
        """What the boxes bound; None for colour."""
        self._scores: NDArray[np.float64] | None = None

    def conformalize(
        self,
        residuals: Iterable[ArrayLike],
        scales: Iterable[ArrayLike],
        masks: Iterable[Mask | None] | None = None,
    ) -> ViewConformal:
        """Score the calibration views: one [H, W] map of each kind per view.

        Iterators work too, with one view in memory at a time. Where a mask is False, the
        pixel does not count.
        """
        if self._scores is not None:
            raise CallOrderError(
                f"already conformalized on {self.views} views.\n"
                "  A threshold is set once. Make a new ViewConformal for other views."
            )
        rows = [scores_of(view, self.betas) for view in each_view(residuals, scales, masks)]
        self._scores = np.array(rows, dtype=np.float64).reshape(-1, len(self.betas))
        for message in filter(None, (shortfall(self.views, alpha) for alpha in self.alphas)):
            warnings.warn(message, CalibrationTooSmall, stacklevel=2)
        return self

    @property
    def views(self) -> int:
        """m, the number of calibration views."""
        return len(self._known_scores())

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the calibration views: [m], or [m, betas] if there are several betas."""
        scores = self._known_scores().copy()
        return scores[:, 0] if len(self.betas) == 1 else scores

    @property
    def thresholds(self) -> dict[tuple[Fraction, Fraction], float]:
        """The threshold of every pair (alpha, beta); infinite where there are too few views."""
        columns = zip(self.betas, self._known_scores().T, strict=True)
        return {(a, b): threshold_of(scores, a) for b, scores in columns for a in self.alphas}

    @property
    def threshold(self) -> float:
        """The threshold, if there is only one pair of levels."""
        return self.thresholds[self._pair(None, None)]

    def predict_interval(
        self,
        center: ArrayLike,
        scale: ArrayLike,
        mask: Mask | None = None,
        *,
        alpha: Level | None = None,
        beta: Level | None = None,
    ) -> Boxes:
        """Boxes around a new view's render [H, W, 3], from its scale map [H, W].

        Outside the mask nothing is claimed and boxes are unbounded. Levels need to be
        named only if there are several.
        """
        thresholds = self.thresholds
        return Boxes.around(center, scale, thresholds[self._pair(alpha, beta)], mask=mask)

    def evaluate(
        self,
        residuals: Iterable[ArrayLike],
        scales: Iterable[ArrayLike],
        masks: Iterable[Mask | None] | None = None,
        *,
        alpha: Level | None = None,
        beta: Level | None = None,
    ) -> Coverage:
        """Coverage and width on labelled views that took no part in calibration.

        A measurement, not the guarantee: on few views it varies widely.
        """
        thresholds = self.thresholds
        pair = self._pair(alpha, beta)
        return measure_coverage(residuals, scales, thresholds[pair], pair[1], masks)

    def guarantee(self, *, alpha: Level | None = None, beta: Level | None = None) -> str:
        """The guarantee in words, and how it was calibrated."""
        views, (a, b) = self.views, self._pair(alpha, beta)
        words = f"{state_guarantee(a, b, views)} ({state_calibration(a, views)})"
        if self.quantity is None:
            return words
        unit = f" in {self.quantity.unit}" if self.quantity.unit else ""
        return f"{words}; a box bounds the {self.quantity.name}{unit}"

    def __repr__(self) -> str:
        return f"ViewConformal(alpha={_written(self.alphas)}, beta={_written(self.betas)})"

    def _known_scores(self) -> NDArray[np.float64]:
        if self._scores is None:
            raise CallOrderError(
                "there is no threshold yet: call conformalize(residuals, scales) first,\n"
                "  with the maps of held-out views whose photos were not used for anything else."
            )
        return self._scores

    def _pair(self, alpha: Level | None, beta: Level | None) -> tuple[Fraction, Fraction]:
        return _chosen(alpha, self.alphas, "alpha"), _chosen(beta, self.betas, "beta")


def _levels(given: Level | Sequence[Level], name: str) -> tuple[Fraction, ...]:
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    levels = tuple(parse_level(level, name) for level in several)
    if not levels or len(set(levels)) < len(levels):
        raise LevelError(f"{name} must be one level or several different ones, got {given!r}")
    return levels


def _chosen(wanted: Level | None, known: Sequence[Fraction], name: str) -> Fraction:
    names = ", ".join(map(str, known))
    if wanted is None and len(known) > 1:
        raise LevelError(f"there are several {name}s: name one of {names}")
    level = known[0] if wanted is None else parse_level(wanted, name)
    if level not in known:
        raise LevelError(f"nothing was calibrated for {name} = {level}, only for {names}")
    return level


def _written(levels: tuple[Fraction, ...]) -> str:
    written = [str(level) for level in levels]
    return repr(written[0] if len(written) == 1 else written)
