# SPDX-License-Identifier: Apache-2.0
"""Tables as Markdown."""

from __future__ import annotations

from splatcert.evaluate.table import Cell, Column, Row, Table, column_of, written


def markdown_table(table: Table) -> str:
    """A pipe table with its notes; the paper's figures in italics and brackets."""
    heads = [table.row_head, *(_head(column) for column in table.columns)]
    lines = [_line(heads), _line(["---", *("--:" for _ in table.columns)])]
    lines += [_line(_row(row, table.columns)) for row in table.rows]
    return no_html("\n".join([*lines, "", " ".join(table.remarks)]).rstrip()) + "\n"


def _head(column: Column) -> str:
    return f"{column.name} ({column.unit})" if column.unit else column.name


def _row(row: Row, columns: tuple[Column, ...]) -> list[str]:
    label = f"**{row.label}**" if row.summary else row.label
    return [
        label,
        *(_cell(cell, column_of(row, c)) for cell, c in zip(row.cells, columns, strict=True)),
    ]


def _cell(cell: Cell, column: Column) -> str:
    ours = written(cell.ours, column)
    ours = f"**{ours}**" if cell.best else ours
    return ours if cell.paper is None else f"{ours} *({written(cell.paper, column)})*"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(map(plain_cell, cells)) + " |"


def plain_cell(text: str) -> str:
    """Text that stays in its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def no_html(text: str) -> str:
    """Markdown that holds no element: names in it come from files."""
    return text.replace("<", "&lt;")
