# SPDX-License-Identifier: Apache-2.0
"""The qualitative figures: renders, half-widths and misses, never a photograph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.calibrate import threshold_of
from splatcert.conformal.splits import calibration_size, draw_splits
from splatcert.difficulty.factor import shape, shrink
from splatcert_bench.statistics import compared_scales as scales
from splatcert_bench.statistics.choices import MissingError
from splatcert_bench.statistics.evidence import Evidence
from splatcert_bench.studies.collection import PREFERRED, SHOWN, BenchStudies, spread
from splatcert_bench.studies.counts import ViewPicture
from splatcert_bench.studies.study import Study
from splatcert_bench.tables.cells import label

Map = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Calibrated half-widths of one scale on one view."""

    label: str
    half_width: Map
    """[H, W]."""
    covered: float
    """Share of the counted pixels inside their boxes."""
    misses: NDArray[np.bool_]
    """[H, W]."""


@dataclass(frozen=True, eq=False)
class PanelRow:
    """One view: its render and the boxes of two scales."""

    label: str
    render: NDArray[np.uint8]
    boxes: tuple[Boxes, ...]


@dataclass(frozen=True, eq=False)
class Panel:
    """A figure of rows, with mean widths of a scene's views beside them if given."""

    name: str
    title: str
    caption: str
    rows: tuple[PanelRow, ...]
    widths: Mapping[str, Map] = field(default_factory=dict)
    """By label of the scale, in order of the views' difficulty, [V]."""


def overview_panel(bench: BenchStudies) -> Panel:
    """One scale for all views, and ours, where views are easy and hard (fig:overview)."""
    study, rows, widths = _ends(bench, ("constant", "full"))
    mean = [float(box.half_width.mean()) for row in rows for box in row.boxes]
    caption = (
        f"{study.scene}: easiest and hardest held-out view by oracle difficulty, under one "
        f"half-width for all pixels of all views, and under ours. {_inside(rows)}, with one "
        f"half-width and with ours. Ours is {_percent(mean[1] / mean[0])} of it on the easiest "
        f"view and {_percent(mean[3] / mean[2])} on the hardest. {_units(study)}"
    )
    return Panel("overview", "What a single half-width gets wrong", caption, rows, widths)


def extremes_panel(bench: BenchStudies) -> Panel:
    """Easiest and hardest view of a scene: where the view factor acts (fig:nullspace)."""
    study, rows, widths = _ends(bench, ("shape", "full"))
    caption = (
        f"{study.scene}: easiest and hardest held-out view by oracle difficulty. A view factor "
        "does not change the order of pixels within a view, so the two maps of a row look alike; "
        f"it changes their level. {_inside(rows)}, with b̃ alone and with a × b̃. {_units(study)}"
    )
    return Panel("extremes", "What the view factor does", caption, rows, widths)


