# SPDX-License-Identifier: Apache-2.0
"""A table as an object: what it says, before it is Markdown, LaTeX or JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from splatcert.errors import InputError

Value = float | int | str | None

PAPER_NOTE = "In brackets the paper's own figures, at its resolution and with its backbone."


class TableError(InputError):
    """A table whose parts do not fit together."""


@dataclass(frozen=True)
class Column:
    """A heading and how its numbers are written."""

    name: str
    unit: str = ""
    digits: int = 1
    scientific: bool = False


@dataclass(frozen=True)
class Figure:
    """A number or a word, with its interval if it has one."""

    value: Value
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Cell:
    """Ours, and beside it the paper's own."""

    ours: Figure
    paper: Figure | None = None
    best: bool = False


@dataclass(frozen=True)
class Row:
    """A label and one cell a column."""

    label: str
    cells: tuple[Cell, ...]
    summary: bool = False
    """Set apart from the rows above, as means are."""
    digits: int | None = None
    """Of this row's numbers, if not those of the columns."""


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column holds the rows' labels."""

    name: str
    """Of its files, and of its heading's anchor."""
    title: str
    row_head: str
    """Heading of the labels."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    label: str = ""
    """LaTeX label of the table of the paper it answers to."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise TableError(
                    f"table {self.name}: row {row.label!r} has {len(row.cells)} cells "
                    f"under {len(self.columns)} columns"
                )

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and whose the figures in brackets are if there are any."""
        quoted = any(cell.paper is not None for row in self.rows for cell in row.cells)
        return (*self.notes, PAPER_NOTE) if quoted else self.notes


def column_of(row: Row, column: Column) -> Column:
    """How a column's numbers are written in one row."""
    return column if row.digits is None else replace(column, digits=row.digits)


def written(figure: Figure | None, column: Column) -> str:
    """A figure in characters: rounded, with its interval in brackets; a dash if unknown."""
    if figure is None or figure.value is None or _is_unknown(figure.value):
        return "–"
    text = _number(figure.value, column)
    if figure.low is None or figure.high is None:
        return text
    return f"{text} [{_number(figure.low, column)}, {_number(figure.high, column)}]"


def _number(value: float | int | str, column: Column) -> str:
    if isinstance(value, str | int):
        return f"{value}"
    text = f"{value:.1e}" if column.scientific and value else f"{value:.{column.digits}f}"
    negative = text.startswith("-") and float(text) != 0
    return ("\N{MINUS SIGN}" if negative else "") + text.removeprefix("-")


def _is_unknown(value: float | int | str) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
