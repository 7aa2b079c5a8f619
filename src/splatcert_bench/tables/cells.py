# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the tables: names of scales, common columns, cells, rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from splatcert_bench.statistics.choices import ANY_RIDGE
from splatcert_bench.statistics.compared_scales import CORRECTED, GUIDED
from splatcert_bench.statistics.evidence import BATCH, NESTED, PAPER_RECIPE, Evidence
from splatcert_bench.statistics.scenes import Comparison, Mean, mean_over_scenes
from splatcert_bench.tables.paper import paper
from splatcert_bench.tables.table import Cell, Column, Figure, Row, Value

LABELS = {
    "constant": "Constant",
    "gsu": "3DGS-U spatial field",
    ANY_RIDGE: "3DGS-U at its own best τ",
    "gavis": "GAVIS visibility field",
    "ensemble": "Ensemble standard deviation",
    "ensemble-full": "Ensemble of full members",
    "shape": "Within-view shape b̃ only",
    "magnitude": "Raw-field magnitude b̄ only",
    "unlearned": "Field b̄ × b̃, no learning",
    "a": "Learned view factor a only",
    NESTED: "Ours, τ and form chosen on the sources too",
    PAPER_RECIPE: "Ours by the paper's recipe",
    "full": "Ours, a × b̃",
    BATCH: "Ours in the paper's unit, mean one over the batch",
    "wide": "Ours with wide holes, a × b̃",
    GUIDED: "Guided scale",
    CORRECTED: "Guided scale, corrected centre",
    "oracle": "Oracle factor a* × b̃",
}
BASELINES = ("gsu", "gavis", "ensemble")
BY_PHOTOS = (GUIDED, CORRECTED)
"""Scales that ask the training photographs."""
SAVING = Column("Saving", "%")
COVERED = Column("View-event coverage", "%")
GAP = Column("Gap", "points")
WINS = Column("Wins")
SIGN = Column("Sign test p", digits=4)
SCENES = Column("Scenes")


def label(method: str) -> str:
    """Display name of a scale; a user's map keeps its own name."""
    return LABELS.get(method, method)


def cell(value: Value, published: Figure | None = None, *, best: bool = False) -> Cell:
    """One number or word."""
    return Cell(Figure(value), published, best)


def mean_cell(mean: Mean, published: Figure | None = None, *, best: bool = False) -> Cell:
    """A mean over scenes with its interval."""
    return Cell(Figure(mean.value, mean.low, mean.high), published, best)


def saving_cell(evidence: Evidence, method: str, published: Figure | None = None) -> Cell:
    """Mean saving over scenes with its interval."""
    return mean_cell(mean_of(evidence, evidence.savings(method)), published)


def mean_of(evidence: Evidence, values: NDArray[np.float64]) -> Mean:
    """Mean over scenes, with the protocol's number of resamples."""
    return mean_over_scenes(values, evidence.protocol.resamples)


def wins(comparison: Comparison) -> str:
    """Number of scenes won, out of those that differ."""
    return f"{comparison.wins}/{comparison.scenes}"


def sign_words(comparison: Comparison) -> str:
    """The sign test as part of a sentence."""
    return "too few scenes" if comparison.p is None else f"p = {comparison.p:.4f}"


def won_of(won: Figure | None, of: Figure | None) -> Figure | None:
    """The paper's number of wins, in the format of ours."""
    return Figure(f"{won.value}/{of.value}") if won and of else None


def shared_mean(label: str, scenes: Sequence[str], column: str) -> Figure | None:
    """The paper's mean over the scenes that it shares with ours."""
    found = [paper(label, scene, column) for scene in scenes]
    values = [figure.value for figure in found if figure is not None and figure.value is not None]
    return Figure(float(np.mean(np.array(values, dtype=np.float64)))) if values else None


def same_mean(label: str, scenes: Sequence[str], column: str) -> Figure | None:
    """The paper's mean over exactly these scenes; None if it lacks one."""
    known = all(paper(label, scene, column) is not None for scene in scenes)
    return shared_mean(label, scenes, column) if known else None


def listed(names: Iterable[str]) -> str:
    """Names as part of a sentence."""
    return ", ".join(names)


def of_scenes(evidence: Evidence, everything: Evidence) -> str:
    """A sentence that names the scenes of a table."""
    left_out = [scene for scene in everything.scenes if scene not in evidence.scenes]
    count = f"{len(evidence.scenes)} scenes: {listed(evidence.scenes)}."
    return f"{count} Without {listed(left_out)}, which lack a scale." if left_out else count


def known_savings(evidence: Evidence, method: str) -> NDArray[np.float64]:
    """Savings by scene, NaN if the scene lacks the scale."""
    return np.array(
        [
            evidence.saving(method, study) if evidence.can(method, study) else np.nan
            for study in evidence.studies
        ]
    )


def saving_rows(
    scenes: Sequence[str], values: Mapping[str, NDArray[np.float64]], table: str
) -> list[Row]:
    """One row per scene, its savings beside the paper's own; NaN is unknown."""
    return [
        Row(
            scene,
            tuple(
                cell(float(of[at]) if np.isfinite(of[at]) else None, paper(table, scene, key))
                for key, of in values.items()
            ),
        )
        for at, scene in enumerate(scenes)
    ]


def known_mean(values: NDArray[np.float64], published: Figure | None = None) -> Cell:
    """Mean of the known numbers."""
    known = values[np.isfinite(values)]
    return cell(float(known.mean()) if known.size else None, published)


def mean_row(
    text: str,
    values: Mapping[str, NDArray[np.float64]],
    published: Callable[[str], Figure | None] = lambda key: None,
) -> Row:
    """Means of several columns, set apart; `published` gives the paper's own by key."""
    return Row(text, tuple(known_mean(of, published(key)) for key, of in values.items()), True)
