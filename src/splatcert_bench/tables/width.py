# SPDX-License-Identifier: Apache-2.0
"""Width at matched view coverage: one centre, one calibration layer, only the scale changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from splatcert_bench.run.entries import FULL_ENSEMBLE
from splatcert_bench.statistics.choices import ANY_RIDGE, MissingError
from splatcert_bench.statistics.compared_scales import CORRECTED, GUIDED, HOLES
from splatcert_bench.statistics.evidence import NESTED, PAPER_RECIPE, UNLEARNED, WIDE, Evidence
from splatcert_bench.statistics.scenes import FEWEST, compare
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.tables.cells import (
    BASELINES,
    BY_PHOTOS,
    COVERED,
    GAP,
    SAVING,
    SIGN,
    WINS,
    cell,
    known_savings,
    label,
    listed,
    mean_cell,
    mean_row,
    of_scenes,
    same_mean,
    saving_cell,
    saving_rows,
    shared_mean,
    wins,
    won_of,
)
from splatcert_bench.tables.paper import paper, paper_text, published
from splatcert_bench.tables.table import Cell, Column, Figure, Row, Table

_COMPARED = ("gap", "p", "wins", "scenes")
OURS = (NESTED, PAPER_RECIPE, "full", WIDE)
ONE_MODEL = ("constant", "gsu", ANY_RIDGE, "gavis", UNLEARNED, *OURS, *BY_PHOTOS)
MATCHED = "Same centre, same calibration views, same View-CP layer; only the scale map changes."
MOVED = (
    "Only the corrected centre has boxes around another picture; its saving is against the same "
    "constant scale around the render."
)
SHIPPED = (
    "The row with wide holes is what `certify --scale paper` makes: boxes are wide where the model "
    "shows nothing."
)
PER_SCENE = "tab:per-scene-main"
CHOSEN = (
    "Shrinkages, and GAVIS's κ, are chosen by width on the source scenes of each target's "
    "predictor, never on the target."
)


def panel_a(bench: BenchStudies) -> Table:
    """Every scale on the scenes that have them all (tab:panel-a)."""
    methods = _methods(bench.main)
    return _panel(bench, "panel-a", methods, "Width saved by each scale")


def panel_a_all(bench: BenchStudies) -> Table:
    """The same on all scenes, without the scales that some of them lack."""
    main = bench.main
    methods = [m for m in _methods(main) if all(main.can(m, study) for study in main.studies)]
    if len(methods) == len(_methods(main)):
        raise MissingError("panel-a already has all scenes")
    return _panel(bench, "panel-a-all", methods, "Width saved, on all scenes")


def panel_full(bench: BenchStudies) -> Table:
    """Every scale on the scenes with an ensemble as large and as long trained as the model."""
    if not bench.main.somewhere(FULL_ENSEMBLE):
        raise MissingError("no scene has an ensemble of full members")
    methods = _methods(bench.main)
    place = methods.index("ensemble") + 1 if "ensemble" in methods else len(methods)
    methods.insert(place, FULL_ENSEMBLE)
    scenes = bench.main.having(*methods).scenes
    title = "Width saved, on scenes with an ensemble of full members"
    return _panel(bench, "panel-full", methods, title, partial(_over_scenes, scenes))


def _over_scenes(scenes: tuple[str, ...], method: str, column: str) -> Figure | None:
    """The paper's mean over exactly these scenes; its ensemble has full members."""
    row = "ensemble" if method == FULL_ENSEMBLE else method
    known = row in published()["tables"][PER_SCENE]["columns"] and method != "ensemble"
    return same_mean(PER_SCENE, scenes, row) if known and column == "saving" else None


def paired(bench: BenchStudies) -> Table:
    """Our scale against each of the others, scene by scene."""
    return _against_others(bench, "full", "paired", "Our scale against each of the others")


def paired_nested(bench: BenchStudies) -> Table:
    """Ours with ridge and form among the nested choices, against each of the others."""
    if not bench.main.somewhere(NESTED):
        raise MissingError("no scene has fields of several ridges to choose from")
    title = "Ours, τ and form chosen on the sources too, against each of the others"
    return _against_others(bench, NESTED, "paired-nested", title)


def paired_guided(bench: BenchStudies) -> Table:
    """The guided scale against each of the others, scene by scene."""
    if not bench.main.somewhere(GUIDED):
        raise MissingError("no scene has the guided scale")
    title = "The guided scale against each of the others"
    return _against_others(bench, GUIDED, "paired-guided", title)


def _against_others(bench: BenchStudies, ours: str, name: str, title: str) -> Table:
    rows, unshown = [], []
    others = [m for m in _methods(bench.main) if m != ours]
    for method in [*others, *bench.main.somewhere(FULL_ENSEMBLE)]:
        both = bench.main.having(ours, method)
        savings = both.savings(ours), both.savings(method)
        found = compare(*savings, resamples=both.protocol.resamples)
        if method != "oracle" and not found.is_shown:
            unshown.append(label(method))
        known = f"{ours}-{method}" if ours == "full" and method in ("gsu", "ensemble") else ""
        gap, p, *won = (paper_text(known, n) if known else None for n in _COMPARED)
        cells = mean_cell(found.gap, gap), cell(wins(found), won_of(*won)), cell(found.p, p)
        rows.append(Row(label(method), cells))
    return Table(
        name=name,
        title=f"{title}, paired by scene",
        row_head="Ours minus" if ours == "full" else f"{label(ours)} minus",
        columns=(GAP, WINS, SIGN),
        rows=tuple(rows),
        notes=(
            "Each row uses all scenes that have both scales. Gap in points of saving, with a 95% "
            "bootstrap interval over scenes; exact two-sided sign test. Neither exists below "
            f"{FEWEST} scenes.",
            *([f"No demonstrated advantage over: {listed(unshown)}."] if unshown else []),
        ),
    )


