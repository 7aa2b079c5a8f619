# SPDX-License-Identifier: Apache-2.0
"""The page: one self-contained HTML file that makes no network requests.

Names may come from untrusted files. The template escapes every one of them, and the page's
content security policy allows no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from splatcert.conformal.calibrate import ordinal
from splatcert.conformal.levels import in_percent
from splatcert.conformal.ranks import rank_correlation
from splatcert.report import charts
from splatcert.report.colours import STEPS, WidthScale, palette
from splatcert.report.content import (
    ReportContent,
    of_255,
    of_one,
    percent,
    plural,
    plus_minus,
    width,
)
from splatcert.report.pictures import Panel, ViewPicture, error_panel, panels, sharpness
from splatcert.storage.whole import write_text_whole

HERE = Path(__file__).parent
HIGH = 0.98
"""Share of the pixels shown whose half-width the colour scale must hold."""
MARKS = {
    "attention": "attention",
    "yours": "up to you",
    "neutral": "no evidence against",
    "ok": "checked",
}


class Row(NamedTuple):
    """One view of the strip."""

    number: int
    name: str
    place: str
    """Rank among all calibration views, in words."""
    needed: float
    given: float
    covered: bool
    inside: float | None
    psnr: float
    panels: tuple[Panel, ...]


def write_page(report: ReportContent, path: Path) -> Path:
    """Write the page, whole or not at all."""
    write_text_whole(path, render_page(report))
    return path


def render_page(report: ReportContent) -> str:
    """The page as text."""
    return fill_template(
        "page.html",
        report=report,
        guarantee=report.guarantee,
        bounded=math.isfinite(report.guarantee.threshold),
        **_derived(report),
    )


def fill_template(name: str, **content: Any) -> str:
    """A page of ours with its style and script, which the page's policy knows by its hash."""
    pages = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(
        percent=percent,
        width=width,
        of_255=of_255,
        of_one=of_one,
        plus_minus=plus_minus,
        level=in_percent,
    )
    pages.globals.update(plural=plural, ordinal=ordinal)
    script = (HERE / "page.js").read_text(encoding="utf-8")
    style = pages.get_template("page.css").render()
    return pages.get_template(name).render(
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        marks=MARKS,
        bar=_bar(),
        **content,
    )


def _derived(report: ReportContent) -> dict[str, Any]:
    """What the template needs beyond the content: rows, charts, counts."""
    views, guarantee = report.calibration, report.guarantee
    scale = scale_for(report)
    rows = [_row(report, picture, k, scale) for k, picture in enumerate(report.pictures, 1)]
    middle = typical(report.pictures)
    covered = charts.is_covered(views, guarantee)
    has_factor = bool(np.ptp(views.factors) > 0)
    return {
        "rows": rows,
        "hero": rows[middle] if rows else None,
        "example": _example(report.pictures[middle], rows[middle], scale) if rows else (),
        "scale": scale,
        "given": guarantee.threshold * views.factors,
        "needed": views.needed(guarantee.beta),
        "apart": _apart(views.needed(guarantee.beta)),
        "order": views.by_difficulty(guarantee.beta).tolist(),
        "covered": covered,
        "short": int((~covered).sum()),
        "counts": Counter(condition.mark for condition in report.conditions),
        "holds": all(check.passed for check in report.checks),
        "coverage_chart": charts.coverage_curve(views, guarantee)
        if math.isfinite(guarantee.threshold)
        else None,
        "width_chart": charts.width_by_view(views, guarantee),
        "factor_chart": charts.factor_scatter(views, guarantee) if has_factor else None,
        "correlation": rank_correlation(views.factors, views.needed(guarantee.beta)),
        "shape_chart": charts.shape_curve(report.shape_test) if report.shape_test else None,
        "next_columns": ("#", *report.next_photos.columns),
        "next_rows": [
            (str(rank), *one.cells) for rank, one in enumerate(report.next_photos.photos, 1)
        ],
        "plan": charts.plan(
            report.training_places, views, guarantee, report.next_photos.photos, scale
        ),
    }


def typical(pictures: Sequence[ViewPicture]) -> int:
    """The sharpest of the views of medium difficulty: a page opens with it."""
    third = len(pictures) // 3
    medium = range(third, max(len(pictures) - third, third + 1)) if pictures else ()
    return max(medium, key=lambda k: sharpness(pictures[k].center), default=0)


def _apart(needed: NDArray[np.float64]) -> str:
    """How far the easiest and the hardest view are from the mean, in words; or nothing."""
    mean = float(needed.mean())
    if not 0 < mean < math.inf:
        return ""
    least, most = needed.min() / mean, needed.max() / mean
    return f"Views needed {least:.2f} to {most:.2f} times the mean half-width; the hardest set it."


def scale_for(report: ReportContent) -> WidthScale:
    """One colour scale for every picture, wide enough for the half-widths shown or needed."""
    return scale_of(report.pictures, report.calibration.needed(report.guarantee.beta).tolist())


def scale_of(pictures: Sequence[ViewPicture], needed: Sequence[float]) -> WidthScale:
    """One colour scale that holds these pictures or, without any, these half-widths."""
    maps = [view.half_width for view in pictures if view.half_width is not None]
    if maps:
        return WidthScale.holding(max(float(np.quantile(one, HIGH)) for one in maps))
    return WidthScale.holding(max(needed))


def _row(report: ReportContent, picture: ViewPicture, number: int, scale: WidthScale) -> Row:
    views, guarantee = report.calibration, report.guarantee
    index = views.names.index(picture.name)
    rank = views.by_difficulty(guarantee.beta).tolist().index(index) + 1
    last = len(views.names)
    place = {1: "easiest", last: "hardest"}.get(rank, f"{ordinal(rank)} of {last}")
    return Row(
        number=number,
        name=picture.name,
        place=place,
        needed=float(views.needed(guarantee.beta)[index]),
        given=float(guarantee.threshold * views.factors[index]),
        covered=bool(charts.is_covered(views, guarantee)[index]),
        inside=None if views.inside is None else float(views.inside[index]),
        psnr=float(views.psnr[index]),
        panels=panels(picture, scale),
    )


def _example(picture: ViewPicture, row: Row, scale: WidthScale) -> tuple[Panel, ...]:
    """A view's half-width and its error under one scale."""
    error = error_panel(picture, scale)
    width = [panel for panel in row.panels if panel.kind == "half-width"]
    return (*width, error) if error and width else ()


def _bar() -> str:
    """The colour scale as a CSS gradient."""
    stops = palette()[np.linspace(0, STEPS - 1, 17).round().astype(int)]
    return ", ".join(f"#{bytes(colour).hex()}" for colour in stops)
