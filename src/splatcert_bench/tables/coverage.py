# SPDX-License-Identifier: Apache-2.0
"""Tables of coverage: does calibration control the right event?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.pooled import native_multiplier
from splatcert.conformal.splits import calibration_size, draw_splits
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert_bench.statistics import compared_scales as scales
from splatcert_bench.statistics.choices import MissingError, evaluate
from splatcert_bench.statistics.evidence import AS_PROTOCOL, UNLEARNED, At, Evidence
from splatcert_bench.statistics.readings import (
    Coverage,
    cumulative,
    native_coverage,
    pooled_coverage,
    view_coverage,
)
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.studies.study import SHAPE, Study
from splatcert_bench.tables.cells import BY_PHOTOS, cell, label, of_scenes
from splatcert_bench.tables.paper import paper, paper_text
from splatcert_bench.tables.table import Cell, Column, Row, Table

READ = ("ensemble", "gsu", UNLEARNED, "full", *BY_PHOTOS)
"""Scales whose ratios are stored."""
GAMMAS = tuple(Fraction(n, 20) for n in (10, 12, 14, 16, 18, 19))
CURVE_SIZE, CURVE_TESTS = 21, 3
"""Number of calibration views on the curve, as in the paper, and the fewest test views."""


@dataclass(frozen=True)
class Readings:
    """A map of one scene: pooled over pixels, and by views."""

    pooled: Coverage
    by_views: Coverage


def validity(bench: BenchStudies) -> Table:
    """Pixel and view-event coverage of native, pooled and View-CP readings (tab:validity)."""
    methods = _with_ratios(bench, READ)
    listed = [scenes_with_ratios(bench, method).scenes for method in methods]
    evidence = bench.main.where(lambda study: all(study.scene in scenes for scenes in listed))
    if not evidence.studies:
        raise MissingError("no scene stored the ratios of all scales")
    rows = []
    for method in methods:
        pairs = [_native(evidence, method), *_calibrated(bench, evidence, method)]
        names = [f"{kind}_{unit}" for kind in ("native", "pooled", "view") for unit in _UNITS]
        values = [value for pair in pairs for value in pair]
        cells = [
            cell(value, paper("tab:validity", method, name))
            for value, name in zip(values, names, strict=True)
        ]
        rows.append(Row(label(method), (*cells, _correction(evidence, method))))
    heads = [f"{kind}, {unit}" for kind in ("Native", "Pooled", "View-CP") for unit in _UNITS]
    protocol = bench.protocol
    return Table(
        name="validity",
        title="Three readings of one map",
        label="tab:validity",
        row_head="Scale map",
        columns=(*(Column(head, "%") for head in heads), Column("View-CP over native", "×", 2)),
        rows=tuple(rows),
        notes=(
            of_scenes(evidence, bench.main),
            f"Share of test pixels inside their boxes, and of test views with at least "
            f"{100 * float(1 - protocol.beta):g}% of their pixels inside, mean over "
            f"{protocol.native_splits} splits, then scenes. Native uses the map without "
            "calibration; the last column is View-CP's multiplier relative to it.",
        ),
    )


def curve(bench: BenchStudies) -> Table:
    """View-event coverage at several levels, pooled and by views (tab:curve)."""
    pooled, by_views = curve_points(bench)
    columns = tuple(Column(f"{100 * float(gamma):g}", "%") for gamma in GAMMAS)
    rows = []
    for name, text, points in (
        ("pooled", "Pixel-pooled CP", pooled),
        ("view", "View-CP", by_views),
    ):
        means = points.mean(axis=0)
        cells = [
            cell(float(mean), paper("tab:curve", name, f"{float(gamma):g}"))
            for mean, gamma in zip(means, GAMMAS, strict=True)
        ]
        rows.append(Row(text, tuple(cells)))
    return Table(
        name="curve",
        title="View-event coverage as the level moves",
        label="tab:curve",
        row_head="Nominal γ = 1 − α = 1 − β",
        columns=columns,
        rows=tuple(rows),
        notes=(
            f"3DGS-U field, {len(pooled)} scenes with at least {CURVE_SIZE + CURVE_TESTS} held-out "
            f"views, m = {CURVE_SIZE}.",
        ),
    )


def curve_points(bench: BenchStudies) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """View-event coverage in per cent, pooled and by views, [scenes, levels] each."""
    enough = CURVE_SIZE + CURVE_TESTS
    evidence = scenes_with_ratios(bench, "gsu").where(lambda study: len(study) >= enough)
    if not evidence.studies:
        raise MissingError(f"the curve requires scenes with {enough} held-out views and ratios")
    read = [
        [
            readings(bench, evidence, "gsu", study, At(1 - gamma, 1 - gamma, CURVE_SIZE))
            for gamma in GAMMAS
        ]
        for study in evidence.studies
    ]
    pooled = [[100 * point.pooled.view_coverage for point in row] for row in read]
    by_views = [[100 * point.by_views.view_coverage for point in row] for row in read]
    return np.array(pooled), np.array(by_views)


def scenes_with_ratios(bench: BenchStudies, method: str) -> Evidence:
    """The scenes that have a map and its ratios."""
    main = bench.main

    def has(study: Study) -> bool:
        if not main.can(method, study):
            return False
        if method in BY_PHOTOS:
            return bool(study.guided_scores(method, main.pool).counts.size)
        counted = bench.ratios.get(study.key)
        return counted is not None and _stored(method) in counted.maps

    return main.where(has)


def readings(
    bench: BenchStudies, evidence: Evidence, method: str, study: Study, at: At = AS_PROTOCOL
) -> Readings:
    """Coverage of a scene's map, pooled and by views."""
    protocol = bench.protocol
    alpha, beta = at.alpha or protocol.alpha, at.beta or protocol.beta
    size = at.calibration or calibration_size(len(study))
    splits = draw_splits(len(study), size, protocol.native_splits, protocol.seed)
    covered = _covered(bench, evidence, method, study)
    by_views = view_coverage(covered, alpha, beta, splits)
    return Readings(pooled_coverage(covered, beta, splits), by_views)


