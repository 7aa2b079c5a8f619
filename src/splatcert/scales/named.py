# SPDX-License-Identifier: Apache-2.0
"""Scales by name, and the choice of a predictor that has not seen the capture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from splatcert.certificate.content.record import Center, ScaleRecord
from splatcert.certificate.hashes import place_mark, source_marks
from splatcert.difficulty.guided.guide import Guide, ShippedGuide, shipped_guide
from splatcert.difficulty.guided.rule import GuidedRule
from splatcert.difficulty.predictor import Shipped, ViewPredictor, shipped_predictor
from splatcert.difficulty.rule import FactorRule, Unit
from splatcert.errors import InputError
from splatcert.scales.guided import GuidedScale
from splatcert.scales.maps import Constant
from splatcert.scales.paper import PaperScale
from splatcert.scales.scale import Scale
from splatcert.scene.scene import Scene

NAMES = ("paper", "guided", "constant")


class ScaleNameError(InputError):
    """A scale that the package does not have."""


def scale_by_name(name: str, scene: Scene, unit: Unit = "deployed") -> Scale:
    """A built-in scale; the paper's gets a predictor that has not seen this capture."""
    if name == "paper":
        return PaperScale(chosen_predictor("default", scene)[1], unit)
    if name == "guided":
        if unit == "batch":
            raise ScaleNameError(
                "unit batch requires the paper's scale; the scale requested or used by default is "
                "guided.\n  Name the scale paper too, or leave the unit out."
            )
        return GuidedScale(chosen_guide(scene)[1])
    if name == "constant":
        return Constant()
    raise ScaleNameError(
        f"there is no scale {name!r}; choose one of {', '.join(NAMES)},\n"
        "  or pass an OwnMap with your own map to certify, in Python."
    )


def stored_scale(record: ScaleRecord, center: Center = "render") -> Scale:
    """The scale that a certificate names, if it is built in."""
    if record.name == "paper":
        rule = FactorRule.of(record.parameters)
        return PaperScale(rule.predictor, rule.unit, record.holes)
    if record.name == "guided":
        return GuidedScale(GuidedRule.of(record.parameters).guide, center, holes=record.holes)
    if record.name == "constant":
        return Constant()
    raise ScaleNameError(
        f"the certificate uses the scale {record.name!r}, which is not in the package.\n"
        "  It is a map of someone's own, which only Python can load: pass the same OwnMap as scale."
    )


def chosen_predictor(asked: Shipped, scene: Scene) -> tuple[Shipped, ViewPredictor]:
    """The requested predictor; for "default", the first that has seen no held-out view.

    The predictors in the package learned from held-out photographs of well-known captures.
    The choice uses names and places of cameras, never a photograph, so it does not affect the
    guarantee. If all have seen some, the default one is returned, which is then refused with
    the reason.
    """
    if asked == "default":
        names: tuple[Shipped, ...] = get_args(Shipped)
        for name in names:
            predictor = shipped_predictor(name)
            if not learned_from(predictor.card, scene):
                return name, predictor
    return asked, shipped_predictor(asked)


def chosen_guide(scene: Scene) -> tuple[ShippedGuide, Guide]:
    """The guide in the package; if it has seen held-out views, the one of training photos."""
    saw_some = learned_from(shipped_guide("guide").card, scene)
    name: ShippedGuide = "guide-training" if saw_some else "guide"
    return name, shipped_guide(name)


def learned_from(card: Mapping[str, Any], scene: Scene) -> set[str]:
    """Held-out views whose labels a predictor learned from, found without reading a photo.

    These are views of the same name at the same place, unless no other view matches:
    synthetic scenes share the path of their test cameras.
    """
    places = {(name, place_mark(camera)) for name, camera in scene.cameras.items()}
    shared: set[str] = set()
    for source in source_marks(card):
        others = {(name, mark.place) for name, mark in source.others.items()}
        if source.scene == scene.path.name or not others or others & places:
            learned = {(name, mark.place) for name, mark in source.learned.items()}
            shared |= {name for name, _ in learned & places} & set(scene.held_out.names)
    return shared
