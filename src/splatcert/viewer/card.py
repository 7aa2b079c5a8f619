# SPDX-License-Identifier: Apache-2.0
"""One view close up: photograph, render, and the pixels that miss their boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.provenance import label_hash
from splatcert.conformal.levels import in_percent
from splatcert.scene.scene import Scene
from splatcert.viewer.frame import boxes_at, to_bytes
from splatcert.viewer.levels import Promise
from splatcert.viewer.views import KnownView, photo_of

Pixels = NDArray[np.uint8]

MISSED, NOT_COUNTED = (255, 64, 64), (16, 16, 20)
FADED = 0.45
"""Brightness of what lies inside its box, where misses are shown."""


@dataclass(frozen=True, eq=False)
class Card:
    """One view close up."""

    words: str
    """What its photograph says, or why there is none."""
    render: Pixels
    photo: Pixels | None = None
    misses: Pixels | None = None


def make_card(
    certificate: Certificate, view: KnownView, promise: Promise, scene: Scene | None
) -> Card:
    """Render, photograph and misses of one view, exactly as it was certified."""
    boxes = boxes_at(certificate, view.camera, promise.threshold)
    render = to_bytes(boxes.center)
    if scene is None:
        return Card("Start the viewer with --data to see its photograph and misses.", render)
    labelled = photo_of(view, scene)
    if labelled is None:
        why = "was used by the certificate" if view.image is None else "is there any more"
        return Card(f"No photograph of this view {why}.", render)
    if label_hash(labelled) != view.image:
        return Card("Its photograph is not the one that was certified, so it is not shown.", render)
    photo = labelled.image().to(boxes.center)
    counted = labelled.mask().to(boxes.center.device) if labelled.has_mask else None
    missed = ~boxes.contains(photo)
    return Card(
        _verdict(view, missed if counted is None else missed[counted], promise),
        render,
        to_bytes(photo),
        _misses(boxes.center, missed, counted),
    )


def _verdict(view: KnownView, missed: Tensor, promise: Promise) -> str:
    """How many pixels miss, in words."""
    share = float(missed.double().mean())
    met = "enough are inside" if share <= promise.beta else "too many miss"
    caution = " The model was fitted to this photo: no evidence." if view.role == "training" else ""
    return f"{100 * share:.1f}% of its pixels miss, {in_percent(promise.beta)} may: {met}.{caution}"


def _misses(center: Tensor, missed: Tensor, counted: Tensor | None) -> Pixels:
    """The render, faded to grey, with pixels outside their boxes marked, [H, W, 3]."""
    grey = to_bytes(FADED * center.mean(dim=-1, keepdim=True).expand_as(center)).copy()
    grey[missed.cpu().numpy()] = MISSED
    if counted is not None:
        grey[~counted.cpu().numpy()] = NOT_COUNTED
    return grey
