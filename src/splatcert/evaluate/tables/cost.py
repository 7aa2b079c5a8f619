# SPDX-License-Identifier: Apache-2.0
"""What an answer costs, whether packing changes it, and what visibility sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from splatcert.evaluate.bench_studies import BenchStudies
from splatcert.evaluate.evidence import MissingError
from splatcert.evaluate.paper import paper
from splatcert.evaluate.study import DIRECTIONS, Study
from splatcert.evaluate.table import Cell, Column, Figure, Row, Table
from splatcert.evaluate.tables.cells import cell


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
        stub="Scene",
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
            "Colour and all auxiliaries. The paper's times are those of an RTX 4090 with four "
            "passes; ours are of the machine named above, so compare ratios only.",
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
        stub="Scene",
        columns=(
            *(Column(head, "s", 0) for head in heads),
            Column("Ensemble over ours", "×", 2),
            Column("Members"),
        ),
        rows=(*rows, _mean_row(rows, (3,))),
    )


def packing(bench: BenchStudies) -> Table:
    """Largest relative difference between one pass and four (packing exactness)."""
    names = ("packing.maps", "packing.features")
    published = (Figure(0.0), Figure(6.23e-8))
    studies = _knowing(bench, names)
    rows = [Row(study.scene, tuple(cell(study.facts[name]) for name in names)) for study in studies]
    largest = tuple(
        cell(max(study.facts[name] for study in studies), known)
        for name, known in zip(names, published, strict=True)
    )
    return Table(
        name="packing",
        title="One pass against four",
        stub="Scene",
        columns=(
            Column("Alpha and field", scientific=True),
            Column("All 24 features", scientific=True),
        ),
        rows=(*rows, Row("Largest", largest, True)),
        notes=("Relative difference. The paper compares four packed passes with eight.",),
    )


def visibility(bench: BenchStudies) -> Table:
    """GAVIS visibility in seen and unseen directions (its sanity check)."""
    rows, known = [], "visibility"
    for study in bench.main.studies:
        for kappa in _kappas(study):
            values = [study.facts[f"visibility.{kappa}.{d}"] for d in DIRECTIONS]
            published = [paper(known, study.scene, d) if kappa == 64 else None for d in DIRECTIONS]
            cells = [cell(v, p) for v, p in zip(values, published, strict=True)]
            over = cell(values[0] / values[2] if values[2] else None)
            rows.append(Row(study.scene, (cell(kappa), *cells, over)))
    if not rows:
        raise MissingError("no study measured visibility in other directions")
    return Table(
        name="visibility",
        title="GAVIS visibility by direction",
        stub="Scene",
        columns=(
            Column("κ"),
            *(Column(direction.capitalize(), digits=4) for direction in DIRECTIONS),
            Column("Training over random", "×", 2),
        ),
        rows=tuple(rows),
        notes=(
            "Mean visibility of the Gaussians from training, test, random, opposite directions.",
        ),
    )


def _knowing(bench: BenchStudies, names: Sequence[str]) -> list[Study]:
    found = [s for s in bench.main.studies if all(name in s.facts for name in names)]
    if not found:
        raise MissingError(f"no study measured {' and '.join(names)}")
    return found


def _kappas(study: Study) -> list[int]:
    parts = [name.split(".") for name in study.facts if name.startswith("visibility.")]
    return sorted({int(part[1]) for part in parts})


def _mean_row(rows: Sequence[Row], columns: Sequence[int]) -> Row:
    """Geometric mean of the ratios."""

    def mean(at: int) -> Cell:
        values = [row.cells[at].ours.value for row in rows]
        return cell(float(np.exp(np.mean(np.log(np.array(values, dtype=np.float64))))))

    count = len(rows[0].cells)
    cells = tuple(mean(at) if at in columns else cell(None) for at in range(count))
    return Row("Geometric mean", cells, True)
