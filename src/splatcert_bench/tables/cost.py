# SPDX-License-Identifier: Apache-2.0
"""Tables of latency, training time, packing and visibility."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from splatcert_bench.statistics.evidence import MissingError
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.studies.study import DIRECTIONS, Study
from splatcert_bench.tables.cells import cell
from splatcert_bench.tables.paper import paper, paper_power
from splatcert_bench.tables.table import Cell, Column, Figure, Row, Table


def latency(bench: BenchStudies) -> Table:
    """One query: ours in one pass, in the paper's four, and an ensemble (tab:latency)."""
    names = ("latency.one_pass", "latency.four_passes", "latency.ensemble")
    rows = []
    for study in _knowing(bench, names):
        one, four, ensemble = (study.facts[name] for name in names)
        known = {c: paper("tab:latency", study.scene, c) for c in ("ours", "ensemble", "speedup")}
        cells = (
            cell(study.facts.get("latency.megapixels")),
            cell(1e3 * one, known["ours"]),
            cell(1 / one, paper("tab:latency", study.scene, "fps")),
            cell(1e3 * four),
            cell(1e3 * ensemble, known["ensemble"]),
            cell(int(study.facts.get("latency.members", 0)) or None),
            cell(four / one),
            cell(ensemble / one, known["speedup"]),
        )
        rows.append(Row(study.scene, cells))
    return Table(
        name="time-latency",
        title="Query latency",
        label="tab:latency",
        row_head="Scene",
        columns=(
            Column("Size", "MP", 2),
            Column("Ours, one pass", "ms"),
            Column("Ours", "frames/s"),
            Column("Four passes", "ms"),
            Column("Ensemble", "ms"),
            Column("Members"),
            Column("Speed-up over four passes", "×", 2),
            Column("Speed-up over ensemble", "×", 2),
        ),
        rows=(*rows, _mean_row(rows, (6, 7))),
        notes=(
            "Colour and all auxiliary channels. The paper's times are from an RTX 4090 with four "
            "passes; ours are from the machine named above, so compare ratios only.",
        ),
    )


def training(bench: BenchStudies) -> Table:
    """Wall time before the first query: one model and its field, or all members."""
    names = ("seconds.train", "seconds.post", "seconds.members")
    rows = []
    for study in _knowing(bench, names):
        train, post, members = (study.facts[name] for name in names)
        cells = cell(train), cell(post), cell(members), cell(members / (train + post))
        rows.append(Row(study.scene, (*cells, cell(study.settings.get("members")))))
    heads = ("One model", "Field and support", "All members")
    return Table(
        name="time-training",
        title="Wall time before the first query",
        row_head="Scene",
        columns=(
            *(Column(head, "s", 0) for head in heads),
            Column("Ensemble over ours", "×", 2),
            Column("Members"),
        ),
        rows=(*rows, _mean_row(rows, (3,))),
        notes=("The settings above give the number, size and training length of the members.",),
    )


def packing(bench: BenchStudies) -> Table:
    """Largest relative difference between one pass and four (packing exactness)."""
    names = ("packing.maps", "packing.features")
    published = (Figure(0.0), paper_power("packing"))
    studies = _knowing(bench, names)
    rows = [Row(study.scene, tuple(cell(study.facts[name]) for name in names)) for study in studies]
    largest = tuple(
        cell(max(study.facts[name] for study in studies), known)
        for name, known in zip(names, published, strict=True)
    )
    return Table(
        name="packing",
        title="One pass against four",
        row_head="Scene",
        columns=(
            Column("Alpha and field", scientific=True),
            Column("All 24 features", scientific=True),
        ),
        rows=(*rows, Row("Largest", largest, True)),
        notes=("Relative difference. The paper compares four packed passes with eight.",),
    )


def visibility(bench: BenchStudies) -> Table:
    """GAVIS visibility in seen and unseen directions (its sanity check)."""
    seen = {study.scene: _visibilities(study) for study in bench.main.studies}
    kappas = sorted({kappa for found in seen.values() for kappa in found})
    if not kappas:
        raise MissingError("no study measured visibility in other directions")
    sharpest = kappas[-1]
    rows = [
        _visibility_row(scene, found[sharpest], scene if sharpest == 64 else "")
        for scene, found in seen.items()
        if sharpest in found
    ]
    for kappa in kappas:
        means = np.mean([found[kappa] for found in seen.values() if kappa in found], axis=0)
        rows.append(_visibility_row(f"Mean at κ = {kappa}", means.tolist(), summary=True))
    heads = (f"{direction.capitalize()} directions" for direction in DIRECTIONS)
    return Table(
        name="visibility",
        title="GAVIS visibility by direction",
        row_head=f"Scene, at κ = {sharpest}",
        columns=(*(Column(head, digits=4) for head in heads), Column("Training / random", "×", 2)),
        rows=tuple(rows),
        notes=("Mean visibility of the Gaussians; nothing was learned from test directions.",),
    )


def _visibilities(study: Study) -> dict[int, list[float]]:
    """Mean visibility in each direction, by kappa."""
    kappas = {int(n.split(".")[1]) for n in study.facts if n.startswith("visibility.")}
    return {k: [study.facts[f"visibility.{k}.{d}"] for d in DIRECTIONS] for k in kappas}


def _visibility_row(text: str, values: list[float], scene: str = "", summary: bool = False) -> Row:
    published = [paper("visibility", scene, direction) for direction in DIRECTIONS]
    cells = [cell(v, p) for v, p in zip(values, published, strict=True)]
    return Row(text, (*cells, cell(values[0] / values[2] if values[2] else None)), summary)


def _knowing(bench: BenchStudies, names: Sequence[str]) -> list[Study]:
    found = [s for s in bench.main.studies if all(name in s.facts for name in names)]
    if not found:
        raise MissingError(f"no study measured {' and '.join(names)}")
    return found


def _mean_row(rows: Sequence[Row], columns: Sequence[int]) -> Row:
    """Geometric mean of the ratios."""

    def mean(at: int) -> Cell:
        values = [row.cells[at].ours.value for row in rows]
        return cell(float(np.exp(np.mean(np.log(np.array(values, dtype=np.float64))))))

    count = len(rows[0].cells)
    cells = tuple(mean(at) if at in columns else cell(None) for at in range(count))
    return Row("Geometric mean", cells, True)
