# SPDX-License-Identifier: Apache-2.0
"""Two certificates side by side: the photographs that both were calibrated on, and what changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.config import ReportConfig
from splatcert.progress import Progress, quiet
from splatcert.report.build import calibration_of
from splatcert.report.colours import WidthScale
from splatcert.report.content import CalibrationViews, width
from splatcert.report.page import fill_template, scale_of
from splatcert.report.pictures import Panel, ViewPicture, panels
from splatcert.report.svg import Axis, Chart
from splatcert.report.views import render_views
from splatcert.scene.scene import Scene
from splatcert.storage.whole import write_text_whole

LETTERS = ("A", "B")
KINDS = ("render", "half-width", "misses")
"""Pictures of a view that are shown of both, one pair after the other."""
SAME = 0.5 / 255
"""Changes below half a step of an 8-bit colour are called unchanged."""


class Row(NamedTuple):
    """One photograph that both certificates were calibrated on."""

    name: str
    needed: tuple[float, float]
    """Mean half-width at which the view would just have been covered, by A and by B."""
    given: tuple[float, float]
    psnr: tuple[float, float]

    @property
    def change(self) -> float:
        """How much wider boxes B needs than A; negative if narrower."""
        before, after = self.needed
        return after - before if math.isfinite(after - before) else 0.0

    @property
    def verdict(self) -> str:
        """The change in a word."""
        if abs(self.change) < SAME:
            return "same"
        return "worse" if self.change > 0 else "better"


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Everything on the page."""

    certificates: tuple[Certificate, Certificate]
    places: tuple[str, str]
    """Where each certificate is, as its reader knows it."""
    rows: tuple[Row, ...]
    """From the photograph that B is worst at, compared with A, to the one it is best at."""
    apart: tuple[int, int]
    """Calibration photographs that only one of them has."""
    pictures: dict[str, tuple[ViewPicture, ViewPicture]]
    """Some of the rows, in their order; empty unless both have their model."""

    def mean_given(self, side: int) -> float:
        """Mean half-width over the shared photographs."""
        return float(np.mean([row.given[side] for row in self.rows]))

    def count(self, verdict: str) -> int:
        """How many photographs changed in this way."""
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def one_family(self) -> bool:
        """Whether both belong to one family, whose promise allows a choice between them."""
        first, second = (one.record.promise.family for one in self.certificates)
        return first is not None and second is not None and first.frozen == second.frozen

    @property
    def headline(self) -> str:
        """The change of the half-widths in one sentence."""
        before, after = self.mean_given(0), self.mean_given(1)
        if not (0 < before < math.inf and math.isfinite(after)):
            return "One of these certificates has no finite boxes."
        share = after / before - 1
        if abs(share) < 0.005:
            return "Boxes are as wide in B as in A."
        return f"Boxes are {abs(share):.0%} {'wider' if share > 0 else 'narrower'} in B than in A."


def compare(
    certificates: tuple[Certificate, Certificate],
    places: tuple[str, str] = LETTERS,
    scenes: tuple[Scene | None, Scene | None] = (None, None),
    config: ReportConfig | None = None,
    on: Progress = quiet,
) -> Comparison:
    """Compare two certificates on the photographs that both were calibrated on.

    A photograph is shared if name and pixels agree. Certificates at different levels, or without a
    shared photograph, are refused.
    """
    refuse_other_levels(certificates, places)
    first, second = (
        {view.name: view.image for view in one.record.calibration} for one in certificates
    )
    shared = [name for name, image in first.items() if second.get(name) == image]
    if not shared:
        raise CertificateError(
            f"{places[0]} and {places[1]} were calibrated on different photographs, so there is "
            "nothing to compare.\n"
            "  Certify both with the same held-out photographs at the same resolution."
        )
    views = tuple(calibration_of(one) for one in certificates)
    rows = sorted((_row(name, certificates, views) for name in shared), key=lambda row: -row.change)
    pictures: dict[str, tuple[ViewPicture, ViewPicture]] = {}
    if all(one.scale is not None for one in certificates):
        count = (config or ReportConfig()).views
        chosen = np.unique(np.linspace(0, len(rows) - 1, count).round().astype(int))
        names = [rows[k].name for k in chosen]
        sides = [
            render_views(one, scene, names, photos=False, on=on).pictures
            for one, scene in zip(certificates, scenes, strict=True)
        ]
        pictures = {name: pair for name, *pair in zip(names, *sides, strict=True)}  # type: ignore[misc]
    return Comparison(
        certificates=certificates,
        places=places,
        rows=tuple(rows),
        apart=(len(first) - len(shared), len(second) - len(shared)),
        pictures=pictures,
    )