def per_scene_main(bench: BenchStudies) -> Table:
    """Savings scene by scene, with the two paired differences (tab:per-scene-main)."""
    main, name = bench.main, PER_SCENE
    methods = main.somewhere(*BASELINES, ANY_RIDGE, UNLEARNED, *OURS, *BY_PHOTOS, "oracle")
    pairs = [("full", m) for m in ("gsu", "ensemble") if m in methods]
    columns = [Column(label(m), "%") for m in methods]
    columns += [Column(f"Ours \N{MINUS SIGN} {label(m)}", "points") for _, m in pairs]
    values = {m: known_savings(main, m) for m in methods}
    values |= {f"{a}-{b}": values[a] - values[b] for a, b in pairs}
    rows = saving_rows(main.scenes, values, name)
    rows.append(mean_row("Mean", values, lambda key: paper(name, "mean", key)))
    ours = [paper(name, scene, "full") is not None for scene in main.scenes]
    notes = []
    if any(ours) and not all(ours):
        notes.append("The paper's figure in the last row is its mean over just these scenes.")
        shared = {key: of[ours] for key, of in values.items()}
        known = partial(shared_mean, name, main.scenes)
        rows.append(mean_row("Mean of the paper's scenes", shared, known))
    return Table(
        name="per-scene-main",
        title="Width saved, scene by scene",
        label=name,
        row_head="Scene",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=(
            _covered_range(main, [*methods, "constant"]),
            *notes,
        ),
    )


def _of_all(method: str, column: str) -> Figure | None:
    """The paper's mean over its 13 scenes."""
    return paper("tab:panel-a", "full" if method == PAPER_RECIPE else method, column)


def _panel(
    bench: BenchStudies,
    name: str,
    methods: list[str],
    title: str,
    known: Callable[[str, str], Figure | None] = _of_all,
) -> Table:
    evidence = bench.main.having(*methods)
    compared = [m for m in methods if m not in ("constant", "oracle")]
    if not compared:
        raise MissingError("no scene has a scale to compare with the constant one")
    same_centre = [m for m in compared if m != CORRECTED]
    best = max(same_centre, key=lambda method: float(evidence.savings(method).mean()))
    rows = []
    for method in methods:
        saving = saving_cell(evidence, method, known(method, "saving"))
        saving = Cell(saving.ours, saving.paper, best=method == best)
        if method == "constant":
            saving = cell(0.0, Figure(0.0))
        covered = cell(float(evidence.coverages(method).mean()), known(method, "coverage"))
        rows.append(Row(label(method), (_models(evidence, method), saving, covered)))
    return Table(
        name=name,
        title=title,
        label="tab:panel-a",
        row_head="Scale",
        columns=(Column("Models / passes"), SAVING, COVERED),
        rows=tuple(rows),
        notes=(
            of_scenes(evidence, bench.main),
            f"{MATCHED} {CHOSEN}",
            *([SHIPPED] if WIDE in methods else []),
            *([MOVED] if CORRECTED in methods else []),
        ),
    )


def _methods(main: Evidence) -> list[str]:
    """Every baseline that a scene has, and users' maps that all scenes with those have."""
    known = main.somewhere("constant", *BASELINES, ANY_RIDGE, UNLEARNED)
    ours = main.somewhere(*OURS, *BY_PHOTOS, "oracle")
    matched = main.having(*known, *ours).studies
    own = set.intersection(*(set(study.maps) for study in matched)) - {
        *BASELINES,
        HOLES,
        FULL_ENSEMBLE,
    }
    mine = sorted(m for m in own if not m.endswith("-pv") and not m.startswith(("gavis-", "gsu@")))
    return [*known, *main.somewhere(*mine), *ours]


def _models(evidence: Evidence, method: str) -> Cell:
    known = [paper("tab:panel-a", method, name) for name in ("models", "passes")]
    theirs = Figure(f"{known[0].value} / {known[1].value}") if known[0] and known[1] else None
    setting = {"ensemble": "members", FULL_ENSEMBLE: "full members"}.get(method)
    if setting is None:
        return cell("1 / 1" if method in ONE_MODEL else None, theirs)
    members = {study.settings.get(setting, "M") for study in evidence.studies}
    count = "–".join(sorted(members, key=lambda text: (len(text), text)))
    return cell(f"{count} / {count}", theirs)


def _covered_range(evidence: Evidence, methods: list[str]) -> str:
    """The range of view-event coverage over scenes and scales; the oracle always covers."""
    known = [
        100 * evidence.outcome(method, study).coverage
        for method in methods
        if method != "oracle"
        for study in evidence.studies
        if evidence.can(method, study)
    ]
    return (
        f"View-event coverage over all these scenes and scales: {min(known):.1f}–{max(known):.1f}%."
    )
