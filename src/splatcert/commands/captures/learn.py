# SPDX-License-Identifier: Apache-2.0
"""`splatcert learn`: a view predictor, or the guide of the guided scale, from source scenes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.config import LearnConfig
from splatcert.console import say, show_table, stages
from splatcert.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from splatcert.config import FieldConfig
    from splatcert.difficulty.views_file import Views
    from splatcert.progress import Progress
    from splatcert.scales.guide_sources import GuideSource

SOURCES_OPTION: Any = tyro.conf.arg(metavar="CERT|VIEWS...", help_behavior_hint="(required)")


@dataclass(frozen=True, kw_only=True)
class Learn:
    """Train a view predictor on certified scenes, and print its card.

    By default only training views are used, so that every source scene can still be certified
    with the result.
    """

    sources: Annotated[tuple[Path, ...], tyro.conf.Positional, SOURCES_OPTION]
    """Certificates to learn from, or their views.npz."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")]
    """JSON file to write the predictor to."""
    guide: bool = False
    """Learn weights of the guided scale instead. Each capture and model must be beside its CERT."""
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
        if self.guide:
            self._learn_guide()
            return
        refuse_guided(self.sources)
        scenes = [SceneViews.load(views_file(path)) for path in self.sources]
        predictor = learn(scenes, self.config, common_field(self.sources))
        self.output.parent.mkdir(parents=True, exist_ok=True)
        predictor.save(self.output)
        if self.json:
            print(json.dumps({**predictor.card, "sha256": predictor.sha256}, indent=2))
            return
        show_predictor(predictor)
        say("Wrote", str(self.output))
        say("Next", f"splatcert certify DATA MODEL -o CERT --predictor {self.output}")

    def _learn_guide(self) -> None:
        from splatcert.difficulty.card import field_card
        from splatcert.scales.guide_learning import learn_guide

        views = self.config.views
        if self.config != LearnConfig(views=views):
            raise OptionError("with --guide, --views is the only option of the view predictor.")
        with stages() as on:
            guide = learn_guide([source_of(path, views, on) for path in self.sources])
        if (known := common_field(self.sources)) is not None:
            guide = replace(guide, card={**guide.card, "field": field_card(known)})
        self.output.parent.mkdir(parents=True, exist_ok=True)
        guide.save(self.output)
        if self.json:
            print(json.dumps({**guide.card, "sha256": guide.sha256}, indent=2))
            return
        rows = [
            (row["scene"], str(row["views"]), "" if (s := row["saving"]) is None else f"{s:.1%}")
            for row in guide.card["scenes"]
        ]
        show_table(("scene", "views", "saving left out"), rows, numbers=("views",))
        say("Chosen", f"power {guide.power:g}")
        say("SHA-256", guide.sha256)
        say("Wrote", str(self.output))
        say("Next", f"splatcert certify DATA MODEL -o CERT --scale guided --guide {self.output}")


def source_of(path: Path, views: Views, on: Progress) -> GuideSource:
    """The views of a certificate whose capture and model are beside it."""
    from splatcert.certificate.store import folder_of, read_content, remembered
    from splatcert.deploy import certified_capture, load_certificate
    from splatcert.scales.guide_sources import guide_source
    from splatcert.witnesses.album import Album

    folder = folder_of(path)
    record = read_content(folder)[1]
    data, model = remembered(folder, "data"), remembered(folder, "model")
    if data is None or model is None:
        raise OptionError(
            f"{folder}: its capture and model are not in the folder beside it.\n"
            "  --guide learns from photos: keep capture, model and certificate in one folder."
        )
    capture = certified_capture(record, data, model)
    photos, backend = capture.scene.training, record.renderer.backend
    fitted = load_certificate(folder, capture.splats, scene=capture.scene).fitted
    side = capture.training_side(record.config.field, backend, ())
    album = Album.of(photos, fitted, backend, on)
    held_out, known = capture.scene.held_out, ()
    if views == "held-out":
        known = held_out.reveal("source", held_out.with_photo, by="learn")
    return guide_source(record.scene.name, side, fitted, album, known, on)


def refuse_guided(paths: Sequence[Path]) -> None:
    """Refuse certificates of the guided scale: their views are about its shape."""
    from splatcert.certificate.store import MAIN, read_content

    for path in paths:
        folder = path if path.is_dir() else path.parent
        if (folder / MAIN).is_file() and read_content(folder)[1].scale.name == "guided":
            raise OptionError(
                f"{path} has the guided scale, but view predictors are for the paper's.\n"
                "  Certify the sources with --scale paper, or learn a guide from them: --guide."
            )


def common_field(paths: Sequence[Path]) -> FieldConfig | None:
    """How the residual fields of these certificates were fitted; None if a views.npz is bare."""
    from splatcert.certificate.store import MAIN, folder_of, read_content

    if not all(path.is_dir() and (path / MAIN).is_file() for path in paths):
        return None
    fields = [read_content(folder_of(path))[1].config.field for path in paths]
    first = fields[0]
    for path, other in zip(paths, fields, strict=True):
        if (other.ridge, other.degree) != (first.ridge, first.degree):
            raise OptionError(
                f"{path}: its residual field has ridge {other.ridge:g} and degree {other.degree}, "
                f"that of {paths[0]} {first.ridge:g} and {first.degree}.\n"
                "  Learn from certificates whose fields were fitted alike."
            )
    return first


def views_file(path: Path) -> Path:
    """The views.npz in a certificate's folder, or the file itself."""
    from splatcert.certificate.store import VIEWS

    return path / VIEWS if path.is_dir() else path
