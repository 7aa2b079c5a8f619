# SPDX-License-Identifier: Apache-2.0
"""The first half page of the results: what was asked, what came out, what is not shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from splatcert.conformal.levels import in_percent
from splatcert_bench.statistics.compared_scales import CORRECTED, GUIDED
from splatcert_bench.statistics.evidence import NESTED, PAPER_RECIPE, WIDE
from splatcert_bench.statistics.scenes import is_shown
from splatcert_bench.tables.cells import GAP, label, listed
from splatcert_bench.tables.paper import paper_range
from splatcert_bench.tables.table import Row, Table, written

FIGURE = "saving"
"""The picture of the summary, if the bench has drawn it."""
OURS = ("oracle", NESTED, PAPER_RECIPE, WIDE, CORRECTED)
"""Forms of our scale that it is not compared with."""
PAPERS = "the paper's scale"
NOT_SHOWN = (
    "Coverage of views that are drawn otherwise than the calibration views: every hold-out here is "
    "interleaved with the training views, the easy case, unless a table says otherwise.",
    "Captures nobody had seen: the method was built with the ten captures of `benchmarks/cpu.toml` "
    "at hand. Shrinkages, penalties and predictors are chosen on the other scenes each time. The "
    "views that predictors learn from, their prior, the rule for their penalty and the early stop "
    "of the field's solver were chosen by widths of those ten; the paper's recipe has its own for "
    "all but the last. The recipe of the guided scale was chosen by widths of the same ten, each "
    "left out of all fitting (decision 0014), and frozen before this run.",
)
ONCE = "Other seeds of training: every model was trained once, and intervals are over scenes."
SEEDS = (
    "Other seeds of training on most scenes: intervals are over scenes, and a table of its own has "
    "what models trained again give: "
)


def summary_of(
    tables: Mapping[str, Table], protocol: Mapping[str, Any], pictures: Sequence[str], figures: str
) -> str:
    """What was asked, what came out, one figure and what is not shown, from the tables alone."""
    found = [*_nested(tables), *_guided(tables), *_coverage(tables, protocol), *_width(tables)]
    nested = "paired-nested" in tables
    ours = ("paired-nested", f"{PAPERS} so chosen") if nested else ("paired", PAPERS)
    found += _against(tables, *ours, ("full", GUIDED, *OURS))
    found += _against(tables, "paired-guided", "the guided scale", OURS) + _theory(tables)
    if not found:
        return ""
    alpha, beta = (in_percent(1 - Fraction(protocol[name])) for name in ("alpha", "beta"))
    scenes = len(tables["manifest"].rows) if "manifest" in tables else 0
    parts = [
        "## In one minute",
        f"**Asked**, on {scenes} scenes: do boxes that were calibrated over whole views contain "
        f"{beta} of the pixels in {alpha} of new views, and how much narrower than a constant "
        "error bar are they at the same coverage?",
        "**Found.**\n\n" + "\n".join(f"- {line}" for line in found),
    ]
    if FIGURE in pictures:
        parts.append(f"![Width saved by each scale]({figures}/{FIGURE}.png)")
    parts.append("**Not shown.**\n\n" + "\n".join(f"- {line}" for line in _not_shown(tables)))
    return "\n\n".join(parts)


def _coverage(tables: Mapping[str, Table], protocol: Mapping[str, Any]) -> list[str]:
    if "validity" not in tables:
        return []
    table = tables["validity"]
    pooled, views = (_range(table.rows, at) for at in (3, 5))
    target = in_percent(1 - Fraction(protocol["alpha"]))
    return [
        f"At a target of {target}, pixel-pooled calibration covers {pooled}% of test views, "
        f"View-CP {views}% (the paper: {paper_range('tab:validity', 'pooled_view')}% and "
        f"{paper_range('tab:validity', 'view_view')}%). On random splits the second follows from "
        "the ranks alone, k/(m + 1), for any scale: it shows that the code is right, not that a "
        "scale is good.",
    ]


def _width(tables: Mapping[str, Table]) -> list[str]:
    if "panel-a" not in tables:
        return []
    panel = tables["panel-a"]
    saved = [
        f"{row.label} {written(row.cells[1].ours, panel.columns[1])}"
        for row in panel.rows
        if row.label not in (label("constant"), label(NESTED))
    ]
    return [f"Width saved against the constant scale, in per cent: {'; '.join(saved)}."]


def _nested(tables: Mapping[str, Table]) -> list[str]:
    """The saving with the choices nested that the tables can nest."""
    if "panel-a" not in tables:
        return []
    panel = tables["panel-a"]
    return [
        "With the ridge of the field and the form of the view factor chosen on the other scenes "
        f"too, {PAPERS} saves {written(row.cells[1].ours, panel.columns[1])}% of "
        "the constant scale's width."
        for row in panel.rows
        if row.label == label(NESTED)
    ]


def _guided(tables: Mapping[str, Table]) -> list[str]:
    """What the default scale saves, and how much more than the paper's."""
    if not {"panel-a", "paired-guided"} <= {*tables}:
        return []
    saved = _row(tables["panel-a"], GUIDED).cells[1].ours
    gap = _row(tables["paired-guided"], "full")
    return [
        f"The guided scale, the default, saves {written(saved, GAP)}%; more than {PAPERS} with its "
        f"default ridge by {_gap(gap)}, on {gap.cells[1].ours.value} scenes."
    ]


def _row(table: Table, method: str) -> Row:
    return next(row for row in table.rows if row.label == label(method))


def _not_shown(tables: Mapping[str, Table]) -> list[str]:
    """What the numbers say nothing about; models trained again are named."""
    rows = tables["variants"].rows if "variants" in tables else ()
    again = [row.label.replace(", ", " ") for row in rows if "seed" in row.label]
    return [*NOT_SHOWN, f"{SEEDS}{listed(again)}." if again else ONCE]


def _against(tables: Mapping[str, Table], name: str, ours: str, forms: Sequence[str]) -> list[str]:
    """Scales, but for other forms of ours, over which no advantage is demonstrated."""
    if name not in tables:
        return []
    same = {label(method) for method in forms}
    others = [row for row in tables[name].rows if row.label not in same]
    unshown = [f"{row.label} ({_gap(row)})" for row in others if not _is_shown(row)]
    if not unshown:
        return [
            f"{ours.capitalize()} saves more than each of the others, beyond chance over scenes."
        ]
    return [f"No advantage of {ours} is demonstrated over {listed(unshown)}."]


def _is_shown(row: Row) -> bool:
    gap, _, p = (cell.ours for cell in row.cells)
    return is_shown(gap.low, None if p.value is None else float(p.value))


def _gap(row: Row) -> str:
    p = row.cells[2].ours.value
    chance = "too few scenes" if p is None else f"p = {float(p):.3f}"
    return f"{written(row.cells[0].ours, GAP)} points, {chance}"


def _theory(tables: Mapping[str, Table]) -> list[str]:
    if "audit" not in tables:
        return []
    largest = max(float(row.cells[0].ours.value or 0) for row in tables["audit"].rows)
    return [f"The paper's identities hold on measured maps to {largest:.1e}."]


def _range(rows: Sequence[Row], at: int) -> str:
    values = sorted(float(row.cells[at].ours.value or 0) for row in rows)
    first, last = f"{values[0]:.1f}", f"{values[-1]:.1f}"
    return first if first == last else f"{first}–{last}"
