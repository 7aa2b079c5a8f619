# SPDX-License-Identifier: Apache-2.0
"""The paper's own figures, shown beside ours: at its resolution, on its scenes and machine."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from splatcert_bench.tables.table import Figure


@cache
def published() -> dict[str, Any]:
    """Everything in `paper.json`."""
    return json.loads(files("splatcert_bench.tables").joinpath("paper.json").read_text())


def paper(table: str, row: str, column: str) -> Figure | None:
    """One figure of a table, by the table's label; None if the paper has none.

    A column "saving" takes its interval from the columns low and high, if they exist.
    """
    known = published()["tables"][table]
    numbers = known["rows"].get(row, {}).get("numbers")
    if numbers is None:
        return None
    found = dict(zip(known["columns"], numbers, strict=True))
    return _figure(found, column)


def paper_text(passage: str, column: str) -> Figure | None:
    """One figure of the running text."""
    known = published()["text"][passage]
    return _figure(dict(zip(known["columns"], known["numbers"], strict=True)), column)


def paper_power(passage: str) -> Figure:
    """A figure of the running text that is written with a power of ten."""
    mantissa, exponent = published()["text"][passage]["numbers"]
    return Figure(float(f"{mantissa}e{exponent}"))


def paper_range(table: str, column: str) -> str:
    """The smallest and the largest figure of a column, as text."""
    rows = published()["tables"][table]["rows"]
    values = [f.value for row in rows if (f := paper(table, row, column)) is not None]
    numbers = sorted(value for value in values if isinstance(value, float | int))
    return f"{numbers[0]}–{numbers[-1]}"


def _figure(found: dict[str, Any], column: str) -> Figure | None:
    value = found.get(column)
    if value is None:
        return None
    if column in ("saving", "gap"):
        return Figure(value, found.get("low"), found.get("high"))
    return Figure(value)
