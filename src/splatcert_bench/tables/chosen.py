# SPDX-License-Identifier: Apache-2.0
"""Tables of what was chosen for each target, and of the pictures that witnesses correct."""

from __future__ import annotations

import numpy as np

from splatcert_bench.statistics.choices import ANY_RIDGE, Form, MissingError
from splatcert_bench.statistics.compared_scales import CORRECTED, GUIDED
from splatcert_bench.statistics.evidence import NESTED, PAPER_RECIPE, UNLEARNED, Evidence
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.studies.study import Study
from splatcert_bench.tables.cells import cell, mean_cell, mean_of, of_scenes
from splatcert_bench.tables.table import Cell, Column, Row, Table

CHOSEN = (
    "λ_a", "λ_b", "Penalty", "Paper's recipe: λ_a, λ_b, penalty", "b̄ × b̃: λ_a, λ_b",
    "3DGS-U: λ", "GAVIS: λ", "Ensemble: λ", "Nested: τ and factor", "3DGS-U: own τ",
    "Guide: power",
)  # fmt: skip


def choices(bench: BenchStudies) -> Table:
    """What was chosen for each target on its source scenes, and nowhere else."""
    main = bench.main.having("full")
    rows = [Row(study.scene, tuple(_chosen(main, study))) for study in main.studies]
    return Table(
        name="choices",
        title="What was chosen for each target",
        row_head="Target",
        columns=tuple(Column(head, digits=2) for head in CHOSEN),
        rows=tuple(rows),
        notes=(
            "Shrinkages λ, ridge penalty of the view predictor, κ of GAVIS, ridge τ of the field "
            "and form of its factor, power of the guide: all chosen by width on the "
            "source scenes of the target's pool, the penalty with views predicted by the other "
            "sources.",
        ),
    )


def _chosen(main: Evidence, study: Study) -> list[Cell]:
    prediction, recipe = main.prediction(study), study.predictions.get(PAPER_RECIPE)
    found: list[str | None] = [str(prediction.lambda_a), str(prediction.lambda_b)]
    product = main.unlearned(study).product if main.can(UNLEARNED, study) else None
    found += [f"{prediction.ridge:g}"]
    found += [f"{recipe.lambda_a}, {recipe.lambda_b}, {recipe.ridge:g}" if recipe else None]
    found += [f"{product.lambda_a}, {product.lambda_b}" if product else None]
    for method in ("gsu", "gavis", "ensemble"):
        known = main.choice(method, study) if main.can(method, study) else None
        kappa = known.map.partition("gavis-")[2] if known else ""
        found.append(f"{known.weight}{f' at κ = {kappa}' if kappa else ''}" if known else None)
    found.append(_form(main.form(study)) if main.can(NESTED, study) else None)
    known = main.choice(ANY_RIDGE, study) if main.can(ANY_RIDGE, study) else None
    found.append(f"{_ridge(known.map)}, λ = {known.weight}" if known else None)
    guided = study.guided_scores(GUIDED, main.pool) if main.can(GUIDED, study) else None
    found.append(f"{guided.power:g}" if guided else None)
    return [cell(value) for value in found]


def _form(form: Form) -> str:
    return f"{_ridge(form.field)}, {'learned a' if form.product is None else 'own b̄'}"


def _ridge(field: str) -> str:
    ridge = field.partition("@")[2]
    return f"τ = {ridge}" if ridge else "τ as set"


def pictures(bench: BenchStudies) -> Table:
    """PSNR and SSIM of corrected pictures against plain renders."""
    if not bench.main.somewhere(CORRECTED):
        raise MissingError("no scene has corrected pictures")
    evidence = bench.main.having(GUIDED, CORRECTED)
    rows, gains = [], []
    for study in evidence.studies:
        plain, moved = (study.guided_scores(m, evidence.pool) for m in (GUIDED, CORRECTED))
        both = (plain.psnr, moved.psnr), (plain.ssim, moved.ssim)
        means = [[float(values.mean()) for values in pair] for pair in both]
        gain = [after - before for before, after in means]
        worst = float((moved.psnr - plain.psnr).min())
        psnr, ssim = ([cell(before), cell(after)] for before, after in means)
        cells = (*psnr, cell(gain[0]), cell(worst), *ssim, cell(gain[1]))
        rows.append(Row(study.scene, cells))
        gains.append(gain)
    values = np.array([[c.ours.value for c in row.cells] for row in rows], dtype=np.float64)
    means = [cell(float(value)) for value in values.mean(axis=0)]
    means[2], means[6] = (mean_cell(mean_of(evidence, column)) for column in np.array(gains).T)
    means[3] = cell(float(values[:, 3].min()))
    rows.append(Row("Mean", tuple(means), True))
    return Table(
        name="pictures",
        title="Corrected pictures against plain renders",
        row_head="Scene",
        columns=(
            Column("PSNR, plain", "dB", 2),
            Column("PSNR, corrected", "dB", 2),
            Column("Gain", "dB", 2),
            Column("Least gain of a view", "dB", 2),
            Column("SSIM, plain", digits=4),
            Column("SSIM, corrected", digits=4),
            Column("Gain", digits=4),
        ),
        rows=tuple(rows),
        notes=(
            of_scenes(evidence, bench.main),
            "Held-out views. The gate of the correction was learned on the other scenes. In the "
            "last row, intervals are over scenes, and the least gain is that of any view.",
        ),
    )
