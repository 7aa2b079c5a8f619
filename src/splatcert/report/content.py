# SPDX-License-Identifier: Apache-2.0
"""What a report tells, as plain numbers, words and arrays: the certificate's side hands these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.certificate import Certificate
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.report.pictures import ViewPicture

Array = NDArray[np.float64]
Mark = Literal["ok", "attention", "yours"]
"""Checked and fine; look at this; nobody but the reader can know."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """The guarantee in numbers."""

    alpha: Fraction
    beta: Fraction
    views: int
    """m, the calibration views."""
    rank: int
    """k; the threshold is the k-th smallest score."""
    threshold: float
    """q; infinite where k > m."""
    masked: bool
    """Whether it is about the pixels that count only."""
    batch_only: bool
    """Whether it is about views of one batch only."""
    statement: str
    """As certificate.json has it."""

    @property
    def is_finite(self) -> bool:
        """Whether the boxes say anything at all."""
        return math.isfinite(self.threshold)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One thing the guarantee rests on, and how it looks."""

    mark: Mark
    title: str
    words: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    """A small table, where a sentence is not enough."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """The calibration views, one row each."""

    names: tuple[str, ...]
    factors: Array
    """a_v, [m]."""
    levels: tuple[Fraction, ...]
    """Shares of pixels that may miss."""
    reach: Array
    """Mean half-width at which a view just has so few misses, [m, levels]: its oracle factors."""
    psnr: Array
    """Of the renders, decibels, [m]."""
    places: Array
    """Where the cameras stood, [m, 3]."""
    inside: Array | None
    """Share of pixels inside their boxes, [m]; None where photos were not looked at."""

    def needed(self, beta: Fraction) -> Array:
        """Mean half-width at which each view would just have been covered, a*_v, [m]."""
        return self.reach[:, self.levels.index(beta)]

    def by_difficulty(self, beta: Fraction) -> NDArray[np.intp]:
        """Rows from the easiest view to the hardest."""
        return np.argsort(self.needed(beta), kind="stable")


class ScaleRow(NamedTuple):
    """What one scale costs over random splits."""

    name: str
    words: str
    coverage: float
    width: float
    saving: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The diagnostic by random splits, or why there is none."""

    rows: tuple[ScaleRow, ...]
    words: str


@dataclass(frozen=True, eq=False)
class ShapeTest:
    """Does the error within views follow the shape? Pixels of all views in bins of b~."""

    shape: Array
    """Mean b~ of a bin, [bins]."""
    error: Array
    """Mean error of its pixels over the mean error of their view, [bins]."""


class NextPhoto(NamedTuple):
    """A place worth another photograph, and why."""

    title: str
    words: str
    half_width: float
    place: tuple[float, float, float]


class Verified(NamedTuple):
    """One check of the certificate, made when the report was written."""

    name: str
    passed: bool
    detail: str


class Facts(NamedTuple):
    """A titled list of names and values."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Report:
    """Everything on the page."""

    scene: str
    created: str
    promise: Promise
    conditions: tuple[Condition, ...]
    calibration: Calibration
    training_places: Array
    """Where the training cameras stood, [T, 3]."""
    pictures: tuple[ViewPicture, ...]
    """Views from the easiest to the hardest; none without a model."""
    factor_words: str
    """Where the view factor comes from."""
    shape_words: str
    """How much the shape counts."""
    shape_test: ShapeTest | None
    estimate: Estimate
    next_photos: tuple[NextPhoto, ...]
    checks: tuple[Verified, ...] = ()
    commands: tuple[str, ...] = ()
    """How to check the certificate, to be typed as they are."""
    provenance: tuple[Facts, ...]
    missing: tuple[str, ...]
    """What this report could not show, and what it takes."""


def percent(share: float) -> str:
    """A measured share for people; a dash where there is none."""
    return "-" if math.isnan(share) else f"{100 * share:.1f}%"


def width(value: float) -> str:
    """A half-width in both units: ±29.8 of 255 (0.117)."""
    return f"±{of_255(value)} of 255 ({of_one(value)})"


def of_255(value: float) -> str:
    """A half-width in 8-bit units."""
    return "∞" if math.isinf(value) else f"{255 * value:.1f}"


def of_one(value: float) -> str:
    """A half-width where colours go from 0 to 1."""
    return "∞" if math.isinf(value) else f"{value:.3f}"


def plural(count: int, noun: str) -> str:
    """1 view, 2 views."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


PLACES = 5


def next_photos(certificate: Certificate) -> tuple[NextPhoto, ...]:
    """Places near the calibration views that needed the widest boxes, worst first.

    What a report advises where nobody has searched for better places.
    """
    record, views = certificate.record, certificate.views
    rows = [views.held_out.names.index(view.name) for view in record.calibration]
    needed = views.oracle("held-out", certificate.beta, record.scale.lambda_b)[rows]
    described = views.held_out.descriptors[rows]
    typical = np.median(described, axis=0)
    worst = np.argsort(-needed, kind="stable")[:PLACES]
    return tuple(
        NextPhoto(
            title=f"near {record.calibration[row].name}",
            words=_reason(described[row], typical),
            half_width=float(needed[row]),
            place=_place(certificate, int(row)),
        )
        for row in worst
    )


def _place(certificate: Certificate, row: int) -> tuple[float, float, float]:
    x, y, z = certificate.record.calibration[row].camera.camera().centre.tolist()
    return x, y, z


def _reason(found: np.ndarray, typical: np.ndarray) -> str:
    """In what the view is worse supported than most, or that it is hard all the same."""
    angle, exposure, distance = (
        FEATURE_NAMES.index(name) for name in ("sup_ang_mean", "sup_logE_mean", "g_dnn")
    )
    reasons = []
    if found[angle] > 1.1 * typical[angle]:
        reasons.append(
            f"sees surfaces {math.degrees(found[angle]):.0f}° off the directions they were "
            f"photographed from (typically {math.degrees(typical[angle]):.0f}°)"
        )
    if found[exposure] < typical[exposure] - math.log(1.25):
        share = math.exp(found[exposure] - typical[exposure])
        reasons.append(f"sees surfaces that were photographed {100 * share:.0f}% as much as usual")
    if found[distance] > 1.25 * typical[distance]:
        ratio = found[distance] / typical[distance]
        reasons.append(f"stands {ratio:.1f} times as far from a training camera as usual")
    if not reasons:
        return "as well photographed as others, but hard: fine detail, gloss or movement"
    return "; ".join(reasons)