def refuse_other_levels(certificates: Sequence[Certificate], places: Sequence[str]) -> None:
    """Half-widths at different levels, or of different promises, cannot be compared."""
    kinds = [(one.alpha, one.beta, one.record.promise.path is None) for one in certificates]
    if kinds[0] == kinds[1]:
        return
    words = [
        f"{place}: alpha = {alpha}, beta = {beta}, about {'a view' if view else 'a path'}"
        for place, (alpha, beta, view) in zip(places, kinds, strict=True)
    ]
    raise CertificateError(
        f"These certificates make different promises:\n  {words[0]}\n  {words[1]}\n"
        "  Their half-widths cannot be compared. Certify both in the same way."
    )


def _row(
    name: str, certificates: tuple[Certificate, Certificate], views: Sequence[CalibrationViews]
) -> Row:
    def both(values: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
        found = [
            float(one[side.names.index(name)]) for one, side in zip(values, views, strict=True)
        ]
        return found[0], found[1]

    sides = list(zip(certificates, views, strict=True))
    return Row(
        name=name,
        needed=both([side.needed(one.beta) for one, side in sides]),
        given=both([one.threshold * side.factors for one, side in sides]),
        psnr=both([side.psnr for _, side in sides]),
    )


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Write the page, whole or not at all; returns its path."""
    write_text_whole(Path(path), render_comparison(comparison))
    return Path(path)


def render_comparison(comparison: Comparison) -> str:
    """The page as text."""
    everything = [view for pair in comparison.pictures.values() for view in pair]
    scale = scale_of(everything, [value for row in comparison.rows for value in row.needed])
    rows = {row.name: row for row in comparison.rows}
    return fill_template(
        "compare.html",
        comparison=comparison,
        letters=LETTERS,
        scale=scale,
        chart=_chart(comparison.rows),
        shown=[(rows[name], _panels(pair, scale)) for name, pair in comparison.pictures.items()],
    )


def _panels(pair: tuple[ViewPicture, ViewPicture], scale: WidthScale) -> list[Panel]:
    """Each kind of picture of A beside that of B."""
    sides = [{panel.kind: panel for panel in panels(view, scale)} for view in pair]
    return [
        side[kind]._replace(label=f"{letter}: {side[kind].label}")
        for kind in KINDS
        for letter, side in zip(LETTERS, sides, strict=True)
        if kind in side
    ]


def _chart(rows: Sequence[Row]) -> Markup:
    """Half-width needed by A across, by B upwards: B is worse above the diagonal."""
    known = [row for row in rows if all(map(math.isfinite, row.needed))]
    most = max((max(row.needed) for row in known), default=1 / 255)
    across, up = (
        Axis.upwards(f"needed by {letter}, of 255", most, unit=1 / 255) for letter in LETTERS
    )
    chart = Chart(across, up)
    chart.line([(0, 0), (chart.x.high, chart.x.high)], "target")
    marks = [
        (row, (row.needed, f"{row.name}: {width(row.needed[0])} by A, {width(row.needed[1])} by B"))
        for row in known
    ]
    chart.crosses([mark for row, mark in marks if row.verdict == "worse"], "cross")
    chart.dots([mark for row, mark in marks if row.verdict != "worse"], "dot")
    worse = sum(row.verdict == "worse" for row in rows)
    return chart.svg(
        "Half-width needed by A and by B",
        f"{worse} of {len(rows)} photographs need wider boxes in B.",
    )
