# SPDX-License-Identifier: Apache-2.0
"""Coverage and width by region of the capture: where the guarantee's average comes from.

Each calibration view is left out in turn and compared with the threshold of the others. With a
few views per region this is a rough picture, not a guarantee per region.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.calibrate import threshold_of

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate

Array = NDArray[np.float64]
FEWEST = 4
"""Views of a region, at least."""
SPLITS = 2
"""Times that regions are halved, where there are enough views: four regions."""


@dataclass(frozen=True, kw_only=True)
class Region:
    """Calibration views whose cameras stand near each other."""

    around: str
    """The view in its middle."""
    views: int
    covered: int
    """Views covered by the threshold of all other views."""
    half_width: float
    """Mean half-width of its boxes; infinite where they are unbounded."""
    needed: float
    """Mean half-width that would have covered its views."""


def regions_of(certificate: Certificate) -> tuple[Region, ...]:
    """Regions of equal numbers of calibration views; none if there are too few views."""
    views = certificate.record.calibration
    scores, factors = certificate.scores, np.array([view.factor for view in views])
    covered = left_out_coverage(scores, certificate)
    places = np.array([view.camera.centre for view in views])
    groups = halved(places)
    if len(groups) < 2:
        return ()
    return tuple(
        Region(
            around=views[_middle(places, rows)].name,
            views=len(rows),
            covered=int(covered[rows].sum()),
            half_width=float((certificate.threshold * factors[rows]).mean()),
            needed=float((scores[rows] * factors[rows]).mean()),
        )
        for rows in groups
    )


def left_out_coverage(scores: Array, certificate: Certificate) -> NDArray[np.bool_]:
    """Whether each view is covered by the threshold of the others, [m]."""
    return np.array(
        [
            score <= threshold_of(np.delete(scores, index), certificate.alpha)
            for index, score in enumerate(scores)
        ]
    )


def halved(places: Array, times: int = SPLITS) -> list[NDArray[np.intp]]:
    """Rows of places [m, 3] in groups, halved along the direction in which they spread most."""
    groups: list[NDArray[np.intp]] = [np.arange(len(places))]
    for _ in range(times):
        if min(len(rows) for rows in groups) < 2 * FEWEST:
            break
        groups = [half for rows in groups for half in _halves(places, rows)]
    return groups


def _halves(places: Array, rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    offsets = places[rows] - places[rows].mean(axis=0)
    axis = np.linalg.eigh(offsets.T @ offsets)[1][:, -1]
    axis = axis * np.sign(axis[np.abs(axis).argmax()])  # eigenvectors have no sign of their own
    return [np.sort(half) for half in np.array_split(rows[np.argsort(offsets @ axis)], 2)]


def _middle(places: Array, rows: NDArray[np.intp]) -> int:
    away = np.linalg.norm(places[rows] - places[rows].mean(axis=0), axis=1)
    return int(rows[away.argmin()])
