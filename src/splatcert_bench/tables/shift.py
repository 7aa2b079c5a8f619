# SPDX-License-Identifier: Apache-2.0
"""Tables of coverage beyond the guarantee: stretches, regions, flags and tenths of a view."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.maps import TENTHS
from splatcert.conformal.splits import calibration_size, draw_splits, split_thresholds
from splatcert_bench.statistics.choices import MissingError
from splatcert_bench.statistics.evidence import UNLEARNED, WIDE, Evidence
from splatcert_bench.statistics.shift import (
    FlaggedCoverage,
    ShiftedCoverage,
    blocks,
    flagged_coverage,
    leave_region_out,
    shifted_coverage,
    tenth_coverage,
)
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.studies.study import Study
from splatcert_bench.tables.cells import BASELINES, BY_PHOTOS, cell, label, of_scenes
from splatcert_bench.tables.table import Cell, Column, Row, Table

Array = NDArray[np.float64]
OURS = ("full", WIDE)
NEITHER = [cell(None), cell(None)]


def shift(bench: BenchStudies) -> Table:
    """Coverage after calibration on one stretch, or on all regions but one."""
    methods = ("constant", *bench.main.somewhere(*BASELINES, UNLEARNED, *OURS, *BY_PHOTOS))
    evidence = bench.main.having(*methods)
    placed = all(study.centres.size for study in evidence.studies)
    rows = []
    for method in methods:
        stretches = [_stretches(evidence, method, study) for study in evidence.studies]
        cells = [cell(float(np.mean(evidence.coverages(method)))), *_two(stretches)]
        if placed:
            cells += _two([_regions(evidence, method, study) for study in evidence.studies])
        rows.append(Row(label(method), tuple(cells)))
    heads = ["Random", "Stretch", "Worst stretch", *(["Region", "Worst region"] if placed else [])]
    return Table(
        name="shift",
        title="Coverage when test views are not drawn like the calibration views",
        row_head="Scale",
        columns=tuple(Column(head, "%") for head in heads),
        rows=tuple(rows),
        notes=(
            of_scenes(evidence, bench.main),
            "View-event coverage, mean over scenes; nothing is guaranteed except in the first "
            "column. Stretch: consecutive held-out views calibrate, as many as at random, and all "
            "others are tested. Region: three of four groups of camera positions calibrate and the "
            "fourth is tested. Worst: the worst stretch or region of each scene, mean over scenes.",
        ),
    )


def flags(bench: BenchStudies) -> Table:
    """Coverage of test views by flag, scene by scene."""
    known = bench.main.where(lambda study: bool(study.strangeness.size))
    if not known.studies:
        raise MissingError("no study holds the strangeness of its cameras")
    method = (WIDE if known.somewhere(WIDE) else "full", "constant")
    evidence = known.having(*method)
    rows = [
        Row(study.scene, tuple(_flag_cells(_flagged(evidence, method[0], study))))
        for study in evidence.studies
    ]
    for name in (*method, *evidence.somewhere(UNLEARNED, *BY_PHOTOS)):
        found = [_flagged(evidence, name, s) for s in evidence.having(name).studies]
        rows.append(Row(f"Mean, {label(name)}", tuple(_mean_flag_cells(found)), True))
    heads = ("Flagged", "Promised, at most", "Flagged views covered", "Other views covered")
    return Table(
        name="flags",
        title="Coverage of flagged and other views",
        row_head="Scene",
        columns=tuple(Column(head, "%") for head in heads),
        rows=tuple(rows),
        notes=(
            f"{label(method[0])}, random splits; each split's calibration views set the flag's "
            "limit. Over random splits, flagged and promised shares agree by symmetry.",
        ),
    )


def tenths(bench: BenchStudies) -> Table:
    """Coverage by tenths of the predicted half-width within views."""
    compared = (*BASELINES, UNLEARNED, *OURS, *BY_PHOTOS)
    methods = [m for m in compared if _with_tenths(bench, m).studies]
    if not methods:
        raise MissingError("no study counted pixels by tenths of the half-width")
    evidence = bench.main.where(
        lambda study: all(study in _with_tenths(bench, m).studies for m in methods)
    )
    rows = []
    for method in methods:
        found = np.array([_tenths(bench, evidence, method, study) for study in evidence.studies])
        known = np.isfinite(found).sum(axis=0)
        values = 100 * np.nansum(found, axis=0) / np.where(known, known, np.nan)
        rows.append(Row(label(method), tuple(cell(float(value)) for value in values)))
    heads = [f"{k}" for k in range(1, TENTHS + 1)]
    heads[0], heads[-1] = "Narrowest", "Widest"
    return Table(
        name="tenths",
        title="Pixels inside by tenths of a view's half-width",
        row_head="Scale",
        columns=tuple(Column(head, "%") for head in heads),
        rows=tuple(rows),
        notes=(
            of_scenes(evidence, bench.main),
            "Share of test pixels inside their boxes, mean over scenes. The guarantee is about a "
            "view's pixels together. Ratios are rounded up to the next of 32 steps per octave, so "
            "true shares are slightly larger.",
        ),
    )


def _stretches(evidence: Evidence, method: str, study: Study) -> ShiftedCoverage | None:
    splits = blocks(len(study), calibration_size(len(study)))
    return shifted_coverage(evidence.scale(method, study), evidence.protocol.alpha, splits)


def _regions(evidence: Evidence, method: str, study: Study) -> ShiftedCoverage | None:
    splits = leave_region_out(study.centres)
    return shifted_coverage(evidence.scale(method, study), evidence.protocol.alpha, splits)


def _two(found: list[ShiftedCoverage | None]) -> list[Cell]:
    """Mean and worst coverage, averaged over the scenes that have them."""
    known = np.array([(one.mean, one.worst) for one in found if one is not None])
    return [cell(100 * float(value)) for value in known.mean(axis=0)] if known.size else NEITHER


def _flagged(evidence: Evidence, method: str, study: Study) -> FlaggedCoverage:
    protocol, size = evidence.protocol, calibration_size(len(study))
    splits = draw_splits(len(study), size, protocol.splits, protocol.seed)
    scale = evidence.scale(method, study)
    return flagged_coverage(scale, study.strangeness, protocol.alpha, splits)


def _flag_cells(found: FlaggedCoverage) -> list[Cell]:
    values = (found.flagged, found.promised, found.of_flagged, found.of_others)
    return [cell(None if value is None else 100 * value) for value in values]


def _mean_flag_cells(found: list[FlaggedCoverage]) -> list[Cell]:
    rows = [(f.flagged, f.promised, f.of_flagged, f.of_others) for f in found]
    known = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
    return [cell(100 * float(np.mean(column)) if column else None) for column in known]


def _with_tenths(bench: BenchStudies, method: str) -> Evidence:
    main = bench.main

    def has(study: Study) -> bool:
        counted = bench.ratios.get(study.key)
        if counted is None or not main.can(method, study):
            return False
        return method in BY_PHOTOS or main.parts(method, study)[0] in counted.tenths

    return main.where(has)


def _tenths(bench: BenchStudies, evidence: Evidence, method: str, study: Study) -> Array:
    protocol, size = evidence.protocol, calibration_size(len(study))
    splits = draw_splits(len(study), size, protocol.splits, protocol.seed)
    thresholds = split_thresholds(evidence.scale(method, study).scores, protocol.alpha, splits)
    if method in BY_PHOTOS:  # counted with their factors
        counts = study.guided_scores(method, evidence.pool).tenths
        return tenth_coverage(counts, thresholds[:, None].repeat(len(study), axis=1), splits)
    name, at, factors = evidence.parts(method, study)
    counts = bench.counts(study).tenths[name][:, at]
    multipliers = thresholds[:, None] * (np.ones(len(study)) if factors is None else factors)
    return tenth_coverage(counts, multipliers, splits)
