# SPDX-License-Identifier: Apache-2.0
"""Which photos the model has not seen, and who says so."""

from __future__ import annotations

import os
from collections.abc import Sequence

from splatcert.certificate.content.record import (
    UnseenBy,
)
from splatcert.errors import listed
from splatcert.scene.load import Photographs
from splatcert.scene.scene import Scene
from splatcert.scene.split import Holdout, HoldoutRuleError, drawn_rule
from splatcert.splats.account import TrainedOnTheseError, TrainingAccount

HOW_TO_HOLD_OUT = (
    "  Take 12 to 20 new photos and add them: splatcert register DATA PHOTOS -o DATA2, then\n"
    "  certify DATA2 (docs: I already trained on everything). Or train again with photos kept\n"
    "  out: splatcert train (1 in 8), Inria --eval, gsplat --test_every 8, nerfstudio\n"
    "  --eval-mode interval."
)


def split_unseen(
    photographs: Photographs, asked: Holdout, account: TrainingAccount
) -> tuple[Scene, UnseenBy]:
    """The scene with the views held out that the model has not seen, and who says so.

    The user's choice takes precedence; the model's account fills in the rest. A held-out view
    that the model was trained on is refused either way. A rule in a trainer's settings does
    not cover photos added later: the user may name those, and is then the one who says so.
    The ledger of held-out labels begins with the uses that the model's run lists.
    """
    if photographs.dataset.added:
        return _split_registered(photographs, asked, account)
    told = account.rule(photographs.names, own_split=photographs.own_split)
    if asked == "auto" and told is None:
        raise TrainedOnTheseError(
            f"the model was trained on every photo of its capture.\n{HOW_TO_HOLD_OUT}"
        )
    scene = photographs.scene(told if asked == "auto" else asked)
    by: UnseenBy = "model"
    if told == "auto":
        by = "assumed" if asked == "auto" else "user"
    elif account.seen is None and _names_photos(asked):
        by = "user"
    elif asked != "auto":
        seen = account.seen or photographs.scene(told).training.names
        refuse_trained_on(scene, seen, saw_all=told is None)
    for use in account.labels:
        scene.held_out.ledger.record(use.purpose, use.by, use.views)
    return scene, by


def _split_registered(
    photographs: Photographs, asked: Holdout, account: TrainingAccount
) -> tuple[Scene, UnseenBy]:
    """The scene with the registered photos held out: no rule of an earlier trainer covers them."""
    if asked != "auto":
        raise HoldoutRuleError(
            f"the held-out photos of {photographs.finder.root} are the "
            f"{len(photographs.dataset.added)} that splatcert register added.\n"
            "  Omit --holdout, or pass the capture that they were added to."
        )
    scene = photographs.scene("auto")
    refuse_trained_on(scene, account.seen or ())
    for use in account.labels:
        if used := tuple(name for name in use.views if name in scene.held_out.names):
            scene.held_out.ledger.record(use.purpose, use.by, used)
    kept_out = set(account.kept_out or ())
    return scene, "model" if kept_out.issuperset(scene.held_out.names) else "registered"


def _names_photos(asked: Holdout) -> bool:
    """Whether held-out photos are named one by one."""
    if isinstance(asked, str):
        rule = asked in ("auto", "format") or asked.isdecimal() or drawn_rule(asked) is not None
        return not rule
    return isinstance(asked, (tuple, os.PathLike))


def refuse_trained_on(scene: Scene, seen: Sequence[str], *, saw_all: bool = False) -> None:
    """Refuse held-out photos that the model was trained on."""
    both = sorted(set(scene.held_out.names) & set(seen))
    if not both:
        return
    what_to_do = (
        HOW_TO_HOLD_OUT
        if saw_all
        else "  Photos that it has seen cannot calibrate. Omit --holdout to use those that its "
        "run\n  kept out, or train again with this split."
    )
    raise TrainedOnTheseError(
        f"the model was trained on {len(both)} of the {len(scene.held_out)} held-out photos: "
        f"{listed(both)}.\n{what_to_do}"
    )
