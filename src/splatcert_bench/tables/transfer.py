# SPDX-License-Identifier: Apache-2.0
"""Tables of transfer: source pools, backbones, centres and targets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from splatcert.errors import InputError
from splatcert_bench.statistics.choices import MissingError
from splatcert_bench.statistics.evidence import UNLEARNED, Evidence
from splatcert_bench.statistics.scenes import compare
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.studies.study import Study
from splatcert_bench.tables.cells import (
    BY_PHOTOS,
    GAP,
    SCENES,
    SIGN,
    WINS,
    cell,
    known_mean,
    known_savings,
    label,
    listed,
    mean_cell,
    mean_row,
    same_mean,
    saving_cell,
    saving_rows,
    sign_words,
    wins,
    won_of,
)
from splatcert_bench.tables.paper import paper, paper_text
from splatcert_bench.tables.table import Cell, Column, Figure, Row, Table, Value

FAMILY = "Mip-NeRF 360"
"""The family held out in the paper."""
MAIN = "pool"
"""The pool of the main results."""
STRICT = "No scene of the target's family is among the sources of its predictor."


RECIPE = (
    "The paper's recipe: targets of training views from models that have not seen them, penalties "
    "chosen by rank, no prior."
)


def transfer(bench: BenchStudies) -> Table:
    """Our scale and the ensemble's under other source pools (tab:transfer)."""
    evidence = bench.main
    rows = _pool_rows(evidence, "tab:transfer")
    return Table(
        name="transfer",
        title="Source pools",
        label="tab:transfer",
        row_head="Pool of source scenes",
        columns=_columns(evidence),
        rows=tuple(rows),
        notes=(
            "Savings in per cent of the constant scale's width, with 95% bootstrap intervals over "
            "scenes. Gap, wins and p compare ours with the ensemble, on the scenes that have one.",
            STRICT.replace("No", "Strict holdout: no"),
            RECIPE,
            "The paper's figures in a row are over exactly its scenes, or absent.",
        ),
    )


def centre(bench: BenchStudies) -> Table:
    """The same with the ensemble mean as centre of all boxes (predictive-centre control)."""
    evidence = bench.evidence(centre="ensemble-mean").having("full", "ensemble")
    rows = _pool_rows(evidence, "centre")
    sizes = sorted({study.settings.get("resolution", "unknown") for study in evidence.studies})
    return Table(
        name="centre",
        title="The ensemble mean as centre",
        row_head="Pool of source scenes",
        columns=_columns(evidence),
        rows=tuple(rows),
        notes=(
            "All scales around the ensemble's mean image instead of one model's render, at "
            f"{listed(sizes)}.",
        ),
    )


def per_scene(bench: BenchStudies) -> Table:
    """Strict holdout, scene by scene (tab:per-scene)."""
    strict, name = bench.main.by("strict"), "tab:per-scene"
    methods = strict.somewhere("a", "shape", UNLEARNED, "full", *BY_PHOTOS, "ensemble", "oracle")
    values = {method: known_savings(strict, method) for method in methods}
    rows = saving_rows(strict.scenes, values, name)
    held_out = np.array([study.family == FAMILY for study in strict.studies])
    if held_out.any():
        own = {method: of[held_out] for method, of in values.items()}
        known = [s for s, own_family in zip(strict.scenes, held_out, strict=True) if own_family]
        rows.append(mean_row(f"Mean, {FAMILY}", own, partial(same_mean, name, known)))
    if not held_out.all():
        rows.append(mean_row("Mean, all", values))
    found = compare(values["full"], np.zeros(len(strict.studies)))
    return Table(
        name="per-scene",
        title="Strict family holdout, scene by scene",
        label=name,
        row_head="Scene",
        columns=tuple(Column(label(method), "%") for method in methods),
        rows=tuple(rows),
        notes=(
            f"{STRICT} The full scale beats the constant one on {wins(found)} scenes, exact "
            f"two-sided sign test: {sign_words(found)}.",
        ),
    )


