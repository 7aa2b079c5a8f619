# SPDX-License-Identifier: Apache-2.0
"""Tables of what was chosen for each target, and of the pictures that witnesses correct."""

from __future__ import annotations

import numpy as np

from splatcert_bench.statistics.choices import MissingError
from splatcert_bench.statistics.compared_scales import CORRECTED, GUIDED
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.tables.cells import cell, mean_cell, mean_of, of_scenes
from splatcert_bench.tables.table import Column, Row, Table


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
        cells = (*psnr, cell(gain[0]), cell(worst), *ssim, cell(gain[1]), cell(moved.rule[2]))
        rows.append(Row(study.scene, cells))
        gains.append(gain)
    values = np.array([[c.ours.value for c in row.cells] for row in rows], dtype=np.float64)
    means = [cell(float(value)) for value in values.mean(axis=0)]
    means[2], means[6] = (mean_cell(mean_of(evidence, column)) for column in np.array(gains).T)
    means[3], means[7] = cell(float(values[:, 3].min())), cell(None)
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
            Column("Strength", digits=2),
        ),
        rows=tuple(rows),
        notes=(
            of_scenes(evidence, bench.main),
            "Held-out views. The strength of the correction was chosen on the other scenes. In the "
            "last row, intervals are over scenes, and the least gain is that of any view.",
        ),
    )
