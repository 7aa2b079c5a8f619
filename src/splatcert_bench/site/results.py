# SPDX-License-Identifier: Apache-2.0
"""From studies to results: every table and chart in one JSON file, and the files built from it.

`results.json` depends only on the studies, so equal studies give equal bytes. Times, and the
machine they were measured on, are in `times.json`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from splatcert.config import LARGEST_COUNT, LARGEST_SEED
from splatcert.conformal.levels import parse_level
from splatcert.errors import InputError
from splatcert.storage import schema
from splatcert.storage.arrays import LONGEST_REASON, UNUSABLE
from splatcert.storage.whole import ArtefactError, output_folder, replacing, write_text_whole
from splatcert_bench.site.charts import CHARTS, Chart
from splatcert_bench.site.page import results_page
from splatcert_bench.site.panels import PANELS, Panel
from splatcert_bench.site.writers import latex_table, markdown_table
from splatcert_bench.statistics.choices import Protocol
from splatcert_bench.statistics.evidence import NESTED, UNLEARNED
from splatcert_bench.studies.collection import BenchStudies, read_studies, too_small
from splatcert_bench.studies.counts import RatioCounts, ViewPicture
from splatcert_bench.studies.study import Study
from splatcert_bench.tables.cells import BASELINES, BY_PHOTOS
from splatcert_bench.tables.registry import TABLES, TIMES
from splatcert_bench.tables.table import Table, file_name, table_from_plain, table_to_plain

FORMAT, TIMES_FORMAT, VERSION = "splatcert results", "splatcert times", 1
RESULTS, TIMES_FILE = "results.json", "times.json"
MAX_BYTES = 1 << 28
"""Largest file of results that is read."""
KEPT = ("constant", *BASELINES, "a", "shape", UNLEARNED, NESTED, "full", *BY_PHOTOS)
"""Scales whose per-view numbers are published."""
TIMED = ("latency.", "seconds.")
"""Facts that differ from run to run."""
Made = TypeVar("Made", Table, Chart, Panel)


def write_results(
    folder: Path,
    studies: Sequence[Study],
    ratios: Mapping[str, RatioCounts],
    pictures: Sequence[ViewPicture],
    settings: Mapping[str, str],
    machine: Mapping[str, object],
    protocol: Protocol | None = None,
    unfinished: Mapping[str, str] | None = None,
) -> None:
    """Write all results of a bench: JSON, Markdown and LaTeX tables, figures and the page.

    `unfinished` says what later instalments of the bench add, by scene or pool.
    """
    bench = BenchStudies(tuple(studies), ratios, tuple(pictures), protocol or Protocol())
    results, times = make_results(bench, settings, unfinished), make_times(bench, machine)
    write_json(folder / RESULTS, results)
    write_json(folder / TIMES_FILE, times)
    _write_all(folder, results, times, bench)


def compute_again(folder: Path) -> dict[str, Any]:
    """Recompute all results of a bench from its stored studies; measured times are kept."""
    earlier = read_results(folder)
    keys = {str(study["key"]) for study in earlier["studies"]} | set(earlier["missing"])
    bench = read_studies(folder / "studies", _protocol(earlier["protocol"]), keys)
    results = make_results(bench, earlier["settings"], earlier.get("unfinished"))
    times = read_times(folder)
    write_json(folder / RESULTS, results)
    _write_all(folder, results, times, bench)
    return results


def publish(folder: Path, page: Path) -> None:
    """Write the page of a bench's results, with its figures in a folder of the page's name.

    Charts are drawn from their numbers; pictures are copied from the bench if it has them.
    """
    results, times = read_results(folder), read_times(folder)
    figures = page.with_suffix("")
    write_figures(figures, results)
    write_text_whole(page, results_page(results, times, figures=figures.name))
    for picture in results["pictures"]:
        drawn = folder / "figures" / f"{picture['name']}.png"
        if drawn.is_file():
            with replacing(figures / drawn.name) as aside:
                aside.write_bytes(drawn.read_bytes())


def read_results(folder: Path) -> dict[str, Any]:
    """Read the results of a bench; refused unless page, tables and figures can be built."""
    content = read_json(folder / RESULTS, "results")
    with _usable(folder / RESULTS, "results"):
        _protocol(content["protocol"])
        for figure in [*content["charts"], *content["pictures"]]:
            file_name(figure["name"])
        results_page(content)
    return content


def read_times(folder: Path) -> dict[str, Any]:
    """Read the tables of times, if any were measured."""
    content: dict[str, Any] = {"machine": {}, "tables": [], "missing": {}}
    if not (folder / TIMES_FILE).is_file():
        return content
    content = read_json(folder / TIMES_FILE, "times")
    with _usable(folder / TIMES_FILE, "times"):
        _ = [markdown_table(table_from_plain(plain)) for plain in content["tables"]]
        _ = [why.splitlines()[0] for why in content["missing"].values()]
        _ = content["machine"].items()
    return content


@contextmanager
def _usable(path: Path, kind: str) -> Iterator[None]:
    """Refuse content that cannot be used."""
    try:
        yield
    except UNUSABLE as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:LONGEST_REASON]
        raise ArtefactError(
            f"{path} cannot be used as {kind}: {reason}.\n"
            "  It was edited or damaged: restore it, or run splatcert bench again."
        ) from error


def make_results(
    bench: BenchStudies, settings: Mapping[str, str], unfinished: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """All results of the studies, as plain values."""
    small = [study for study in bench.studies if too_small(study)]
    missing = {study.key: f"has only {len(study)} held-out views" for study in small}
    tables = _make(TABLES, bench, missing)
    charts = _make(CHARTS, bench, missing)
    panels = _make(PANELS, bench, missing)
    kept = sorted((s for s in bench.studies if s not in small), key=lambda study: study.key)
    return {
        "format": FORMAT,
        "version": VERSION,
        "protocol": _plain_protocol(bench.protocol),
        "settings": dict(settings),
        "tables": [table_to_plain(table) for table in tables],
        "charts": [asdict(chart) for chart in charts],
        "pictures": [{"name": p.name, "title": p.title, "caption": p.caption} for p in panels],
        "missing": missing,
        **({"unfinished": dict(unfinished)} if unfinished else {}),
        "studies": [_plain_study(bench, study) for study in kept],
    }


def make_times(bench: BenchStudies, machine: Mapping[str, object]) -> dict[str, Any]:
    """The tables of times, and the machine they were measured on."""
    missing: dict[str, str] = {}
    tables = _make(TIMES, bench, missing)
    return {
        "format": TIMES_FORMAT,
        "version": VERSION,
        "machine": dict(machine),
        "tables": [table_to_plain(table) for table in tables],
        "missing": missing,
    }


def write_tables(folder: Path, tables: Sequence[Any]) -> None:
    """Every table as a Markdown and a LaTeX file."""
    output_folder(folder)
    for table in map(table_from_plain, tables):
        write_text_whole(folder / f"{table.name}.md", markdown_table(table))
        write_text_whole(folder / f"{table.name}.tex", latex_table(table))


def write_figures(
    folder: Path, results: Mapping[str, Any], bench: BenchStudies | None = None
) -> None:
    """Draw every chart from its numbers and, if their maps are given, the pictures."""
    from splatcert_bench.site.figures import write_charts, write_panel

    output_folder(folder)
    write_charts(folder, results["charts"])
    if bench is not None:
        for picture in results["pictures"]:
            write_panel(folder / f"{picture['name']}.png", PANELS[picture["name"]](bench))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write plain values in a form that gives small diffs."""
    output_folder(path.parent)
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_text_whole(path, _short_lists(text) + "\n")


