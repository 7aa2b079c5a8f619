# SPDX-License-Identifier: Apache-2.0
"""The predictors in the package, and which of them a scene may use.

They learned from held-out photographs of well-known captures. Whoever certifies one of these
captures needs a predictor that has not seen it: the choice looks at names and places of
cameras, never at a photograph, so it costs the guarantee nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from splatcert.certificate.refusals import learned_from
from splatcert.scene.scene import Scene
from splatcert.view.predictor import ViewPredictor, load_predictor

Shipped = Literal["default", "strict", "reverse"]
"""Learned on all our captures, without Mip-NeRF 360, without Tanks & Temples and Deep Blending."""
PREDICTORS = Path(__file__).with_name("predictors")


def shipped_predictor(name: Shipped = "default") -> ViewPredictor:
    """A predictor in the package."""
    return load_predictor(PREDICTORS / f"{name}.json")


def chosen_predictor(asked: Shipped, scene: Scene) -> tuple[Shipped, ViewPredictor]:
    """The predictor asked for; for "default", the first that has seen no held-out view.

    Where all have, it is the default one, which is then refused with the reason.
    """
    if asked == "default":
        names: tuple[Shipped, ...] = get_args(Shipped)
        for name in names:
            predictor = shipped_predictor(name)
            if not learned_from(predictor, scene):
                return name, predictor
    return asked, shipped_predictor(asked)
