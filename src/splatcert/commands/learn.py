# SPDX-License-Identifier: Apache-2.0
"""`splatcert learn`: a view predictor from source scenes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from splatcert.config import LearnConfig
from splatcert.console import say
from splatcert.errors import OptionError


@dataclass(frozen=True, kw_only=True)
class Learn:
    """Train a view predictor on certified scenes, and print its card.

    By default only training views are used, so that every source scene can still be certified
    with the result.
    """

    sources: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="CERT|VIEWS")]
    """Certificates to learn from, or their views.npz."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")]
    """JSON file to write the predictor to."""
    config: tyro.conf.OmitArgPrefixes[LearnConfig] = field(default_factory=LearnConfig)
    json: bool = False
    """Print the predictor's card as JSON instead of a table."""

    def run(self) -> None:
        """Read the views, train, write, and print the card."""
        from splatcert.difficulty.views_file import SceneViews
        from splatcert.pipeline import learn
        from splatcert.report.words.describe import show_predictor

        if not self.sources:
            raise OptionError("pass at least one certificate or views.npz to learn from.")
        scenes = [SceneViews.load(views_file(path)) for path in self.sources]
        predictor = learn(scenes, self.config)
        self.output.parent.mkdir(parents=True, exist_ok=True)
        predictor.save(self.output)
        if self.json:
            print(json.dumps({**predictor.card, "sha256": predictor.sha256}, indent=2))
            return
        show_predictor(predictor)
        say("Wrote", str(self.output))
        say("Next", f"splatcert certify DATA MODEL -o CERT --predictor {self.output}")


def views_file(path: Path) -> Path:
    """The views.npz in a certificate's folder, or the file itself."""
    from splatcert.certificate.store import VIEWS

    return path / VIEWS if path.is_dir() else path