def read_json(path: Path, kind: str) -> dict[str, Any]:
    """Read results or times that were written here."""
    if not path.exists():
        raise ArtefactError(
            f"there are no {kind} at {path}.\n  Pass a folder that splatcert bench wrote."
        )
    content = schema.read_json(path, f"table of {kind}", MAX_BYTES, raises=ArtefactError)
    found = (content.get("format"), content.get("version")) if isinstance(content, dict) else None
    if found != (f"splatcert {kind}", VERSION):
        raise ArtefactError(
            f"{path} holds {str(found)[:LONGEST_REASON]}, not {kind} of version {VERSION}.\n"
            "  Pass a folder written by this version of splatcert bench."
        )
    return content


def _write_all(
    folder: Path, results: dict[str, Any], times: dict[str, Any], bench: BenchStudies
) -> None:
    """Write tables, page and, last because they require Matplotlib, figures."""
    write_tables(folder / "tables", [*results["tables"], *times["tables"]])
    write_text_whole(folder / "results.md", results_page(results, times, figures="figures"))
    write_figures(folder / "figures", results, bench)


def _make(
    makers: Mapping[str, Callable[[BenchStudies], Made]],
    bench: BenchStudies,
    missing: dict[str, str],
) -> list[Made]:
    """What can be made; `missing` gets the reasons for the rest."""
    made = []
    for name, maker in makers.items():
        try:
            made.append(maker(bench))
        except InputError as error:
            missing[name] = str(error)
    return made


