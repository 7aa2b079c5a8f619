# SPDX-License-Identifier: Apache-2.0
"""Certificates carried over to another back end: q, and pixels inside on all calibration photos.

`benchmarks/gpu.py --certificates FOLDER` runs it between `cpu` and `gpu`, in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import splatcert as sc
from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.renderers import OtherRenderer
from splatcert.certificate.store import read_certificate
from splatcert.config import Backend, CertifyConfig, FieldConfig
from splatcert.deploy import load_certified_scene
from splatcert.scales.named import stored_scale
from splatcert.scales.other_renderer import bounded, scored_again
from splatcert.scales.scale import FrozenScale, ScaledView
from splatcert.scales.thaw import thawed
from splatcert.scene.roles import CalibrationView
from splatcert.splats.gaussians import Splats


class Remembering(FrozenScale):
    """A frozen scale that renders each camera once: software devices take seconds."""

    def __call__(self, camera: Camera) -> ScaledView:
        """The scale of one camera."""
        known = self.__dict__.setdefault("known", {})
        if camera not in known:
            known[camera] = super().__call__(camera)
        return known[camera]


def certified(
    data: Path, model: Path, folder: Path, backend: Backend, photos: int, steps: int
) -> Certificate:
    """The certificate in this folder, made first if it is not there.

    With `photos`, so many training photos and steps fit the residual field; 0 takes all.
    """
    if not folder.exists():
        capture = sc.open_capture(data, model)
        if photos:
            some = capture.scene.training[:: len(capture.scene.training) // photos][:photos]
            capture = replace(capture, scene=replace(capture.scene, training=some))
        field = FieldConfig(max_steps=steps) if photos else FieldConfig()
        config = CertifyConfig(field=field)
        made = sc.certify(capture, scale="paper", config=config, backend=backend, remember=False)
        made.save(folder)
    return read_certificate(folder)


def carry_over(certificate: Certificate, splats: Splats, data: Path, to: Backend) -> dict:
    """One certificate under another back end: scored again, and bounded by both renders."""
    record = certificate.record
    scene, scale = load_certified_scene(record, data), stored_scale(record.scale, record.center)
    there, here = (
        Remembering(**vars(thawed(certificate, splats, scale, scene.training, backend)))
        for backend in (record.renderer.backend, to)
    )
    names = [view.name for view in record.calibration]
    photos = scene.held_out.reveal("calibration", names, by="benchmark")
    again, wider = scored_again(certificate, here, photos), bounded(certificate, there, here)
    own = replace(certificate, scale=there)
    scores = again.scores[certificate.beta] / certificate.scores - 1
    return {
        "training_photos": len(record.training),
        "q": certificate.threshold,
        "largest_change_of_a_score": float(np.abs(scores).max()),
        "scored_again": compared(own, certificate.carried_over(again, here), again, photos),
        "bounded": compared(own, certificate.carried_over(wider, here), wider, photos),
    }


def compared(
    own: Certificate, carried: Certificate, other: OtherRenderer, photos: Sequence[CalibrationView]
) -> dict:
    """Both certificates' boxes on the calibration photographs."""
    inside = lost = gained = pixels = 0
    contained = True
    for known, photo in zip(own.record.calibration, photos, strict=True):
        image = photo.image()
        before, after = own.predict(known.camera), carried.predict(known.camera)
        one, two = before.contains(image), after.contains(image)
        inside, pixels = inside + int(one.sum()), pixels + one.numel()
        lost, gained = lost + int((one & ~two).sum()), gained + int((two & ~one).sum())
        contained &= bool((after.lower <= before.lower).all())
        contained &= bool((after.upper >= before.upper).all())
    return {
        "q": carried.threshold,
        "change_of_q": carried.threshold / own.threshold - 1,
        "margin_of_255": 255 * other.margin,
        "wider": other.widening,
        "photos": len(photos),
        "pixels": pixels,
        "inside": inside,
        "lost": lost,
        "gained": gained,
        "boxes_contain_the_certified_ones": contained,
    }
