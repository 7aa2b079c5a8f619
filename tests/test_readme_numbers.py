# SPDX-License-Identifier: Apache-2.0
"""Every number in README's table of results, computed again from the committed results."""

import json
import re
from pathlib import Path

import numpy as np

from splatcert_bench.statistics import evidence
from splatcert_bench.tables.cells import label

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
NESTED = label(evidence.NESTED)
TIE = 1.0
"""Points of saving within which two scales may be called a tie."""


def table(name: str) -> dict[str, list[list]]:
    """Our figures of a results table, [value, low, high], by row."""
    content = json.loads((RESULTS / "evaluation" / "results.json").read_text(encoding="utf-8"))
    (found,) = [one for one in content["tables"] if one["name"] == name]
    return {row["label"]: [cell["ours"] for cell in row["cells"]] for row in found["rows"]}


def number(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def interval(figure: list) -> str:
    return f"[{number(figure[1])}, {number(figure[2])}]"


def nested(panel: dict[str, list[list]]) -> str:
    """The saving with everything chosen on the other scenes, from the decision if not run yet."""
    if NESTED in panel:
        return f"{number(panel[NESTED][1][0])}% {interval(panel[NESTED][1])}"
    record = next((ROOT / "docs" / "decisions").glob("0011-*.md")).read_text(encoding="utf-8")
    (found,) = re.findall(r"the mean would be ([\d.]+) %", " ".join(record.split()))
    return f"{found}%"


def expected() -> list[str]:
    """What the second column of README's table must say, row by row."""
    panel, paired, validity = table("panel-a"), table("paired"), table("validity")
    ours, oracle = panel["Ours, a × b̃"], panel["Oracle factor a* × b̃"]
    against, wins, p = paired["3DGS-U spatial field"]
    pooled = [row[3][0] for row in validity.values()]
    rows = json.loads((RESULTS / "field_ridge.json").read_text(encoding="utf-8"))["rows"]
    kept = [r["shape_and_mean"] for r in rows if (r["degree"], r["ridge"]) == (2, 1.0)]
    unlearned = 100 * float(np.mean(kept))
    assert len(kept) == 10 and abs(unlearned - ours[1][0]) < TIE
    assert p[0] > 0.05 and against[1] < 0, "an advantage over 3DGS-U has been shown: say so"
    beaten = paired["Constant"][1][0].replace("/", " of ")
    return [
        f"{number(ours[2][0])}% (target 90%)",
        f"{min(pooled):.0f}–{max(pooled):.0f}%",
        nested(panel),
        f"{number(ours[1][0])}% {interval(ours[1])}, on {beaten}",
        f"{number(against[0])} points {interval(against)}, on {wins[0].replace('/', ' of ')}: "
        "no demonstrated advantage",
        f"{number(unlearned)}%, a tie",
        f"{number(oracle[1][0])}% {interval(oracle[1])}",
    ]


def test_every_number_of_readme_is_in_the_results():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("## How good is it?")[1].split("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    assert [row[2].strip() for row in rows] == expected()
    assert not [row[1] for row in rows if re.search(r"\d", row[1].replace("3DGS", ""))]


def test_the_nested_figure_comes_first():
    """The first saving in README has no setting that was chosen with its target in view."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = next(line for line in readme.splitlines() if "narrower than a constant" in line)
    assert nested(table("panel-a")) in first