def _plain_protocol(protocol: Protocol) -> dict[str, Any]:
    plain = asdict(protocol)
    return {
        name: str(value) if name in ("alpha", "beta") else value for name, value in plain.items()
    }


def _protocol(plain: Mapping[str, Any]) -> Protocol:
    alpha, beta = (parse_level(plain[name], name) for name in ("alpha", "beta"))
    counts = {name: int(value) for name, value in plain.items() if name not in ("alpha", "beta")}
    for name, count in counts.items():
        least, most = (0, LARGEST_SEED) if name == "seed" else (1, LARGEST_COUNT)
        if not least <= count <= most:
            raise ArtefactError(f"{name} must be {least} to {most}, got {count}")
    return Protocol(alpha, beta, **counts)


def _plain_study(bench: BenchStudies, study: Study) -> dict[str, Any]:
    """The identity of a study, and the per-view numbers that the main tables use."""
    evidence = bench.evidence(study.backbone, study.centre)
    methods = evidence.somewhere(*KEPT)
    scales = {m: evidence.scale(m, study) for m in methods if evidence.can(m, study)}
    values = {f"score {name}": scale.scores for name, scale in scales.items()}
    values |= {f"mean {name}": scale.means for name, scale in scales.items()}
    return {
        "key": study.key,
        "scene": study.scene,
        "family": study.family,
        "backbone": study.backbone,
        "centre": study.centre,
        "settings": dict(sorted(study.settings.items())),
        "facts": {n: v for n, v in sorted(study.facts.items()) if not n.startswith(TIMED)},
        "hashes": dict(sorted(study.hashes.items())),
        "sources": list(evidence.prediction(study).sources) if "full" in scales else [],
        "chosen": {
            m: [c.map, str(c.weight)]
            for m in ("gsu", "gavis", "ensemble")
            if m in scales
            for c in [evidence.choice(m, study)]
        },
        "views": list(study.names),
        "pixels": study.pixels.tolist(),
        "psnr": [round(x, 4) if math.isfinite(x) else None for x in study.psnr.tolist()],
        "values": {name: array.tolist() for name, array in values.items()},
    }


def _short_lists(text: str) -> str:
    """Lists of numbers and words on one line each, for one line per row."""
    return re.sub(r"\[\s*([^\[\]{}]*?)\s*\]", _one_line, text)


def _one_line(match: re.Match[str]) -> str:
    return "[" + re.sub(r",\n\s*", ", ", match.group(1)) + "]"
