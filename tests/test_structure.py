# SPDX-License-Identifier: Apache-2.0
"""The size and shape of the source tree: what a newcomer has to hold in mind, counted."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import splatcert

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
CORE = SOURCE / "splatcert"
CORE_LINES = 36_750
"""A feature that needs more raises this in its own commit, by no more than it needs."""
FILE_LINES, FOLDER_MODULES = 300, 12
PATH_FILES, PATH_LINES = 8, 1_100
ALGORITHM_LINES = 120
RUN = 6
"""Identical lines in a row that count as a duplicate."""
PACKAGES = ["splatcert", "splatcert_bench", "splatcert_viewer"]


def modules(package: str) -> list[Path]:
    return sorted((SOURCE / package).rglob("*.py"))


def line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_the_core_is_small_enough_to_read():
    assert sum(map(line_count, modules("splatcert"))) <= CORE_LINES


@pytest.mark.parametrize("package", PACKAGES)
def test_no_file_is_longer_than_a_few_screens(package):
    sizes = {str(path.relative_to(SOURCE)): line_count(path) for path in modules(package)}
    assert {name: size for name, size in sizes.items() if size > FILE_LINES} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_has_more_modules_than_can_be_overlooked(package):
    counts: dict[str, int] = defaultdict(int)
    for path in modules(package):
        counts[str(path.parent.relative_to(SOURCE))] += path.name != "__init__.py"
    assert {name: count for name, count in counts.items() if count > FOLDER_MODULES} == {}


@pytest.mark.parametrize("place", ["src", "native", "tests", "benchmarks", "examples", "tools"])
def test_every_source_file_names_its_licence_first(place):
    """On the first line, or below the line that names a script's interpreter."""
    sources = {".py", ".pyi", ".cpp", ".hpp", ".wgsl", ".html", ".css", ".js", ".sh"}
    files = [path for path in (ROOT / place).rglob("*") if path.suffix in sources]
    heads = {path: path.read_text(encoding="utf-8").splitlines()[:2] for path in files}
    without = [path for path, head in heads.items() if not re.search("SPDX", " ".join(head))]
    assert files and without == []


def reading_path() -> list[str]:
    """The files named in the numbered list under "Reading path" in ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = re.split(r"^#+ ", text.split("Reading path\n", 1)[1], maxsplit=1, flags=re.M)[0]
    entries = re.findall(r"^\d+\. (?:.+\n?)+?(?=^\d+\. |\n|\Z)", section, flags=re.M)
    return [name for entry in entries for name in re.findall(r"`([\w/]+\.\w+)`", entry)]


def test_the_reading_path_is_short():
    named = reading_path()
    assert [name for name in named if not (CORE / name).is_file()] == []
    assert 0 < len(named) <= PATH_FILES
    assert sum(line_count(CORE / name) for name in named) <= PATH_LINES


def test_the_algorithm_is_on_one_screen():
    assert line_count(CORE / "pipeline.py") <= ALGORITHM_LINES


def code_lines(path: Path) -> list[tuple[int, str]]:
    """Numbered lines without their indentation; no blanks, comments, imports, lone brackets."""
    text = path.read_text(encoding="utf-8")
    imports = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [
        (number, line)
        for number, line in lines
        if number not in imports and not line.startswith("#") and re.search(r"\w", line)
    ]


def repeated(files: list[Path]) -> Iterator[str]:
    """Pairs of places that share a run of lines, each named by where it begins."""
    places: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    listed = {path: code_lines(path) for path in files}
    for path, lines in listed.items():
        texts = [text for _, text in lines]
        for at in range(len(texts) - RUN + 1):
            places[tuple(texts[at : at + RUN])].append((path, at))
    pairs = {
        pair
        for found in places.values()
        for pair in combinations(found, 2)
        if pair[0][0] != pair[1][0] or pair[1][1] - pair[0][1] >= RUN
    }
    for (one, at), (other, there) in sorted(pairs):
        if ((one, at - 1), (other, there - 1)) not in pairs:  # else the run began earlier
            names = one.relative_to(SOURCE), other.relative_to(SOURCE)
            yield f"{names[0]}:{listed[one][at][0]} = {names[1]}:{listed[other][there][0]}"


def test_a_repeated_run_is_found_whatever_stands_between(tmp_path, monkeypatch):
    """The checker itself: layout, comments and imports do not hide a copy or make one."""
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    body = [f"value_{k} = compute({k})" for k in range(RUN)]
    (tmp_path / "a.py").write_text("import os\n\n" + "\n".join(body) + "\n")
    indented = "".join(f"    {line}\n\n    # why\n" for line in body)
    (tmp_path / "b.py").write_text(f"def same():\n{indented}")
    (tmp_path / "c.py").write_text("\n".join(body[:-1]) + "\n")
    files = sorted(tmp_path.glob("*.py"))
    assert list(repeated(files)) == ["a.py:3 = b.py:2"]
    (tmp_path / "b.py").write_text("\n".join(["value = 1"] * (RUN + 3)) + "\n")
    (tmp_path / "c.py").write_text("from x import (\n" + "    one,\n" * 12 + ")\n")
    assert list(repeated(files)) == []


def test_no_run_of_lines_stands_in_two_places():
    files = [path for path in sorted(SOURCE.rglob("*")) if path.suffix in (".py", ".pyi")]
    assert list(repeated(files)) == []


def classes_in(hint: Any) -> set[type]:
    """Our own classes in a type, also as the argument of another."""
    found = {one for part in get_args(hint) for one in classes_in(part)}
    ours = isinstance(hint, type) and hint.__module__.startswith("splatcert")
    return found | {hint} if ours else found


def test_what_public_functions_return_is_public():
    public = {name: getattr(splatcert, name) for name in splatcert.__all__}
    hidden = {
        f"{name} returns {one.__name__}"
        for name, value in public.items()
        if inspect.isfunction(value)
        for one in classes_in(get_type_hints(value, localns=public).get("return"))
        if one not in public.values()
    }
    assert hidden == set()
