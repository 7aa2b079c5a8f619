# SPDX-License-Identifier: Apache-2.0
"""A model's account of its own training: which photos it has seen, and at which size."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from splatcert.camera import MAX_SIDE
from splatcert.certificate.content.record import LabelUse
from splatcert.errors import InputError
from splatcert.scene.split import Holdout
from splatcert.splats.files import Split, describe_model
from splatcert.storage.schema import from_plain
from splatcert.storage.whole import require_regular_file

Rgb = tuple[float, float, float]


class TrainedOnTheseError(InputError):
    """Calibration photos that the model was trained on."""


@dataclass(frozen=True)
class TrainingAccount:
    """A model's own account of how it was trained; None for what it does not say."""

    split: Split = None
    """Rule by which photos were kept out."""
    seen: tuple[str, ...] | None = None
    """Photos it was trained on, by name."""
    kept_out: tuple[str, ...] | None = None
    """Photos it was not trained on, by name."""
    long_side: int | None = None
    """Longest side of the photos it was trained on, in pixels."""
    background: Rgb | None = None
    sparse: str | None = None
    """Folder of the COLMAP model inside the capture that it was trained on."""
    skip_missing: bool = False
    """Whether poses without a photo were left out."""
    labels: tuple[LabelUse, ...] = ()
    """Held-out labels that were used while it was trained or evaluated."""

    def rule(self, names: Sequence[str], *, own_split: bool) -> Holdout:
        """The model's split: None if it has seen all photos, "auto" if it does not say.

        `names` are all photos of the capture; `own_split` says that the capture has its own split.
        """
        if self.kept_out is not None:
            return self.kept_out
        if self.split is None:
            return "auto"
        if self.split == "none":
            return None
        if own_split:
            return "format"  # trainers follow the split of such a dataset, whatever their rule
        if isinstance(self.split, float):
            return evaluation_share(names, self.split)
        return self.split

    def trained_on(self, names: Sequence[str], *, own_split: bool) -> Sequence[str] | None:
        """Photos of a capture that the model was trained on; None if its run does not say."""
        if self.seen is not None:
            return self.seen
        told = self.rule(sorted(names), own_split=own_split)
        if told is None:
            return names
        if isinstance(told, int):
            return [name for index, name in enumerate(sorted(names)) if index % told]
        return sorted(set(names) - set(told)) if isinstance(told, tuple) else None


def account_of(model: Path) -> TrainingAccount:
    """The account of training in a model's folder."""
    folder = model if model.is_dir() else model.parent
    record = folder / "train.json"
    if record.is_file() and (model.is_dir() or model.name == "splats.ply"):
        return _own_run(record)
    return TrainingAccount(split=describe_model(model).split)


def _own_run(path: Path) -> TrainingAccount:
    """A run of `splatcert train`."""
    try:
        record: Any = json.loads(require_regular_file(path).read_text())
        request = record["request"]
        names = {key: tuple(map(str, request[key])) for key in ("training_views", "held_out_views")}
        sides = [int(side) for size in request["sizes"] for side in size]
        if not all(1 <= side <= MAX_SIDE for side in sides):
            raise ValueError(f"a photo cannot have {max(sides):.3g} pixels per side")
        red, green, blue = map(float, request["config"]["background"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise TrainedOnTheseError(
            f"{path} does not say what the model was trained on: {error!r:.200}.\n"
            "  Restore it, or pass the PLY file in a folder of its own, and --holdout."
        ) from None
    if not record.get("result"):
        raise TrainedOnTheseError(
            f"{path.parent} holds an unfinished run.\n"
            "  Run the same splatcert train command again: it resumes where it stopped."
        )
    return TrainingAccount(
        seen=names["training_views"],
        kept_out=names["held_out_views"],
        long_side=max(sides, default=None),
        background=(red, green, blue),
        sparse=place if isinstance(place := record.get("sparse"), str) else None,
        skip_missing=record.get("skip_missing") is True,
        labels=_used_labels(path.with_name("metrics.json"), names["held_out_views"]),
    )


def _used_labels(path: Path, held_out: tuple[str, ...]) -> tuple[LabelUse, ...]:
    """Uses of held-out labels that a run lists; none if it has not evaluated anything."""
    if not path.is_file():
        return ()
    try:
        metrics: Any = json.loads(path.read_text())
        if "labels" in metrics:
            return from_plain(tuple[LabelUse, ...], metrics["labels"], "labels")
    except (ValueError, TypeError, RecursionError) as error:
        raise TrainedOnTheseError(
            f"{path} does not say which held-out photos were used: {error}.\n"
            "  Restore it, or remove it and run the same splatcert train command again."
        ) from None
    # Runs of earlier versions evaluated every held-out photo and did not record it.
    return (LabelUse(order=0, purpose="evaluation", by="splatcert train", views=held_out),)


def evaluation_share(names: Sequence[str], share: float) -> tuple[str, ...]:
    """Photos that nerfstudio keeps out: all but an evenly spaced share of them, by name."""
    ordered = sorted(names)
    chosen = np.linspace(0, len(ordered) - 1, math.ceil(len(ordered) * share), dtype=int)
    return tuple(name for index, name in enumerate(ordered) if index not in set(chosen.tolist()))
