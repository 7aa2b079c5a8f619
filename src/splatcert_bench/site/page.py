# SPDX-License-Identifier: Apache-2.0
"""The results page: a function of the stored JSON, so page and numbers always agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from splatcert_bench.site.summary import summary_of
from splatcert_bench.site.writers import markdown_table, no_html, plain_cell
from splatcert_bench.studies.collection import MODEL
from splatcert_bench.tables.table import Table, table_from_plain

SECTIONS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("What was studied", ("manifest", "overview")),
    (
        "Does calibration control the right event?",
        ("coverage", "validity", "distribution", "curve", "level"),
    ),
    ("Beyond the guarantee", ("shift", "flags", "tenths")),
    (
        "Width at matched coverage",
        (
            *("panel-a", "saving", "panel-a-all", "panel-full"),
            *("paired-nested", "paired", "paired-guided", "per-scene-main"),
        ),
    ),
    (
        "What a scale is made of",
        ("ablation", "pictures", "extremes", "ranking", "norm", "choices", "intervals"),
    ),
    ("Transfer", ("transfer", "strict", "per-scene", "targets", "backbone", "variants", "centre")),
    ("Levels and labels", ("sensitivity", "calibration", "calibration-few", "access")),
    ("Theory on real numbers", ("audit", "decomposition")),
    ("GAVIS and packing", ("visibility", "packing")),
    ("Time", ("time-latency", "time-training")),
)
"""Tables and figures by name, in reading order."""
INTRODUCTION = """# Results

<!-- Made by `splatcert results`. Do not edit: change the code or the numbers. -->"""
READING = """## How to read this page

Everything on this page was produced by `splatcert bench` and computed from stored per-view
numbers; favourable or not, all of it is shown. *Saving* is the share of the constant scale's
half-width that a scale saves at the same coverage. Scenes are the units of every interval and
test, because repeated splits of one scene reuse its views.

*Figures in italics and brackets are the paper's own*: FastGS trained for 30,000 iterations at
the paper's resolution, ten members, times on an RTX 4090; means are over its 13 scenes unless a
row says otherwise. Ours use the settings below, so the two are not the same experiment."""


def results_page(
    results: Mapping[str, Any], times: Mapping[str, Any] | None = None, figures: str = "figures"
) -> str:
    """The page in Markdown; `figures` is the folder of its pictures, relative to the page."""
    timed = times or {"tables": [], "missing": {}, "machine": {}}
    tables = {t["name"]: table_from_plain(t) for t in [*results["tables"], *timed["tables"]]}
    pictures = {p["name"]: p for p in [*results["charts"], *results["pictures"]]}
    minute = summary_of(tables, results["protocol"], list(pictures), figures)
    parts = [minute, _unfinished(results.get("unfinished", {})), READING, _setting(results, timed)]
    for title, names in SECTIONS:
        known = [name for name in names if name in tables or name in pictures]
        if known:
            parts.append(f"## {title}")
        for name in known:
            if name in tables:
                parts.append(_table(tables[name]))
            else:
                parts.append(_picture(pictures[name], figures))
    parts.append(_missing({**results["missing"], **timed["missing"]}))
    parts.append(_again(results))
    return "\n\n".join([INTRODUCTION, *(no_html(part) for part in parts if part)]) + "\n"


def _table(table: Table) -> str:
    answered = f" (`{table.label}`)" if table.label else ""
    return f"### {table.title}{answered}\n\n{markdown_table(table)}".rstrip()


def _picture(picture: Mapping[str, Any], figures: str) -> str:
    name, title = picture["name"], picture["title"]
    title = plain_cell(title)
    return f"### {title}\n\n![{title}]({figures}/{name}.png)\n\n{plain_cell(picture['caption'])}"


def _setting(results: Mapping[str, Any], times: Mapping[str, Any]) -> str:
    """Levels, splits, settings of the bench and the machine, in one small table."""
    protocol = results["protocol"]
    facts = {
        "levels": f"α = {protocol['alpha']}, β = {protocol['beta']}",
        "splits": f"{protocol['splits']} (readings: {protocol['native_splits']}), seed "
        f"{protocol['seed']}; bootstrap over scenes: {protocol['resamples']:,} resamples",
        **_common_settings([s for s in results["studies"] if s["centre"] == MODEL]),
        **results["settings"],
        **{f"machine: {name}": value for name, value in times["machine"].items()},
    }
    rows = [
        f"| {plain_cell(name.replace('_', ' '))} | {plain_cell(_plain(value))} |"
        for name, value in facts.items()
    ]
    return "\n".join(["| | |", "|---|---|", *rows])


def _common_settings(studies: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Settings of the models: every value that occurs."""
    found: dict[str, list[str]] = {"models": []}
    for study in studies:
        for name, value in [("models", study["backbone"]), *study["settings"].items()]:
            known = found.setdefault(name, [])
            if value not in known:
                known.append(value)
    return {name: ", ".join(values) for name, values in found.items() if values}


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def _missing(missing: Mapping[str, str]) -> str:
    if not missing:
        return ""
    reasons = [
        f"- `{plain_cell(name)}`: {plain_cell(why.splitlines()[0])}"
        for name, why in sorted(missing.items())
    ]
    return "\n".join(
        ["## Not available", "", "These could not be computed from the studies:", "", *reasons]
    )


def _unfinished(unfinished: Mapping[str, str]) -> str:
    """Scenes and pools that later instalments of the bench add."""
    if not unfinished:
        return ""
    lines = [
        f"- `{plain_cell(name)}` {plain_cell(why)}" for name, why in sorted(unfinished.items())
    ]
    return "\n".join(["## Not run yet", "", "This bench is unfinished:", "", *lines])


def _again(results: Mapping[str, Any]) -> str:
    told = results["settings"].get("config", "CONFIG")
    return f"""## Reproduce

```
splatcert bench {told}         # trains, measures, writes studies and these tables
splatcert results FOLDER       # rebuilds tables, figures and page from the stored studies
```

Every number above is in `results.json`, with the values of every view and the hashes of its
inputs."""
