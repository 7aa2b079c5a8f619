# SPDX-License-Identifier: Apache-2.0
"""Tables as LaTeX, for booktabs, and as Markdown."""

from __future__ import annotations

import re

from splatcert_bench.tables.table import Cell, Column, Row, Table, column_of, written

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
        _latex_line([escaped(head) for head in heads]),
        r"\midrule",
    ]
    for place, row in enumerate(table.rows):
        if place and row.summary and not table.rows[place - 1].summary:
            lines.append(r"\midrule")
        columns = [column_of(row, column) for column in table.columns]
        cells = [_latex_cell(cell, c) for cell, c in zip(row.cells, columns, strict=True)]
        lines.append(_latex_line([escaped(row.label), *cells]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def escaped(text: str) -> str:
    """Text with LaTeX's special characters and our symbols written as commands."""
    return _ANY.sub(lambda match: _SYMBOLS[match.group()], text)


def _head(column: Column) -> str:
    return f"{column.name} ({column.unit})" if column.unit else column.name


def _latex_cell(cell: Cell, column: Column) -> str:
    ours = escaped(written(cell.ours, column))
    ours = rf"\textbf{{{ours}}}" if cell.best else ours
    if cell.paper is None:
        return ours
    return rf"{ours} {{\footnotesize\textit{{({escaped(written(cell.paper, column))})}}}}"


def _latex_line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def markdown_table(table: Table) -> str:
    """A pipe table with its notes; the paper's figures in italics and brackets."""
    heads = [table.row_head, *(_head(column) for column in table.columns)]
    lines = [_line(heads), _line(["---", *("--:" for _ in table.columns)])]
    lines += [_line(_row(row, table.columns)) for row in table.rows]
    return no_html("\n".join([*lines, "", " ".join(table.remarks)]).rstrip()) + "\n"


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
    """Text that stays within its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def no_html(text: str) -> str:
    """Markdown without HTML elements, because names in it come from files."""
    return text.replace("<", "&lt;")
