# SPDX-License-Identifier: Apache-2.0
"""One view in a certificate: as a training view, a query view or a calibration view.

Entries are stored in certificate.json, columns in views.npz.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.errors import InputError
from splatcert.storage.schema import column

Array = NDArray[np.float64]
MOST = 1e30
"""Largest allowed threshold, score or factor: up to it, widths stay finite."""


def is_width(value: float) -> bool:
    """Whether a number can be a threshold or a score."""
    return 0 <= value <= MOST or value == math.inf


class RecordError(InputError):
    """An entry of a certificate with an impossible value."""


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """One training view: its camera, its photograph and its numbers.

    Columns are stored in views.npz. Certification does not use the labels in them, but other
    scenes may learn from them.
    """

    name: str
    camera: Camera
    pose: str
    """Hash of the camera."""
    image: str
    """Hash of the pixels as they were compared."""
    file: str | None
    """Hash of the photograph's file, if there is one."""
    descriptor: Array | None = column(None)
    field_mean: float = column(math.nan)
    shares: Array | None = column(None)
    """Shares of pixels that training hardly showed, [3]."""
    oracle: Array | None = column(None)
    pixels: int | None = column(None)
    psnr: float = column(math.nan)


@dataclass(frozen=True, kw_only=True)
class QueryRecord:
    """One held-out view before its label is used; these entries fix its scale."""

    name: str
    camera: Camera
    pose: str
    field: str
    """Hash of the map b behind the shape of the scale."""
    factor: float
    """a_v."""
    descriptor: Array | None = column(None)
    """z_v, [24]; in views.npz, like every column below."""
    field_mean: float = column(math.nan)
    shares: Array | None = column(None)
    """Shares of pixels that training hardly showed, [3]."""

    def __post_init__(self) -> None:
        if not 1 / MOST <= self.factor <= MOST:
            raise RecordError(f"the factor must be {1 / MOST:g} to {MOST:g}, got {self.factor}")


@dataclass(frozen=True, kw_only=True)
class CalibrationRecord(QueryRecord):
    """One calibration view with the results of its label."""

    image: str
    file: str | None
    score: float
    """R_v (eq:view-score)."""
    oracle: Array | None = column(None)
    """a*_v (eq:oracle-factor) at each beta and each shrinkage of the shape."""
    pixels: int | None = column(None)
    """Pixels that count."""
    psnr: float = column(math.nan)
    tenths: NDArray[np.int64] | None = column(None)
    """Pixels, and those inside their certified boxes, by tenths of the half-width, [10, 2]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_width(self.score):
            raise RecordError(f"the score must be 0 to {MOST:g}, or infinite, got {self.score}")
