# SPDX-License-Identifier: Apache-2.0
"""Tables of the parts of a scale: factor and shape, ranking, normalisation, and their theory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.ranks import rank_correlation
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.errors import InputError
from splatcert_bench.statistics import compared_scales as scales
from splatcert_bench.statistics.audit import Audit, audit
from splatcert_bench.statistics.choices import (
    ANY_RIDGE,
    MAGNITUDE,
    Choice,
    MissingError,
    choose,
    pool_width,
    variants,
)
from splatcert_bench.statistics.evidence import (
    BATCH,
    NESTED,
    PAPER_RECIPE,
    UNLEARNED,
    WIDE,
    Evidence,
)
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.studies.study import SHAPE, Study
from splatcert_bench.tables.cells import (
    BASELINES,
    BY_PHOTOS,
    SAVING,
    cell,
    label,
    of_scenes,
    saving_cell,
)
from splatcert_bench.tables.paper import paper, paper_power, paper_text
from splatcert_bench.tables.table import Column, Row, Table

ON_SHAPE = ("shape", UNLEARNED, "full")
"""Scales that rank pixels as the residual field does."""


def ablation(bench: BenchStudies) -> Table:
    """What the view factor, the shape and their separation are worth (tab:ablation)."""
    more = bench.main.somewhere(BATCH, NESTED, PAPER_RECIPE, WIDE, *BY_PHOTOS)
    any_ridge = bench.main.somewhere(ANY_RIDGE)
    methods = ("shape", MAGNITUDE, "a", "gsu", *any_ridge, UNLEARNED, "full", *more, "oracle")
    evidence = bench.main.having(*methods)
    ranks = {"a": _factor_ranks(evidence, "a"), MAGNITUDE: _factor_ranks(evidence, MAGNITUDE)}
    published = {"a": "learned", MAGNITUDE: "magnitude"}
    rows = []
    for method in methods:
        known = published.get(method)
        rank = cell(
            float(ranks[method].mean()) if method in ranks else None,
            paper_text("factor spearman", known) if known else None,
        )
        saved = saving_cell(evidence, method, paper("tab:ablation", method, "saving"))
        rows.append(Row(label(method), (saved, rank)))
    return Table(
        name="ablation",
        title="What each factor saves",
        label="tab:ablation",
        row_head="Scale",
        columns=(SAVING, Column("Spearman with a*", digits=3)),
        rows=tuple(rows),
        notes=(
            of_scenes(evidence, bench.main),
            "Spearman over the views of a scene, averaged over scenes.",
        ),
    )


def ranking(bench: BenchStudies) -> Table:
    """Ranking within views against width; the view factor changes only the second."""
    methods = bench.main.somewhere(
        "gavis", "ensemble", "gsu", UNLEARNED, "shape", "full", *BY_PHOTOS
    )
    evidence = bench.main.having(*methods)
    rows = []
    for method in methods:
        ranks = [_ranking(evidence, method, name) for name in ("ause", "spearman")]
        known = [paper("tab:ranking", method, name) for name in ("ause", "spearman", "saving")]
        cells = cell(ranks[0], known[0]), cell(ranks[1], known[1])
        rows.append(Row(label(method), (*cells, saving_cell(evidence, method, known[2]))))
    return Table(
        name="ranking",
        title="Uncertainty ranking against interval width",
        label="tab:ranking",
        row_head="Scale",
        columns=(Column("AUSE ↓", digits=4), Column("Spearman ↑", digits=4), SAVING),
        rows=tuple(rows),
        notes=(
            of_scenes(evidence, bench.main),
            "AUSE and Spearman within each view, mean over views, then over scenes. a × b̃ and b̃ "
            "rank pixels identically (lem:nullspace).",
        ),
    )


def normalisation(bench: BenchStudies) -> Table:
    """Baselines normalised per view or per scene, at every shrinkage (tab:norm)."""
    main = bench.main
    methods = main.somewhere(*(f"{b}{unit}" for b in BASELINES for unit in ("-pv", "")))
    maps = {method: _pool_choice(main, method) for method in methods}
    rows = []
    for weight in LAMBDA_GRID:
        cells = []
        for method in methods:
            chosen, known = maps[method]
            width = pool_width(known, chosen.map, weight, main.protocol)
            published = paper("tab:norm", str(weight), method)
            cells.append(cell(width, published, best=chosen.weight == weight))
        rows.append(Row(f"{float(weight):.2f}", tuple(cells)))
    last = tuple(
        cell(float(np.mean(main.having(m).savings(m))), paper("tab:norm", "saving", m))
        for m in methods
    )
    return Table(
        name="norm",
        title="Normalisation of the baselines",
        label="tab:norm",
        row_head="λ",
        columns=tuple(Column(_norm_label(m), digits=4) for m in methods),
        rows=(*rows, Row("Saving (%)", last, True, digits=1)),
        notes=(
            "Width relative to the constant scale, mean over scenes: lower is better. The smallest "
            "width is in bold. The saving is at the λ chosen without the target scene.",
            *(f"{_norm_label(m)}, at κ = {_kappa(maps[m][0])}." for m in maps if "gavis" in m),
        ),
    )


def _factor_ranks(evidence: Evidence, method: str) -> NDArray[np.float64]:
    """Rank correlation of a factor with the oracle's, by scene."""
    found = []
    for study in evidence.studies:
        prediction = evidence.prediction(study)
        factors = prediction.raw if method == "a" else study.field_means
        oracle = scales.oracle_factors(study, prediction.lambda_b, evidence.protocol.beta)
        found.append(rank_correlation(factors, oracle))
    return np.array(found)


def _ranking(evidence: Evidence, method: str, entry: str) -> float:
    """Mean of AUSE or Spearman over views, then scenes."""
    means = []
    for study in evidence.studies:
        if method in BY_PHOTOS:
            means.append(np.mean(getattr(study.guided_scores(method, evidence.pool), entry)))
            continue
        name = SHAPE if method in ON_SHAPE else evidence.choice(method, study).map
        values = getattr(study.map(name), entry)
        if not values.size:
            raise MissingError(f"scene {study.scene}: {entry} of {name} was not measured")
        means.append(np.mean(values))
    return float(np.mean(means))


def _pool_choice(main: Evidence, method: str) -> tuple[Choice, list[Study]]:
    """The choice on all scenes that have a method's maps, and those scenes."""
    known = [study for study in main.studies if main.can(method, study)]
    return choose(known, variants(known[0], method), main.protocol), known


def _kappa(choice: Choice) -> str:
    return choice.map.removesuffix("-pv").removeprefix("gavis-")


def _norm_label(method: str) -> str:
    stem = {"gsu": "3DGS-U", "ensemble": "Ensemble", "gavis": "GAVIS"}
    unit = "per view" if method.endswith("-pv") else "per scene"
    return f"{stem[method.removesuffix('-pv')]}, {unit}"


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
    main, found, why = bench.main, {}, "the bench has no scenes"
    for study in main.studies:
        try:
            found[study.scene] = audit(main, study)
        except InputError as error:
            why = str(error)
    if not found:
        raise MissingError(why)
    return found
