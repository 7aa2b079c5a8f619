# SPDX-License-Identifier: Apache-2.0
"""Which scales `splatcert certify` uses: those that were named, or the default for its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from splatcert.errors import OptionError

if TYPE_CHECKING:
    from splatcert.commands.certificates.certify import Certify
    from splatcert.scales.scale import Scale
    from splatcert.scene.scene import Scene

SCALES = ("paper", "guided", "constant")
OF_THE_PAPER = {"predictor": "default", "holes": "wide", "unit": "deployed"}
"""Options that only the paper's scale has, and their defaults."""
Chosen = tuple["Scale", dict[str, str]]
"""A scale, and in labelled words what was used instead of its default."""


def scale_names(asked: Certify) -> tuple[str, ...]:
    """The scales that were named; by default guided, or paper if one of its options is given."""
    if asked.scale is not None:
        return tuple(asked.scale.split(","))
    return ("paper",) if paper_option(asked) else ("guided",)


def paper_option(asked: Certify) -> str:
    """The first option given that only the paper's scale has, as it is typed; empty without."""
    for name, default in OF_THE_PAPER.items():
        if (value := getattr(asked, name)) != default:
            return f"--{name} {value}"
    return ""


def check_scales(asked: Certify) -> None:
    """Refuse unknown or repeated names, and options of the guided scale with any other."""
    names = scale_names(asked)
    if wrong := [name for name in names if name not in SCALES]:
        raise OptionError(
            f"there is no scale {wrong[0]!r}.\n"
            f"  Choose one of {', '.join(SCALES)}, or several separated by commas."
        )
    if len(set(names)) < len(names) or len(set(asked.models)) < len(asked.models):
        raise OptionError("a model or scale is named twice.\n  Name each of them once.")
    if "guided" in names or (asked.center == "render" and asked.guide is None):
        return
    option = "--center corrected" if asked.center != "render" else "--guide"
    if asked.scale is None:
        raise OptionError(
            f"{option} requires --scale guided, {paper_option(asked)} requires --scale paper.\n"
            "  Leave one of them out."
        )
    raise OptionError(f"{option} requires --scale guided.")


def chosen_scales(asked: Certify, scene: Scene) -> list[Chosen]:
    """The scales of all names; a default that this capture cannot have is replaced, in words."""
    by_default = asked.scale is None and asked.guide is None and asked.center == "render"
    names = scale_names(asked)
    if by_default and names == ("guided",) and (why := _why_not_guided(scene)):
        scale, told = _paper(asked, scene)
        return [(scale, {"Scale": f"paper: {why}", **told})]
    return [_named(name, asked, scene) for name in names]


def _why_not_guided(scene: Scene) -> str:
    """Why the guided scale cannot be the default for a capture; empty if it can."""
    from splatcert.scales.named import chosen_guide, learned_from
    from splatcert.storage.memory import memory_limit
    from splatcert.witnesses.album import album_bytes

    if learned_from(chosen_guide(scene)[1].card, scene):
        return "both guides in splatcert were trained on photos held out here"
    if (needed := album_bytes(scene.training.cameras)) > memory_limit():
        return f"the guided scale would keep {needed / 2**30:.3g} GiB of training photos in memory"
    return ""


def _named(name: str, asked: Certify, scene: Scene) -> Chosen:
    from splatcert.difficulty.guided.guide import load_guide
    from splatcert.scales.guided import GuidedScale
    from splatcert.scales.maps import Constant
    from splatcert.scales.named import chosen_guide

    if name == "paper":
        return _paper(asked, scene)
    if name == "constant":
        return Constant(), {}
    if asked.guide is not None:
        return GuidedScale(load_guide(asked.guide), asked.center), {}
    found, guide = chosen_guide(scene)
    other = {"Guide": f"using {found}: the default guide was trained on photos held out here"}
    return GuidedScale(guide, asked.center), {} if found == "guide" else other


def _paper(asked: Certify, scene: Scene) -> Chosen:
    from splatcert.difficulty.predictor import load_predictor
    from splatcert.scales.named import chosen_predictor
    from splatcert.scales.paper import PaperScale

    match asked.predictor:
        case "none":
            return PaperScale(None, asked.unit, asked.holes), {}
        case "default" | "strict" | "reverse" as name:
            used, predictor = chosen_predictor(name, scene)
            other = f"using {used}: the {name} predictor was trained on photos held out here"
            told = {} if used == name else {"Predictor": other}
            return PaperScale(predictor, asked.unit, asked.holes), told
        case file:
            return PaperScale(load_predictor(Path(file)), asked.unit, asked.holes), {}