def intervals_panel(bench: BenchStudies) -> Panel:
    """The view of median difficulty of three scenes, with its misses (fig:qualitative)."""
    evidence, pictured = _pictured(bench, 1)
    rows = []
    for study in spread(evidence.studies, SHOWN, attrgetter("family")):
        views = _by_difficulty(evidence, study, pictured[study.key])
        picture = views[len(views) // 2]
        methods = [m for m in ("gsu", "full") if evidence.can(m, study)]
        cut = _multipliers(evidence, study, methods, [picture.name])
        boxes = tuple(_boxes(evidence, study, picture, m, q) for m, q in cut.items())
        rows.append(PanelRow(study.scene, picture.render, boxes))
    said = ", ".join(f"{row.label} {100 * row.boxes[-1].covered:.1f}%" for row in rows)
    caption = (
        "Calibrated half-widths on the view of median difficulty, in units of the colour range; "
        "maps of a row share one scale. "
        "Last column: the pixels that our boxes miss, on the greyed render. Pixels inside: "
        f"{said}. The view shown is never among those that calibrate."
    )
    return Panel("intervals", "What a calibrated interval looks like", caption, tuple(rows))


def _ends(
    bench: BenchStudies, methods: Sequence[str]
) -> tuple[Study, tuple[PanelRow, ...], dict[str, Map]]:
    """Easiest and hardest view of the preferred scene, and mean half-widths of all its views."""
    evidence, pictured = _pictured(bench, 2)
    study = min(evidence.studies, key=lambda s: (s.scene != PREFERRED, s.scene))
    views = _by_difficulty(evidence, study, pictured[study.key])
    chosen = [views[0], views[-1]]
    cut = _multipliers(evidence, study, methods, [p.name for p in chosen])
    rows = tuple(
        PanelRow(text, p.render, tuple(_boxes(evidence, study, p, m, q) for m, q in cut.items()))
        for text, p in zip(("easiest view", "hardest view"), chosen, strict=True)
    )
    order = np.argsort(_oracle(evidence, study))
    return (
        study,
        rows,
        {label(m): q * evidence.scale(m, study).means[order] for m, q in cut.items()},
    )


def _inside(rows: Sequence[PanelRow]) -> str:
    """How many pixels the boxes of both views contain."""
    shares = [_percent(box.covered) for row in rows for box in row.boxes]
    return "Pixels inside their boxes: easiest {} and {}, hardest {} and {}".format(*shares)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _units(study: Study) -> str:
    return (
        "Half-widths in units of the colour range, one scale for all four maps. Right: mean "
        f"half-width of all {len(study)} views, from easy to hard."
    )


PANELS: Mapping[str, Callable[[BenchStudies], Panel]] = {
    "overview": overview_panel,
    "extremes": extremes_panel,
    "intervals": intervals_panel,
}
"""By name, in the order of the page."""


def _pictured(bench: BenchStudies, views: int) -> tuple[Evidence, dict[str, list[ViewPicture]]]:
    """The scenes with at least this many pictures, and the pictures by study."""
    pictured: dict[str, list[ViewPicture]] = {}
    for picture in bench.pictures:
        pictured.setdefault(picture.study, []).append(picture)
    evidence = bench.main.where(
        lambda study: (
            len(pictured.get(study.key, [])) >= views
            and all(picture.name in study.names for picture in pictured[study.key])
            and bench.main.can("full", study)
            and calibration_size(len(study)) + views <= len(study)
        )
    )
    if not evidence.studies:
        raise MissingError(f"no scene stored pictures of at least {views} views")
    return evidence, pictured


def _oracle(evidence: Evidence, study: Study) -> Map:
    lambda_b = evidence.prediction(study).lambda_b
    return scales.oracle_factors(study, lambda_b, evidence.protocol.beta)


def _by_difficulty(
    evidence: Evidence, study: Study, pictures: Sequence[ViewPicture]
) -> list[ViewPicture]:
    oracle = dict(zip(study.names, _oracle(evidence, study), strict=True))
    return sorted(pictures, key=lambda picture: oracle[picture.name])


def _multipliers(
    evidence: Evidence, study: Study, methods: Sequence[str], shown: Sequence[str]
) -> dict[str, float]:
    """Thresholds of the first split that calibrates on none of the shown views."""
    protocol = evidence.protocol
    splits = draw_splits(len(study), calibration_size(len(study)), 10_000, protocol.seed)
    places = [study.names.index(name) for name in shown]
    split = next((s for s in splits if not s[places].any()), None)
    if split is None:
        raise MissingError(f"scene {study.scene}: every split calibrates on a view that is shown")
    return {
        m: threshold_of(evidence.scale(m, study).scores[split], protocol.alpha) for m in methods
    }


def _boxes(
    evidence: Evidence, study: Study, picture: ViewPicture, method: str, multiplier: float
) -> Boxes:
    half_width = multiplier * _scale_map(evidence, study, picture, method)
    counts = np.isfinite(picture.residual)
    misses = counts & (np.nan_to_num(picture.residual) > half_width)
    covered = 1 - float(misses.sum() / counts.sum())
    return Boxes(label(method), half_width, covered, misses)


def _scale_map(evidence: Evidence, study: Study, picture: ViewPicture, method: str) -> Map:
    """The scale itself, pixel by pixel, from the rendered field."""
    field_map = picture.field.astype(np.float64)
    prediction = evidence.prediction(study)
    if method == "constant":
        return np.ones(field_map.shape)
    if method == "gsu":
        return shrink(field_map, study.map("gsu").unit, evidence.choice("gsu", study).weight)
    factors = prediction.factors if method == "full" else np.ones(len(study))
    return factors[study.names.index(picture.name)] * shape(field_map, prediction.lambda_b)
