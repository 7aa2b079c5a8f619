# SPDX-License-Identifier: Apache-2.0
"""Tables of latency, training time, packing and visibility."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from splatcert_bench.statistics.choices import MissingError
from splatcert_bench.statistics.evidence import Evidence
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.studies.study import DIRECTIONS, Study
from splatcert_bench.tables.cells import BY_PHOTOS, cell, label
from splatcert_bench.tables.paper import paper, paper_power
from splatcert_bench.tables.table import Cell, Column, Figure, Row, Table


def latency(bench: BenchStudies) -> Table:
    """One query: ours in one pass, in the paper's four, and of ensembles (tab:latency)."""
    studies = _knowing(bench, ("latency.one_pass", "latency.four_passes"))
    others = _ensembles(studies, "latency")
    rows = []
    for study in studies:
        one, four = study.facts["latency.one_pass"], study.facts["latency.four_passes"]
        known = {c: paper("tab:latency", study.scene, c) for c in ("ours", "ensemble", "speedup")}
        plain, *photos = (study.facts.get(f"latency.{n}") for n in ("colour", *BY_PHOTOS))
        cells = [
            cell(study.facts.get("latency.megapixels")),
            cell(plain and 1e3 * plain),
            cell(1e3 * one, known["ours"]),
            cell(1 / one, paper("tab:latency", study.scene, "fps")),
            cell(plain and one / plain),
            *(
                cell(value)
                for took in photos
                for value in (took and 1e3 * took, took and plain and took / plain)
            ),
            cell(1e3 * four),
            cell(four / one),
        ]
        for name in others:
            took = study.facts.get(f"latency.{name}")
            like_paper = name == others[-1]  # its members are as large as the main model
            cells += [
                cell(int(study.facts.get(f"latency.members.{name}", 0)) or None),
                cell(took and 1e3 * took, known["ensemble"] if like_paper else None),
                cell(took and took / one, known["speedup"] if like_paper else None),
            ]
        rows.append(Row(study.scene, tuple(cells)))
    heads = _heads(others, (": members", ""), (": time", "ms"), (": speed-up over it", "×"))
    ratios = [4, 6, 8, 10, *range(13, 11 + 3 * len(others), 3)]
    return Table(
        name="time-latency",
        title="Query latency",
        label="tab:latency",
        row_head="Scene",
        columns=(
            Column("Size", "MP", 2),
            Column("Colour alone", "ms"),
            Column("Ours, one pass", "ms"),
            Column("Ours", "frames/s"),
            Column("Over colour alone", "×", 2),
            Column("Guided", "ms"),
            Column("Over colour alone", "×", 2),
            Column("Corrected centre", "ms"),
            Column("Over colour alone", "×", 2),
            Column("Four passes", "ms"),
            Column("Speed-up over four passes", "×", 2),
            *heads,
        ),
        rows=(*rows, _mean_row(rows, ratios)),
        notes=(
            "Colour and all auxiliary channels; an ensemble renders each of its own models, at the "
            "resolution they were trained at. The paper's times are from an RTX 4090 with four "
            "passes; ours are from the machine named above, so compare ratios only.",
        ),
    )


def training(bench: BenchStudies) -> Table:
    """Wall time before the first query, and the width that it buys."""
    studies, main = _knowing(bench, ("seconds.train", "seconds.post")), bench.main
    others = _ensembles(studies, "seconds")
    rows = []
    for study in studies:
        ours = study.facts["seconds.train"] + study.facts["seconds.post"]
        cells = [cell(study.facts["seconds.train"]), cell(study.facts["seconds.post"])]
        cells += [_saved(main, name, study) for name in ("full", *BY_PHOTOS)]
        cells.append(cell(study.facts.get("seconds.gavis")))
        for name in others:
            took = study.facts.get(f"seconds.{name}")
            count = int(study.facts.get(f"latency.members.{name}", 0)) or None
            ratio = cell(took and took / ours)
            cells += [cell(count), cell(took), ratio, _saved(main, name, study)]
        rows.append(Row(study.scene, tuple(cells)))
    parts = (": members", ""), (": training", "s"), (": over ours", "×"), (": saving", "%")
    heads = _heads(others, *parts)
    return Table(
        name="time-training",
        title="Wall time before the first query, and the width it saves",
        row_head="Scene",
        columns=(
            Column("One model", "s", 0),
            Column("Field and support", "s", 0),
            Column("Ours: saving", "%"),
            Column("Guided: saving", "%"),
            Column("Corrected centre: saving", "%"),
            Column("GAVIS sums", "s"),
            *heads,
        ),
        rows=(*rows, _mean_row(rows, range(8, 6 + 4 * len(others), 4))),
        notes=(
            "The settings above give the size and training length of the members. Full members "
            "have the main model's size and length, and it is one of them.",
        ),
    )


def _ensembles(studies: Sequence[Study], kind: str) -> list[str]:
    """The ensembles that a study has figures of, the largest members last."""
    known = ("ensemble", "ensemble-full")
    return [name for name in known if any(f"{kind}.{name}" in s.facts for s in studies)]


def _heads(others: Sequence[str], *parts: tuple[str, str]) -> list[Column]:
    """The columns of each ensemble."""
    digits = {"s": 0, "×": 2}
    return [
        Column(f"{label(name)}{text}", unit, digits.get(unit, 1))
        for name in others
        for text, unit in parts
    ]


def _saved(main: Evidence, method: str, study: Study) -> Cell:
    return cell(main.saving(method, study) if main.can(method, study) else None)


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
        notes=(
            "Relative difference between the query that is deployed, in native code on the CPU, "
            "and four passes with the same renderer. The paper compares four packed passes with "
            "eight.",
        ),
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
        known = [value for value in values if value is not None]
        if not known:
            return cell(None)
        return cell(float(np.exp(np.mean(np.log(np.array(known, dtype=np.float64))))))

    count = len(rows[0].cells)
    cells = tuple(mean(at) if at in columns else cell(None) for at in range(count))
    return Row("Geometric mean", cells, True)
