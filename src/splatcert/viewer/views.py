# SPDX-License-Identifier: Apache-2.0
"""The views a certificate knows: where they stand, how hard they are, and their photographs.

A photograph is shown only where the certificate has used its label already: training and
calibration views. Of any other held-out view even the viewer has no picture to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.provenance import label_hash
from splatcert.conformal.levels import in_percent
from splatcert.scene.cameras import Camera
from splatcert.scene.roles import LabelledView
from splatcert.scene.scene import Scene
from splatcert.viewer.frame import boxes_at, to_bytes
from splatcert.viewer.levels import Promise

Pixels = NDArray[np.uint8]
Role = Literal["training", "calibration", "unlabelled"]
ROLES: dict[Role, str] = {
    "training": "training views",
    "calibration": "calibration views",
    "unlabelled": "other held-out views",
}
MISSED, NOT_COUNTED = (255, 64, 64), (16, 16, 20)
FADED = 0.45
"""Brightness of what lies inside its box, where misses are shown."""


@dataclass(frozen=True, eq=False)
class KnownView:
    """One view of the capture."""

    name: str
    role: Role
    camera: Camera
    factor: float
    """a_v."""
    needed: float
    """a*_v: the mean half-width that would just do; NaN where no label was used."""
    image: str | None
    """Hash of the pixels whose label was used."""


def known_views(certificate: Certificate) -> tuple[KnownView, ...]:
    """Training, calibration and unlabelled views, in this order, each by name."""
    record, views = certificate.record, certificate.views
    needed = {
        name: float(value)
        for which in ("training", "held-out")
        for name, value in zip(
            views.views(which).names,
            views.oracle(which, certificate.beta, certificate.rule.lambda_b),
            strict=True,
        )
    }
    factors = certificate.rule.factors(views.training.descriptors)
    found = {
        name: float(factor) for name, factor in zip(views.training.names, factors, strict=True)
    }
    training = [
        KnownView(v.name, "training", v.camera.camera(), found[v.name], needed[v.name], v.image)
        for v in record.training
    ]
    calibration = [
        KnownView(v.name, "calibration", v.camera.camera(), v.factor, needed[v.name], v.image)
        for v in record.calibration
    ]
    unlabelled = [
        KnownView(v.name, "unlabelled", v.camera.camera(), v.factor, float("nan"), None)
        for v in record.unlabelled
    ]
    return (*training, *calibration, *unlabelled)


def photo_of(view: KnownView, scene: Scene) -> LabelledView | None:
    """The view with its photograph, if the certificate has used that and it is still there."""
    if view.role == "training" and view.name in scene.training.names:
        return scene.training[view.name]
    if view.role == "calibration" and view.name in scene.held_out.with_photo:
        return scene.held_out.reveal("evaluation", [view.name], by="view")[0]
    return None


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
    photo = labelled.image()
    counted = labelled.mask() if labelled.has_mask else None
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
    met = "enough are inside" if share <= promise.beta else "**too many miss**"
    caution = " The model was fitted to this photo: no evidence." if view.role == "training" else ""
    return f"{100 * share:.1f}% of its pixels miss, {in_percent(promise.beta)} may: {met}.{caution}"


def _misses(center: Tensor, missed: Tensor, counted: Tensor | None) -> Pixels:
    """The render, faded to grey, with pixels outside their boxes marked, [H, W, 3]."""
    grey = to_bytes(FADED * center.mean(dim=-1, keepdim=True).expand_as(center)).copy()
    grey[missed.cpu().numpy()] = MISSED
    if counted is not None:
        grey[~counted.cpu().numpy()] = NOT_COUNTED
    return grey