def backbone(bench: BenchStudies) -> Table:
    """Vanilla density control, with predictor and shrinkages of FastGS (tab:backbone)."""
    vanilla, name = bench.evidence(backbone="vanilla").having("full"), "tab:backbone"
    if bench.backbone == "vanilla":
        raise MissingError("the main models already use vanilla densification")
    methods = vanilla.somewhere("a", "shape", UNLEARNED, "full", *BY_PHOTOS, "oracle")
    values = {method: vanilla.savings(method) for method in methods}
    covered = vanilla.coverages("full")
    rows = []
    for at, study in enumerate(vanilla.studies):
        saved = [cell(float(values[m][at]), paper(name, study.scene, m)) for m in methods]
        event = cell(float(covered[at]), paper(name, study.scene, "coverage"))
        ratio = cell(_gaussian_ratio(study, vanilla.sources.get(study.scene)))
        rows.append(Row(study.scene, (*saved, event, ratio)))
    means = [known_mean(values[m], same_mean(name, vanilla.scenes, m)) for m in methods]
    rows.append(Row("Mean", (*means, known_mean(covered), cell(None)), True))
    return Table(
        name="backbone",
        title="Vanilla densification",
        label=name,
        row_head="Scene",
        columns=(
            *(Column(label(method), "%") for method in methods),
            Column("Coverage", "%"),
            Column("Gaussians over FastGS", "×"),
        ),
        rows=tuple(rows),
        notes=("Predictor and shrinkages were learned on FastGS models and are not refitted.",),
    )


def targets(bench: BenchStudies) -> Table:
    """A target from one deployed model against an out-of-fold one, scene by scene."""
    folds = bench.main.by("out-of-fold")
    one = folds.by("one-model")
    values = [evidence.savings("full") for evidence in (one, folds)]
    rows = [
        Row(scene, (cell(float(values[0][at])), cell(float(values[1][at]))))
        for at, scene in enumerate(folds.scenes)
    ]
    published = [paper_text(f"targets {name}", "saving") for name in ("one", "folds")]
    means = (known_mean(v, p) for v, p in zip(values, published, strict=True))
    rows.append(Row("Mean", tuple(means), True))
    found = compare(values[1], values[0])
    return Table(
        name="targets",
        title="One-model target against out-of-fold target",
        row_head="Scene",
        columns=(Column("One model", "%"), Column("Out of fold", "%")),
        rows=tuple(rows),
        notes=(
            "Saving of our scale with a predictor learned from training views, on residuals of "
            "the deployed model or of models that had not seen the view. Out of fold is better on "
            f"{wins(found)} scenes (the paper: {_won('targets wins')}).",
        ),
    )


def _columns(evidence: Evidence) -> tuple[Column, ...]:
    beside = [Column(label(method), "%") for method in _beside(evidence)]
    compared = (Column("Ensemble", "%"), GAP, WINS, SIGN, Column("Beats constant"))
    same = Column("All other scenes as sources, same targets", "%"), Column("Minus that", "points")
    return (SCENES, Column("Ours", "%"), *same, *beside, *compared)


def _beside(evidence: Evidence) -> list[str]:
    """The field without learning, and the scales that ask photographs, if any pool has them."""
    named = {name.split()[0] for study in evidence.studies for name in study.guided}
    return [UNLEARNED, *(method for method in BY_PHOTOS if method in named)]


