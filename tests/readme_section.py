# SPDX-License-Identifier: Apache-2.0
"""What README and the front page say about results, written from the committed numbers."""

from __future__ import annotations

import json
from pathlib import Path

from splatcert_bench.statistics import evidence
from splatcert_bench.statistics.compared_scales import GUIDED
from splatcert_bench.statistics.scenes import is_shown
from splatcert_bench.tables.cells import label

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
NESTED, UNLEARNED = label(evidence.NESTED), label(evidence.UNLEARNED)
PAPERS, SHIPPED = label(evidence.PAPER_RECIPE), label(evidence.WIDE)
OURS, FIELD, ORACLE = label("full"), label("gsu"), label("oracle")
GUIDES = label(GUIDED)
WORDS = "no one two three four five six seven eight nine ten eleven twelve thirteen".split()
Rows = dict[str, list[list]]
"""Our figures of a table, [value, low, high], by row."""


def table(name: str) -> Rows:
    """Our figures of a results table; nothing if the bench had none of that name."""
    content = json.loads((RESULTS / "evaluation" / "results.json").read_text(encoding="utf-8"))
    found = next((one["rows"] for one in content["tables"] if one["name"] == name), [])
    return {row["label"]: [cell["ours"] for cell in row["cells"]] for row in found}


def number(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def with_interval(figure: list, unit: str = "%") -> str:
    """A mean over captures; too few captures have no interval."""
    if figure[1] is None:
        return f"{number(figure[0])}{unit}"
    return f"{number(figure[0])}{unit} [{number(figure[1])}, {number(figure[2])}]"


def of(count: list) -> str:
    return count[0].replace("/", " of ")


def verdict(gap: list, p: list) -> str:
    """What a paired comparison demonstrates."""
    if is_shown(gap[1], p[0]):
        return f"p = {p[0]:.4f}"
    worse = gap[2] is not None and is_shown(-gap[2], p[0])
    return f"worse, p = {p[0]:.4f}" if worse else "no demonstrated advantage"


def unlearned(panel: Rows, paired: Rows) -> str:
    """What the field saves without learning and what learning adds."""
    gap, _, p = paired[UNLEARNED]
    added = f"learning adds {with_interval(gap, ' points')}: {verdict(gap, p)}"
    return f"{with_interval(panel[UNLEARNED][1])}; {added}"


CAVEAT = (
    "The last five rows use the ridge chosen on all captures. The views that predictors learn "
    "from, their prior, the rule for their penalty and the early stop of the field's solver were "
    "chosen by widths of these captures; the paper's recipe has its own for all but the last. "
    "The numbers behind the tables are in `benchmarks/results/evaluation/results.json`. All of "
    "them are about the paper's scale with its own holes, `--scale paper --holes paper`, but for "
    "the row that says otherwise."
)
RIDGE = "the field's ridge"
BY_PAPER = "the same by the paper's recipe: training views out of fold, penalty by rank, flat prior"
BY_DEFAULT = "the same with wide holes, as `--scale paper` makes it"


def captures() -> int:
    return len(table("manifest"))


def pooled() -> str:
    """The range of coverage by pooled pixels over the compared scales."""
    values = [row[3][0] for row in table("validity").values()]
    return f"{min(values):.0f}–{max(values):.0f}%"


def rows() -> list[tuple[str, str]]:
    """README's table of results: what was measured, and the number."""
    panel, paired = table("panel-a"), table("paired")
    ours, others = panel[OURS], WORDS[captures() - 1]
    gap, wins, p = paired[FIELD]
    return [
        (
            "test views covered; the arithmetic of ranks gives this for any scale",
            f"{number(ours[2][0])}% (target 90%)",
        ),
        ("test views covered by calibration on pooled pixels, the usual way", pooled()),
        (
            f"boxes narrower than a constant error bar, {RIDGE} and the form of the view factor "
            f"chosen on the other {others} captures",
            with_interval(panel[NESTED][1]),
        ),
        (
            f"the same, with {RIDGE} chosen on all {WORDS[captures()]}",
            f"{with_interval(ours[1])}, on {of(paired['Constant'][1])}",
        ),
        (BY_PAPER, with_interval(panel[PAPERS][1])),
        (BY_DEFAULT, with_interval(panel[SHIPPED][1])),
        (
            "more than the 3DGS-U field calibrated the same way",
            f"{with_interval(gap, ' points')}, on {of(wins)}: {verdict(gap, p)}",
        ),
        (
            "the same without learning: the residual field times its own mean",
            unlearned(panel, paired),
        ),
        (
            "the same if the difficulty of each view were known (oracle)",
            with_interval(panel[ORACLE][1]),
        ),
    ]


def guided() -> str:
    """The sentences on the default scale."""
    panel, (gap, wins, p) = table("panel-a"), table("paired-guided")[OURS]
    return (
        "The default, the [guided scale](docs/guided.md#measured), saves "
        f"{with_interval(panel[GUIDES][1])} of a constant scale's width, against "
        f"{with_interval(panel[OURS][1])} for the paper's scale on the same models: "
        f"{with_interval(gap, ' points')} more, on {of(wins)}, {verdict(gap, p)}. "
        "These captures were used to design it; unseen captures are not measured yet."
    )


def section() -> str:
    """The part of README under "How good is it?"."""
    lines = "\n".join(f"| {what} | {value} |" for what, value in rows())
    count = WORDS[captures()].capitalize()
    return f"""
{count} real captures at 640 px, α = β = 1/10, means over random splits of the held-out views
([all results](docs/results.md)):

| measured | value |
|---|---|
{lines}

{filled(CAVEAT)}

{filled(guided())}

"""


def front_page() -> str:
    """The three figures of docs/index.md."""
    known = dict(rows())
    covered, by_pixels, alone = list(known.values())[:3]
    saved = with_interval(table("panel-a")[GUIDES][1])
    entries = [
        f"**{covered.split()[0]}** of test views covered, at a target of 90%. The arithmetic of "
        "ranks gives this for any scale.",
        f"**{by_pixels}** covered by calibration on pooled pixels, the usual way, at the same "
        "target.",
        f"**{alone.split()[0]}** narrower than a constant error bar with the paper's scale, "
        f"{RIDGE} and form chosen on the other captures; {saved} with the guided scale, the "
        "default.",
    ]
    divs = "\n".join(f"<div markdown>{one} [Results](results.md)</div>" for one in entries)
    return f"\n{divs}\n"


def filled(text: str, width: int = 105) -> str:
    """Words in lines of this width."""
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)
