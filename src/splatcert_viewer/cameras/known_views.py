# SPDX-License-Identifier: Apache-2.0
"""The views of a certificate that the viewer shows, and their photographs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate
from splatcert.scene.roles import LabelledView
from splatcert.scene.scene import Scene

Role = Literal["training", "calibration", "unlabelled"]
ROLES: dict[Role, str] = {
    "training": "training views",
    "calibration": "calibration views",
    "unlabelled": "other held-out views",
}


@dataclass(frozen=True, eq=False)
class KnownView:
    """One view of the capture."""

    name: str
    role: Role
    camera: Camera
    factor: float
    """a_v."""
    needed: float
    """a*_v: the smallest mean half-width that covers it; NaN where no photograph was used."""
    image: str | None
    """Hash of the photograph the certificate used; None if it used none."""


def known_views(certificate: Certificate) -> tuple[KnownView, ...]:
    """Training, calibration and unlabelled views, in this order, each by name."""
    record, views = certificate.record, certificate.views
    needed = {
        name: float(value)
        for which in ("training", "held-out")
        for name, value in zip(
            views.views(which).names,
            views.oracle(which, certificate.beta, record.scale.shape),
            strict=True,
        )
    }
    factors = certificate.training_factors
    found = {
        name: float(factor) for name, factor in zip(views.training.names, factors, strict=True)
    }
    training = [
        KnownView(v.name, "training", v.camera, found[v.name], needed[v.name], v.image)
        for v in record.training
    ]
    calibration = [
        KnownView(v.name, "calibration", v.camera, v.factor, needed[v.name], v.image)
        for v in record.calibration
    ]
    unlabelled = [
        KnownView(v.name, "unlabelled", v.camera, v.factor, float("nan"), None)
        for v in record.unlabelled
    ]
    return (*training, *calibration, *unlabelled)


def photo_of(view: KnownView, scene: Scene) -> LabelledView | None:
    """The view with its photograph, if the certificate used it and it still exists."""
    if view.role == "training" and view.name in scene.training.names:
        return scene.training[view.name]
    if view.role == "calibration" and view.name in scene.held_out.with_photo:
        return scene.held_out.reveal("evaluation", [view.name], by="view")[0]
    return None