_UNITS = ("pixel", "view")


def _with_ratios(bench: BenchStudies, methods: Sequence[str]) -> list[str]:
    found = [method for method in methods if scenes_with_ratios(bench, method).studies]
    if not found:
        raise MissingError("no scene stored its ratios")
    return found


def _stored(method: str) -> str:
    return SHAPE if method in ("full", UNLEARNED) else method


def _covered(
    bench: BenchStudies, evidence: Evidence, method: str, study: Study
) -> NDArray[np.int64]:
    if method in BY_PHOTOS:  # counted with their factors
        return cumulative(study.guided_scores(method, evidence.pool).counts)
    name, at, factors = evidence.parts(method, study)
    return cumulative(bench.counts(study).maps[name][:, at], factors)


def _calibrated(bench: BenchStudies, evidence: Evidence, method: str) -> list[tuple[float, float]]:
    """Pixel and view coverage, pooled and by views, mean over scenes."""
    read = [readings(bench, evidence, method, study) for study in evidence.studies]
    return [_means([r.pooled for r in read]), _means([r.by_views for r in read])]


def _native(evidence: Evidence, method: str) -> tuple[float | None, float | None]:
    found = []
    for study in evidence.studies:
        stored = study.maps.get(method)
        if stored is None or not stored.native.size:
            return None, None
        protocol = evidence.protocol
        size = calibration_size(len(study))
        splits = draw_splits(len(study), size, protocol.native_splits, protocol.seed)
        inside = stored.native[:, study.beta_index(protocol.beta)]
        found.append(native_coverage(inside, study.pixels, protocol.beta, splits))
    return _means(found)


def _means(found: Sequence[Coverage]) -> tuple[float, float]:
    pixel = 100 * float(np.mean([coverage.pixel_coverage for coverage in found]))
    return pixel, 100 * float(np.mean([coverage.view_coverage for coverage in found]))


def _correction(evidence: Evidence, method: str) -> Cell:
    """View-CP's multiplier of the raw map over the native one, mean over splits and scenes."""
    known = {"ensemble": "native multipliers", "gsu": "native multiplier gsu"}
    found = []
    for study in evidence.studies:
        stored = study.maps.get(method)
        if stored is None or not stored.reading:
            return cell(None)
        protocol = evidence.protocol
        raw = scales.map_scale(study, method, LAMBDA_GRID[-1], protocol.beta)
        size = calibration_size(len(study))
        thresholds = evaluate(raw, protocol, protocol.alpha, size).thresholds / stored.unit
        found.append(thresholds.mean() / native_multiplier(stored.reading, protocol.beta))
    return cell(
        float(np.mean(found)), paper_text(known[method], method) if method in known else None
    )
