# SPDX-License-Identifier: Apache-2.0
"""The theory audit: identities, and where excess width comes from."""

from __future__ import annotations

import numpy as np

from splatcert.errors import InputError
from splatcert_bench.statistics.audit import Audit, audit
from splatcert_bench.statistics.evidence import MissingError
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.tables.cells import cell
from splatcert_bench.tables.paper import paper_power, paper_text
from splatcert_bench.tables.table import Column, Row, Table

_IDENTITIES = {
    "threshold": "Threshold, q = exp(−δ₍ⱼ₎)",
    "widths": "Width of every test view, exp(δᵢ − δ₍ⱼ₎)",
    "aggregate": "Mean width, test side × calibration tail",
    "gain": "Oracle against constant factor",
}


def identities(bench: BenchStudies) -> Table:
    """Largest relative error of each identity over scenes, splits and views."""
    found = _audits(bench)
    published = dict.fromkeys(_IDENTITIES, paper_power("audit identities"))
    published["gain"] = paper_power("audit gain")
    rows = [
        Row(text, (cell(max(getattr(a, name) for a in found.values()), published[name]),))
        for name, text in _IDENTITIES.items()
    ]
    return Table(
        name="audit",
        title="Identities",
        row_head="Identity",
        columns=(Column("Largest relative error", scientific=True),),
        rows=tuple(rows),
        notes=(
            f"Over {len(found)} scenes and {bench.protocol.splits} splits each. Left-hand sides "
            "from the deployed maps, pixel by pixel; right-hand sides from view factors alone.",
        ),
    )


def decomposition(bench: BenchStudies) -> Table:
    """Width over the oracle's: test side times calibration tail (prop:decomposition)."""
    found = _audits(bench)
    names = {"test": "test_side", "tail": "tail", "ratio": "ratio"}
    rows = [
        Row(scene, (*(cell(getattr(a, n)) for n in names.values()), cell(a.rank)))
        for scene, a in found.items()
    ]
    means = [
        cell(
            float(np.mean([getattr(a, name) for a in found.values()])),
            paper_text("audit factors", column),
        )
        for column, name in names.items()
    ]
    rows.append(Row("Mean", (*means, cell(None)), True))
    heads = ("Test-side dispersion", "Calibration-side tail", "Width over oracle")
    return Table(
        name="decomposition",
        title="Where excess width comes from",
        row_head="Scene",
        columns=(*(Column(head, digits=3) for head in heads), Column("j")),
        rows=tuple(rows),
        notes=(
            "Log errors are centred within each scene. j is the rank, from below, of the "
            "calibration view whose error sets the width of all boxes.",
        ),
    )


def _audits(bench: BenchStudies) -> dict[str, Audit]:
    main, found, why = bench.main, {}, "there is no scene"
    for study in main.studies:
        try:
            found[study.scene] = audit(main, study)
        except InputError as error:
            why = str(error)
    if not found:
        raise MissingError(why)
    return found
