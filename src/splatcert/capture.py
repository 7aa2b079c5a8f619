# SPDX-License-Identifier: Apache-2.0
"""What a model tells about its own training: which photos it has seen, at which size.

The guarantee needs photos that the model has not seen. A run of `splatcert train` names
them; other trainers leave a rule in their settings, or nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from splatcert.camera import MAX_SIDE
from splatcert.certificate.record import HandOver, HeldOutBy
from splatcert.commands import CaptureOptions
from splatcert.errors import InputError, listed
from splatcert.scene.dataset import OWN_SPLIT, Holdout
from splatcert.scene.load import load_scene
from splatcert.scene.scene import Scene
from splatcert.splats.files import Split, describe_model
from splatcert.storage.schema import from_plain
from splatcert.storage.whole import require_regular_file

Colour = tuple[float, float, float]
HOW_TO_HOLD_OUT = (
    "  Train again with photos kept out: splatcert train DATA -o RUN (every 8th), Inria\n"
    "  --eval, gsplat --test_every 8, nerfstudio --eval-mode interval. Or photograph a few\n"
    "  new views, register them, and list them in a file: --holdout FILE."
)


class SeenError(InputError):
    """Photos meant to calibrate that the model was trained on."""


@dataclass(frozen=True)
class Training:
    """A model's own account of how it was trained; None where it has none."""

    split: Split = None
    """Rule by which photos were kept out."""
    seen: tuple[str, ...] | None = None
    """Photos it was trained on, by name."""
    kept_out: tuple[str, ...] | None = None
    """Photos it was not trained on, by name."""
    long_side: int | None = None
    """Of the photos it was trained on, in pixels."""
    background: Colour | None = None
    handed_out: tuple[HandOver, ...] = ()
    """Held-out labels that were handed out while it was trained or measured."""


def training_of(model: Path) -> Training:
    """What the model's folder tells."""
    folder = model if model.is_dir() else model.parent
    record = folder / "train.json"
    if record.is_file() and (model.is_dir() or model.name == "splats.ply"):
        return _own_run(record)
    return Training(split=describe_model(model).split)


def _own_run(path: Path) -> Training:
    """A run of `splatcert train`."""
    try:
        record: Any = json.loads(require_regular_file(path).read_text())
        request = record["request"]
        names = {key: tuple(map(str, request[key])) for key in ("training_views", "held_out_views")}
        sides = [int(side) for size in request["sizes"] for side in size]
        if not all(1 <= side <= MAX_SIDE for side in sides):
            raise ValueError(f"a photo has no {max(sides):.3g} pixels a side")
        red, green, blue = map(float, request["config"]["background"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise SeenError(
            f"{path} does not say what the model was trained on: {error!r:.200}.\n"
            "  Restore it, or give the PLY file in a folder of its own, and --holdout."
        ) from None
    if not record.get("result"):
        raise SeenError(
            f"{path.parent} holds a run that is not finished.\n"
            "  Finish it by the same splatcert train command, which goes on where it stopped."
        )
    return Training(
        seen=names["training_views"],
        kept_out=names["held_out_views"],
        long_side=max(sides, default=None),
        background=(red, green, blue),
        handed_out=_handed_out(path.with_name("metrics.json"), names["held_out_views"]),
    )


def _handed_out(path: Path, held_out: tuple[str, ...]) -> tuple[HandOver, ...]:
    """What a run says of held-out labels: none where it has not measured anything."""
    if not path.is_file():
        return ()
    try:
        metrics: Any = json.loads(path.read_text())
        if "labels" in metrics:
            return from_plain(tuple[HandOver, ...], metrics["labels"], "labels")
    except (ValueError, TypeError, RecursionError) as error:
        raise SeenError(
            f"{path} does not say which held-out photos were looked at: {error}.\n"
            "  Restore it, or remove it and run the same splatcert train command again."
        ) from None
    # Runs of earlier versions measured every held-out photo and did not write it down.
    return (HandOver(order=0, purpose="evaluation", by="splatcert train", views=held_out),)


def load_capture(data: Path, capture: CaptureOptions, training: Training) -> Scene:
    """The capture, with the views held out that the model has not seen.

    What the user asks for goes first; what the model says fills in the rest. A held-out
    view that the model was trained on is refused either way. A rule in a trainer's settings
    knows nothing of photos that were added later: those may be named in a file, which is
    then the user's statement.

    `details["held_out_by"]` of the scene says how the split is known, see `HeldOutBy`. The
    ledger of held-out labels begins with what the model's run folder says of them.
    """
    options: dict[str, Any] = {
        "images": capture.images,
        "resolution": capture.resolution or training.long_side,
    }
    asked, told = capture.split, _told(data, training, options)
    if asked == "auto" and told is None:
        raise SeenError(f"the model has seen every photo of its capture.\n{HOW_TO_HOLD_OUT}")
    scene = load_scene(data, holdout=told if asked == "auto" else asked, **options)
    by: HeldOutBy = "model"
    if told == "auto":
        by = "assumed" if asked == "auto" else "user"
    elif training.seen is None and capture.names_photos:
        by = "user"
    elif asked != "auto":
        seen = training.seen
        if seen is None:
            seen = load_scene(data, holdout=told, **options).training.names
        _refuse_seen(scene, seen, told)
    for entry in training.handed_out:
        scene.held_out.ledger.record(entry.purpose, f"{entry.by}, says its run folder", entry.views)
    return replace(scene, details={**scene.details, "held_out_by": by})


def _refuse_seen(scene: Scene, seen: Sequence[str], told: Holdout) -> None:
    """Held-out photos among those that the model was trained on."""
    both = sorted(set(scene.held_out.names) & set(seen))
    if not both:
        return
    what_to_do = (
        HOW_TO_HOLD_OUT
        if told is None
        else "  Photos that it has seen cannot calibrate. Leave --holdout out, to take those that "
        "its\n  run kept out, or train again with this split."
    )
    raise SeenError(
        f"the model was trained on {len(both)} of the {len(scene.held_out)} held-out photos: "
        f"{listed(both)}.\n{what_to_do}"
    )


def _told(data: Path, training: Training, options: dict[str, Any]) -> Holdout:
    """The split as the model tells it: None where it has seen all, "auto" where it is silent."""
    if training.kept_out is not None:
        return training.kept_out
    if training.split is None:
        return "auto"
    if training.split == "none":
        return None
    usual = load_scene(data, holdout="auto", **options)
    if usual.details.get("split") == OWN_SPLIT:
        return "format"  # trainers follow the files of such a dataset, whatever their rule
    if isinstance(training.split, float):
        return evaluation_share(tuple(usual.cameras), training.split)
    return training.split


def evaluation_share(names: Sequence[str], share: float) -> tuple[str, ...]:
    """What nerfstudio keeps out: all but evenly spaced photos, a share of them, by name."""
    ordered = sorted(names)
    chosen = np.linspace(0, len(ordered) - 1, math.ceil(len(ordered) * share), dtype=int)
    return tuple(name for index, name in enumerate(ordered) if index not in set(chosen.tolist()))
