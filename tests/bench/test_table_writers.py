# SPDX-License-Identifier: Apache-2.0
"""One table, three forms: Markdown, LaTeX and JSON, character by character."""

from __future__ import annotations

import json

import pytest

from splatcert_bench.site.writers import latex_table, markdown_table
from splatcert_bench.tables.table import (
    Cell,
    Column,
    Figure,
    Row,
    Table,
    TableError,
    table_from_plain,
    table_to_plain,
    written,
)

TABLE = Table(
    name="small",
    title="Width & coverage",
    label="tab:small",
    row_head="Scale",
    columns=(Column("Saving", "%"), Column("Error", scientific=True), Column("Wins")),
    rows=(
        Row(
            "Ours, a × b̃",
            (
                Cell(Figure(22.14, 17.7, 27.06), Figure(22.1, 17.7, 27.1), best=True),
                Cell(Figure(1.1e-6)),
                Cell(Figure("7/13")),
            ),
        ),
        Row("Mean", (Cell(Figure(-0.04)), Cell(Figure(None)), Cell(Figure(13))), True, digits=2),
    ),
    notes=("A note of 10%.",),
)


def test_markdown():
    assert markdown_table(TABLE) == (
        "| Scale | Saving (%) | Error | Wins |\n"
        "| --- | --: | --: | --: |\n"
        "| Ours, a × b̃ | **22.1 [17.7, 27.1]** *(22.1 [17.7, 27.1])* | 1.1e-06 | 7/13 |\n"
        "| **Mean** | −0.04 | – | 13 |\n"
        "\n"
        "A note of 10%. Figures in brackets are the paper's own, at its resolution and with its "
        "backbone.\n"
    )


def test_latex():
    text = latex_table(TABLE)
    assert (
        r"\caption{Width \& coverage. A note of 10\%. Figures in brackets are the paper's" in text
    )
    assert r"\begin{tabular}{lrrr}" in text
    ours = r"\textbf{22.1 [17.7, 27.1]} {\footnotesize\textit{(22.1 [17.7, 27.1])}}"
    assert rf"Ours, a $\times$ $\widetilde b$ & {ours} & 1.1e-06 & 7/13 \\" in text
    assert "\\midrule\nMean & $-$0.04 & -- & 13 \\\\\n\\bottomrule" in text
    assert text.isascii()


def test_json_keeps_every_bit():
    plain = json.loads(json.dumps(table_to_plain(TABLE), allow_nan=False))
    assert table_from_plain(plain) == TABLE
    unknown = Table("n", "t", "s", (Column("c"),), (Row("r", (Cell(Figure(float("inf"))),)),))
    assert table_to_plain(unknown)["rows"][0]["cells"] == [{"ours": [None]}]


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.04, 1, "0.0"), (-0.04, 1, "0.0"), (-0.06, 1, "−0.1"), (3, 4, "3"), (float("nan"), 1, "–")],
)
def test_numbers_are_written_without_a_negative_nothing(value, digits, text):
    assert written(Figure(value), Column("c", digits=digits)) == text


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(TableError, match="'r' has 2 cells under 1 columns"):
        Table("n", "t", "s", (Column("c"),), (Row("r", (Cell(Figure(1)), Cell(Figure(2)))),))
    with pytest.raises(TableError, match="not a table"):
        table_from_plain({"name": "x"})