def _pool_rows(evidence: Evidence, source: str) -> list[Row]:
    """One row per choice of source scenes that at least one target has."""
    ways = [
        ("pool", "All other scenes", None, ""),
        ("same-family", "Same family among the sources", None, "same-family"),
        ("strict", f"Strict holdout, {FAMILY}", FAMILY, "strict"),
        ("strict", "Strict holdout, every family", None, ""),
        ("mixed", "As many sources as strict, with the family", None, ""),
        ("paper", "All other scenes, by the paper's recipe", None, ""),
        ("one-model", "All other scenes, learned from their training views", None, ""),
    ]
    named = {pool for study in evidence.studies for pool in study.predictions}
    own = sorted(p for p in named - {way[0] for way in ways} - {"out-of-fold"} if "@" not in p)
    rows = []
    for pool, text, family, published in [*ways, *((p, f"Pool {p}", None, "") for p in own)]:
        try:
            targets = evidence.by(pool).where(lambda s, f=family: f in (None, s.family))
            chosen = targets.having("full")
        except InputError:
            continue
        beside = [
            saving_cell(chosen, m) if all(chosen.can(m, s) for s in chosen.studies) else cell(None)
            for m in _beside(evidence)
        ]
        rows.append(_pool_row(chosen, text, published, source, beside))
    if not rows:
        raise MissingError("no scene has view factors from any pool of source scenes")
    return rows


def _pool_row(
    evidence: Evidence, text: str, published: str, source: str, beside: Sequence[Cell]
) -> Row:
    scenes = evidence.scenes
    known = {
        name: _published(source, published, name, scenes)
        for name in ("full", "ensemble", "gap", "wins", "scenes", "p")
    }
    against_constant = compare(evidence.savings("full"), np.zeros(len(evidence.studies)))
    beats = f"{wins(against_constant)}, {sign_words(against_constant)}"
    compared: tuple[Cell, ...] = tuple(cell(None, known[name]) for name in ("ensemble", "gap"))
    compared += cell(None), cell(None, known["p"])
    if evidence.somewhere("ensemble"):
        both = evidence.having("full", "ensemble")
        found = compare(both.savings("full"), both.savings("ensemble"), both.protocol.resamples)
        compared = (
            saving_cell(both, "ensemble", known["ensemble"]),
            mean_cell(found.gap, known["gap"]),
            cell(wins(found), won_of(known["wins"], known["scenes"])),
            cell(found.p, known["p"]),
        )
    ours = saving_cell(evidence, "full", known["full"])
    same = _same_targets(evidence)
    return Row(text, (cell(len(scenes)), ours, *same, *beside, *compared, cell(beats)))


def _same_targets(evidence: Evidence) -> tuple[Cell, Cell]:
    """The main pool on the targets of another, and what the other pool adds to it."""
    if evidence.pool == MAIN or not all(MAIN in s.predictions for s in evidence.studies):
        return cell(None), cell(None)
    main = evidence.by(MAIN)
    found = compare(evidence.savings("full"), main.savings("full"), main.protocol.resamples)
    return cell(float(main.savings("full").mean())), mean_cell(found.gap)


def _published(source: str, row: str, column: str, scenes: Sequence[str]) -> Figure | None:
    """The paper's figure over exactly these scenes, if it has one."""
    if row not in ("same-family", "strict"):
        return None
    text = source == "centre"
    whole = paper_text(f"centre {row}", "scenes") if text else paper(source, row, "scenes")
    if whole is not None and whole.value == len(scenes):
        return paper_text(f"centre {row}", column) if text else paper(source, row, column)
    if text or row != "strict":
        return None  # the paper has no figures of single scenes here
    full, ensemble = (
        [paper("tab:per-scene", scene, name) for scene in scenes] for name in ("full", "ensemble")
    )
    pairs = [(f.value, e.value) for f, e in zip(full, ensemble, strict=True) if f and e]
    if len(pairs) < len(scenes):
        return None
    ours, theirs = np.array(pairs, dtype=np.float64).T
    won = {"wins": int((ours > theirs).sum()), "scenes": len(scenes)}
    means = {"full": ours.mean(), "ensemble": theirs.mean(), "gap": (ours - theirs).mean()}
    if column in won:
        return Figure(won[column])
    return Figure(float(means[column])) if column in means else None


def _gaussian_ratio(study: Study, reference: Study | None) -> float | None:
    if reference is None or not {"gaussians"} <= set(study.facts) & set(reference.facts):
        return None
    return study.facts["gaussians"] / reference.facts["gaussians"]


def _won(passage: str) -> Value:
    figure = won_of(paper_text(passage, "wins"), paper_text(passage, "scenes"))
    return figure.value if figure else None
