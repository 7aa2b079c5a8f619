# SPDX-License-Identifier: Apache-2.0
"""A predictor in words: the scenes it learned from, each predicted without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from splatcert.console import say, visible
from splatcert.difficulty.predictor import ViewPredictor

if TYPE_CHECKING:
    from splatcert.difficulty.predictor import ViewPredictor

HEADINGS = ("scene", "views", "rank corr.", "a b~", "a only", "b~ only", "oracle a")


@dataclass(frozen=True)
class Card:
    """What there is to print."""

    table: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


def read_card(card: Mapping[str, Any]) -> Card:
    """The card of a predictor; in a file from elsewhere anything may be missing or false."""
    rows = [HEADINGS, *(_row(row) for row in card["scenes"])]
    if len(rows) > 2:
        mean = {"scene": "mean", "spearman": card["mean_spearman"], "saving": card["mean_saving"]}
        rows.append(_row(mean))
    sizes = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    table = []
    for row in rows:
        first, *rest = (cell.rjust(size) for cell, size in zip(row, sizes, strict=True))
        table.append(f"  {row[0].ljust(len(first))}  {'  '.join(rest)}")
    facts = {
        "saving": f"of width against a constant scale; left out while learning: {card['left_out']}",
        "learned": f"from {card['views']} views",
    }
    if dropped := sum(int(row["dropped"]) for row in card["scenes"]):
        facts["dropped"] = (
            f"{dropped} views without a target: no photo, no pixel that counts, no error"
        )
    return Card(tuple(table), facts)


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    savings = (f"{100 * row['saving'][name]:.1f}%" for name in ("full", "a", "b", "oracle"))
    scene, views = visible(str(row["scene"])), visible(str(row.get("views", "")))
    return scene, views, f"{row['spearman']:.2f}", *savings


def show(predictor: ViewPredictor, card: Card) -> None:
    """The table of its card, and what was chosen."""
    for line in card.table:
        print(line)
    for label, text in card.facts.items():
        say(label, text)
    say(
        "chosen",
        f"ridge {predictor.ridge:g}, lambda_a {predictor.lambda_a}, lambda_b "
        f"{predictor.lambda_b}, for beta = {predictor.beta}",
    )
    say("identity", predictor.sha256)
