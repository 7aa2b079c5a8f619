# SPDX-License-Identifier: Apache-2.0
"""Tables as LaTeX, for booktabs."""

from __future__ import annotations

import re

from splatcert.evaluate.table import Cell, Column, Table, column_of, written

_SYMBOLS = {
    "b̃": r"$\widetilde b$",
    "b̄": r"$\overline b$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "δ": r"$\delta$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≥": r"$\ge$",
    "≤": r"$\le$",
    "\N{MINUS SIGN}": "$-$",
    "–": "--",
    "→": r"$\to$",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
}
_ANY = re.compile("|".join(map(re.escape, sorted(_SYMBOLS, key=len, reverse=True))))


def latex_table(table: Table) -> str:
    """A float with caption and label; the paper's figures in small brackets."""
    heads = [table.row_head, *(_head(column) for column in table.columns)]
    lines = [
        r"\begin{table}",
        rf"\caption{{{escaped(' '.join([table.title + '.', *table.remarks]))}}}",
        rf"\label{{{table.label or 'tab:' + table.name}}}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        _line([escaped(head) for head in heads]),
        r"\midrule",
    ]
    for place, row in enumerate(table.rows):
        if place and row.summary and not table.rows[place - 1].summary:
            lines.append(r"\midrule")
        columns = [column_of(row, column) for column in table.columns]
        cells = [_cell(cell, c) for cell, c in zip(row.cells, columns, strict=True)]
        lines.append(_line([escaped(row.label), *cells]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def escaped(text: str) -> str:
    """Text with the characters that LaTeX reads as commands, and our symbols, written out."""
    return _ANY.sub(lambda match: _SYMBOLS[match.group()], text)


def _head(column: Column) -> str:
    return f"{column.name} ({column.unit})" if column.unit else column.name


def _cell(cell: Cell, column: Column) -> str:
    ours = escaped(written(cell.ours, column))
    ours = rf"\textbf{{{ours}}}" if cell.best else ours
    if cell.paper is None:
        return ours
    return rf"{ours} {{\footnotesize\textit{{({escaped(written(cell.paper, column))})}}}}"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
