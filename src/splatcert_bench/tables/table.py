# SPDX-License-Identifier: Apache-2.0
"""A table as an object, before it becomes Markdown, LaTeX or JSON."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from splatcert.errors import InputError

Value = float | int | str | None
PAPER_NOTE = "Figures in brackets are the paper's own, at its resolution and with its backbone."


class TableError(InputError):
    """A table whose parts do not fit together, or that cannot be read."""


@dataclass(frozen=True)
class Column:
    """A heading and the format of its numbers."""

    name: str
    unit: str = ""
    digits: int = 1
    scientific: bool = False


@dataclass(frozen=True)
class Figure:
    """A number or a word, with its interval if there is one."""

    value: Value
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Cell:
    """Our figure, and the paper's own beside it."""

    ours: Figure
    paper: Figure | None = None
    best: bool = False


@dataclass(frozen=True)
class Row:
    """A label and one cell per column."""

    label: str
    cells: tuple[Cell, ...]
    summary: bool = False
    """Set apart from the rows above, for example a mean."""
    digits: int | None = None
    """Digits of this row's numbers. Default: as in the columns."""


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column holds the rows' labels."""

    name: str
    """Name of its files and of its heading's anchor."""
    title: str
    row_head: str
    """Heading of the labels."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    label: str = ""
    """LaTeX label of the paper's table that it corresponds to."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise TableError(
                    f"table {self.name}: row {row.label!r} has {len(row.cells)} cells "
                    f"under {len(self.columns)} columns"
                )

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and what figures in brackets are, if there are any."""
        quoted = any(cell.paper is not None for row in self.rows for cell in row.cells)
        return (*self.notes, PAPER_NOTE) if quoted else self.notes


def column_of(row: Row, column: Column) -> Column:
    """The format of a column's numbers in one row."""
    return column if row.digits is None else replace(column, digits=row.digits)


def written(figure: Figure | None, column: Column) -> str:
    """A figure as text: rounded, with its interval in brackets; a dash if unknown."""
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


FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
MOST_DIGITS = 20


def table_to_plain(table: Table) -> dict[str, Any]:
    """A table as plain JSON values."""
    return {
        "name": table.name,
        "title": table.title,
        "label": table.label,
        "row_head": table.row_head,
        "columns": [asdict(column) for column in table.columns],
        "rows": [
            {
                "label": row.label,
                "cells": [_cell(cell) for cell in row.cells],
                **({"summary": True} if row.summary else {}),
                **({} if row.digits is None else {"digits": row.digits}),
            }
            for row in table.rows
        ],
        "notes": list(table.notes),
    }


def table_from_plain(plain: Any) -> Table:
    """Read a table; its name must be a plain file name."""
    try:
        return Table(
            name=file_name(plain["name"]),
            title=_text(plain["title"]),
            label=_text(plain["label"]),
            row_head=_text(plain["row_head"]),
            columns=tuple(map(_read_column, plain["columns"])),
            rows=tuple(
                Row(
                    _text(row["label"]),
                    tuple(map(_read_cell, row["cells"])),
                    bool(row.get("summary", False)),
                    _digits(row.get("digits")),
                )
                for row in plain["rows"]
            ),
            notes=tuple(map(_text, plain["notes"])),
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise TableError(f"this is not a table of splatcert: {error!r}") from error


def file_name(name: Any) -> str:
    """Check the name of a table or figure, which becomes a file name."""
    if not isinstance(name, str) or not FILE_NAME.fullmatch(name):
        raise TableError(f"{str(name)[:80]!r} is not a valid name of a table or figure")
    return name


def _read_column(plain: Any) -> Column:
    column = Column(**plain)
    _digits(column.digits)
    return replace(column, name=_text(column.name), unit=_text(column.unit))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TableError(f"expected a text, got {str(value)[:40]!r}")
    return value


def _digits(value: Any) -> int | None:
    if value is not None and not (isinstance(value, int) and 0 <= value <= MOST_DIGITS):
        raise TableError(f"digits must be 0 to {MOST_DIGITS}, got {str(value)[:40]!r}")
    return value


def _cell(cell: Cell) -> dict[str, Any]:
    plain: dict[str, Any] = {"ours": _figure(cell.ours)}
    if cell.paper is not None:
        plain["paper"] = _figure(cell.paper)
    if cell.best:
        plain["best"] = True
    return plain


def _read_cell(plain: Any) -> Cell:
    paper = _read_figure(plain["paper"]) if "paper" in plain else None
    return Cell(_read_figure(plain["ours"]), paper, bool(plain.get("best", False)))


def _read_figure(plain: Any) -> Figure:
    figure = Figure(*plain)
    if not isinstance(figure.value, str | int | float | None) or not all(
        isinstance(end, int | float | None) for end in (figure.low, figure.high)
    ):
        raise TableError(f"expected a number or a word, got {str(plain)[:40]!r}")
    return figure


def _figure(figure: Figure) -> list[Any]:
    """[value] or [value, low, high]; numbers that are not finite become null."""
    parts = [figure.value, figure.low, figure.high]
    parts = parts[:1] if figure.low is None else parts
    return [None if isinstance(x, float) and not math.isfinite(x) else x for x in parts]
