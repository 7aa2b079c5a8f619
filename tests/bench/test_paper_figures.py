# SPDX-License-Identifier: Apache-2.0
"""The paper's figures that we print beside ours are those of the paper's source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from splatcert_bench.tables.paper import paper, paper_text, published

SOURCES = [
    source
    for parent in Path(__file__).resolve().parents
    for source in sorted((parent / "shared" / "paper").glob("*.t*x*"))
]


@pytest.fixture(scope="module")
def source():
    if not SOURCES:
        pytest.skip("the paper's source is not beside the project")
    return SOURCES[0].read_text()


def numbers(text):
    """Every number and every yes or no, in order."""
    text = re.sub(r"Mip-NeRF~360|\{[A-Z]\w*-?\w*:[^}]*\}|10\^|\\times|[${}]", " ", text)
    found = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?|\byes\b|\bno\b", text)
    return [text if text in ("yes", "no") else float(text) for text in found]


def rows(source, label):
    """(label, numbers) of the rows of one table, or of all tables that have no label."""
    if label.startswith("tab:"):
        end = source.index("\\end{table}", source.index(f"\\label{{{label}}}"))
        source = source[source.index(f"\\label{{{label}}}") : end]
    for line in re.split(r"\\\\", source):
        first, _, rest = re.sub(r"\s+", " ", line).partition("&")
        yield first, numbers(rest)


@pytest.mark.parametrize("label", published()["tables"])
def test_every_number_of_a_table_is_the_papers(source, label):
    known = list(rows(source, label))
    for name, row in published()["tables"][label]["rows"].items():
        expected = [number for number in row["numbers"] if number is not None]
        matches = [found for first, found in known if row["latex"] in first and found == expected]
        assert matches, f"{label}, {name}: {expected}"


@pytest.mark.parametrize("passage", published()["text"])
def test_every_number_of_the_text_is_the_papers(source, passage):
    known = published()["text"][passage]
    text = re.sub(r"\s+", " ", source)
    following = text[text.index(known["near"]) + len(known["near"]) - 5 :][:400]
    found = numbers(following)[: len(known["numbers"]) + 3]
    assert [n for n in known["numbers"] if n not in found] == []


def test_figures_are_found_by_name():
    assert paper("tab:panel-a", "full", "saving").value == 22.1
    assert paper("tab:panel-a", "full", "saving").low == 17.7
    assert paper("tab:panel-a", "constant", "saving").low is None
    assert paper("tab:per-scene", "meeting_room", "full") is None
    assert paper_text("full-gsu", "p").value == 0.0225
