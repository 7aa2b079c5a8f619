# SPDX-License-Identifier: Apache-2.0
"""`splatcert learn`: a view predictor from source scenes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.commands.options import OptionError
from splatcert.config import LearnConfig
from splatcert.console import say

if TYPE_CHECKING:
    from splatcert.view.predictor import ViewPredictor

HEADINGS = ("scene", "views", "rank corr.", "a b~", "a only", "b~ only", "oracle a")


@dataclass(frozen=True, kw_only=True)
class Learn:
    """Learn how hard a view is from scenes that have been certified; print its card.

    Labels of training views are learned from unless told otherwise, so that every source
    scene can still be certified with the result.
    """

    sources: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="CERT|VIEWS")]
    """Certificates, or their views.npz."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")]
    """The predictor, a JSON file."""
    config: tyro.conf.OmitArgPrefixes[LearnConfig] = field(default_factory=LearnConfig)
    json: bool = False
    """Print the predictor's card as JSON instead of a table."""

    def run(self) -> None:
        """Read the views, learn, write, and show the card."""
        from splatcert.evaluate.views import SceneViews
        from splatcert.view.learn import learn_predictor

        if not self.sources:
            raise OptionError("give at least one certificate or views.npz to learn from.")
        scenes = [SceneViews.load(views_file(path)) for path in self.sources]
        predictor = learn_predictor(scenes, self.config)
        self.output.parent.mkdir(parents=True, exist_ok=True)
        predictor.save(self.output)
        if self.json:
            print(json.dumps({**predictor.card, "sha256": predictor.sha256}, indent=2))
            return
        show(predictor)
        say("wrote", str(self.output))
        say("use it", f"splatcert certify DATA MODEL -o CERT --predictor {self.output}")


def views_file(path: Path) -> Path:
    """The per-view numbers of a certificate's folder, or the file itself."""
    from splatcert.certificate.store import VIEWS

    return path / VIEWS if path.is_dir() else path


def show(predictor: ViewPredictor) -> None:
    """The card as a table: each scene predicted without it."""
    card = predictor.card
    rows = [HEADINGS, *(table_row(row) for row in card["scenes"])]
    if len(rows) > 2:
        mean = {"scene": "mean", "spearman": card["mean_spearman"], "saving": card["mean_saving"]}
        rows.append(table_row(mean))
    sizes = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        first, *rest = (cell.rjust(size) for cell, size in zip(row, sizes, strict=True))
        print(f"  {row[0].ljust(len(first))}  {'  '.join(rest)}")
    say("saving", "of width against a constant scale, predicted by " + str(card["left_out"]))
    say("learned", f"from {card['views']} views at beta = {predictor.beta}")
    if dropped := sum(row["dropped"] for row in card["scenes"]):
        say(
            "dropped", f"{dropped} views without a target: no photo, no pixel that counts, no error"
        )
    say(
        "chosen",
        f"ridge {predictor.ridge:g}, lambda_a {predictor.lambda_a}, lambda_b {predictor.lambda_b}",
    )
    say("identity", predictor.sha256)


def table_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One scene's figures as they are printed."""
    savings = (f"{100 * row['saving'][name]:.1f}%" for name in ("full", "a", "b", "oracle"))
    return (str(row["scene"]), str(row.get("views", "")), f"{row['spearman']:.2f}", *savings)
