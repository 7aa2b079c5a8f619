# SPDX-License-Identifier: Apache-2.0
"""The parts of a report as plain numbers, words and arrays, and how its numbers are written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.content.promise import PromiseRecord
from splatcert.certificate.content.record import Guarantee
from splatcert.conformal.boxes import VACUOUS, width_in_words
from splatcert.report.pictures import ViewPicture
from splatcert.report.quantities import ShownQuantity
from splatcert.verification.checks import Check

Array = NDArray[np.float64]
Mark = Literal["ok", "neutral", "attention", "yours"]
"""Checked; tested, and no evidence against it found; needs attention; only the reader can know."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One thing the guarantee depends on, and what is known about it here."""

    mark: Mark
    title: str
    words: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    """A small table with the numbers behind the words."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationViews:
    """The calibration views, one row each."""

    names: tuple[str, ...]
    factors: Array
    """a_v, [m]."""
    levels: tuple[Fraction, ...]
    """Shares of pixels that may lie outside their boxes."""
    reach: Array
    """Smallest mean half-width that reaches each level, [m, levels]: the oracle factors."""
    psnr: Array
    """PSNR of the renders in decibels, [m]."""
    places: Array
    """Camera centres, [m, 3]."""
    inside: Array | None
    """Share of pixels inside their boxes, [m]; None without photos."""

    def needed(self, beta: Fraction) -> Array:
        """Smallest mean half-width that covers each view, a*_v, [m]."""
        return self.reach[:, self.levels.index(beta)]

    def by_difficulty(self, beta: Fraction) -> NDArray[np.intp]:
        """Rows from the easiest view to the hardest."""
        return np.argsort(self.needed(beta), kind="stable")


class ScaleRow(NamedTuple):
    """Coverage and width of one scale over random splits."""

    name: str
    words: str
    coverage: float
    width: float
    saving: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The diagnostic estimate from random splits, or why there is none."""

    rows: tuple[ScaleRow, ...]
    words: str


@dataclass(frozen=True, eq=False)
class ShapeTest:
    """Error against shape within views: the pixels of all views in bins of b~."""

    shape: Array
    """Mean b~ of a bin, [bins]."""
    error: Array
    """Mean error of its pixels relative to the mean error of their view, [bins]."""


class PhotoError(NamedTuple):
    """How far the render is from one photograph that a label was opened for."""

    name: str
    role: str
    psnr: float
    needed: float
    """Mean half-width at which 1 - beta of its pixels would be inside."""


class NextPhoto(NamedTuple):
    """A place worth another photograph: a row of a table."""

    cells: tuple[str, ...]
    place: tuple[float, float, float]
    """Camera centre."""


class NextPhotos(NamedTuple):
    """Places worth another photograph, best first."""

    columns: tuple[str, ...]
    photos: tuple[NextPhoto, ...]


class Facts(NamedTuple):
    """A titled list of names and values."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportContent:
    """Everything on the page."""

    scene: str
    created: str
    guarantee: Guarantee
    promise: PromiseRecord
    headline: str
    """The guarantee in one sentence."""
    applies_to: str
    """What a new view or stretch must be exchangeable with."""
    member_columns: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    """All members of a family with their widths; empty without one."""
    batch_only: bool
    """Whether the guarantee covers only views of the certified batch."""
    conditions: tuple[Condition, ...]
    calibration: CalibrationViews
    photos: tuple[PhotoError, ...]
    """Training and calibration photographs, from the largest error to the smallest."""
    training_places: Array
    """Centres of the training cameras, [T, 3]."""
    pictures: tuple[ViewPicture, ...]
    """Views from easiest to hardest; empty without a model."""
    factor_words: str
    """Where the view factor comes from."""
    shape_words: str
    """Where the shape comes from."""
    shape_test: ShapeTest | None
    coverage_by_tenth: Array | None
    """Share of pixels inside, from each view's narrowest boxes to its widest; None if unknown."""
    estimate: Estimate
    next_photos: NextPhotos
    quantities: tuple[ShownQuantity, ...] = ()
    """Quantities other than colour."""
    checks: tuple[Check, ...] = ()
    commands: tuple[str, ...] = ()
    """Commands that check the certificate, ready to run."""
    provenance: tuple[Facts, ...]
    missing: tuple[str, ...]
    """What this report does not show, and which option adds it."""


def percent(share: float) -> str:
    """A measured share in percent; a dash where there is none."""
    return "-" if math.isnan(share) else f"{100 * share:.1f}%"


def width(value: float) -> str:
    """A half-width in both units: ±29.8 of 255 (0.117)."""
    if value > VACUOUS:
        return width_in_words(value)
    return f"±{of_255(value)} of 255 ({of_one(value)})"


def plus_minus(value: float) -> str:
    """A half-width in 8-bit units with its sign."""
    return of_255(value) if value > VACUOUS else f"±{of_255(value)}"


def of_255(value: float) -> str:
    """A half-width in 8-bit units."""
    return _no_number(value) or f"{255 * value:.1f}"


def of_one(value: float) -> str:
    """A half-width on the colour range 0 to 1."""
    return _no_number(value) or f"{value:.3f}"


def _no_number(value: float) -> str:
    """What stands for a half-width that says nothing; empty for any other."""
    if value > VACUOUS:
        return "∞" if math.isinf(value) else "vacuous"
    return ""


def plural(count: int, noun: str) -> str:
    """1 view, 2 views."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
