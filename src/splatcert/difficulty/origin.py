# SPDX-License-Identifier: Apache-2.0
"""Where a view predictor comes from: the package, or somewhere nobody here can look."""

from __future__ import annotations

from typing import get_args

from splatcert.difficulty.predictor import (
    PredictorError,
    Shipped,
    ViewPredictor,
    shipped_predictor,
    undated,
)


def shipped_name(predictor: ViewPredictor) -> str | None:
    """The name of the shipped predictor that this one is, or None; a copied card is an error.

    A card says what a predictor was learned from. On other weights it is a false statement,
    and weights fitted to the calibration labels would make boxes that promise too much.
    """
    for name in get_args(Shipped):
        shipped = shipped_predictor(name)
        if predictor.sha256 == shipped.sha256:
            return name
        if undated(predictor.card) == undated(shipped.card):
            raise PredictorError(f"it has the card of the {name} predictor, but other weights")
    return None
