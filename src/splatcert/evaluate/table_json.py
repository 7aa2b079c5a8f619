# SPDX-License-Identifier: Apache-2.0
"""Tables as plain JSON values and back; numbers keep every bit."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from splatcert.evaluate.table import Cell, Column, Figure, Row, Table, TableError


def table_to_plain(table: Table) -> dict[str, Any]:
    """What JSON can hold of a table, which is all of it."""
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
    """The table that was written."""
    try:
        return Table(
            name=plain["name"],
            title=plain["title"],
            label=plain["label"],
            row_head=plain["row_head"],
            columns=tuple(Column(**column) for column in plain["columns"]),
            rows=tuple(
                Row(
                    row["label"],
                    tuple(_read_cell(cell) for cell in row["cells"]),
                    row.get("summary", False),
                    row.get("digits"),
                )
                for row in plain["rows"]
            ),
            notes=tuple(plain["notes"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise TableError(f"this is no table that was written here: {error!r}") from error


def _cell(cell: Cell) -> dict[str, Any]:
    plain: dict[str, Any] = {"ours": _figure(cell.ours)}
    if cell.paper is not None:
        plain["paper"] = _figure(cell.paper)
    if cell.best:
        plain["best"] = True
    return plain


def _read_cell(plain: Any) -> Cell:
    paper = Figure(*plain["paper"]) if "paper" in plain else None
    return Cell(Figure(*plain["ours"]), paper, plain.get("best", False))


def _figure(figure: Figure) -> list[Any]:
    """[value] or [value, low, high]; what is not finite is unknown."""
    parts = [figure.value, figure.low, figure.high]
    parts = parts[:1] if figure.low is None else parts
    return [None if isinstance(x, float) and not math.isfinite(x) else x for x in parts]
