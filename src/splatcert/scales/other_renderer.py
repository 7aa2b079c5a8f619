# SPDX-License-Identifier: Apache-2.0
"""A certificate carried over to another renderer: by its photographs, or by both renders."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.certificate.hashes import label_hash
from splatcert.certificate.renderers import MOST_WIDENING, Array, Difference, OtherRenderer
from splatcert.conformal.calibrate import view_scores
from splatcert.conformal.maps import rgb_residual
from splatcert.errors import listed
from splatcert.scales.scale import FrozenScale
from splatcert.scene.roles import CalibrationView

TRAINING_CAMERAS = 8
"""Training cameras that fix the margin; which ones does not depend on any label."""
KNOTS = 9
"""Multipliers at which boxes of both renderers are compared; scores in between take chords."""


def bounded(certificate: Certificate, there: FrozenScale, here: FrozenScale) -> OtherRenderer:
    """Bounds of the scores under the renderer `here`, without photographs.

    A score R is bounded by the multiplier at which boxes of `here` contain those of `there` at R,
    at every calibration camera. Order statistics are then those multipliers too. The certified
    renderer `there` must run on this machine.
    """
    record, betas = certificate.record, certificate.views.betas
    cameras = [view.camera for view in record.training]
    chosen = cameras[:: max(1, len(cameras) // TRAINING_CAMERAS)][:TRAINING_CAMERAS]
    prior = record.field.prior  # a multiplier of the right size that no calibration label sets
    margin = max(_difference(camera, there, here).margin(prior) for camera in chosen)
    known = np.stack([certificate.scores_at(beta) for beta in betas], axis=1)
    knots, factors = np.linspace(known.min(), known.max(), KNOTS), []
    worst = np.zeros(KNOTS)
    for view in record.calibration:
        difference = _difference(view.camera, there, here)
        worst = np.maximum(worst, difference.containing(knots, margin))
        factors.append(difference.other.mean())
    rows = np.interp(known, knots, worst)  # a maximum of lines is convex: chords lie above it
    found = _other(certificate, here, betas, rows, margin, np.array(factors))
    if not found.widening <= MOST_WIDENING:
        raise CertificateError(
            f"boxes of the back end {here.backend} would be {100 * found.widening:.3g}% wider than "
            f"those certified with {there.backend};\n"
            f"  up to {100 * MOST_WIDENING}% is accepted. Check the back end (splatcert doctor), "
            "or pass the\n  capture, so that its photos are scored again: --data DATA."
        )
    return found


def scored_again(
    certificate: Certificate, here: FrozenScale, photos: Sequence[CalibrationView]
) -> OtherRenderer:
    """The scores under the renderer `here`, from the photographs that were certified."""
    record, betas = certificate.record, certificate.views.betas
    stored = {view.name: view.image for view in record.calibration}
    if other := [view.name for view in photos if label_hash(view) != stored[view.name]]:
        raise CertificateError(
            f"{len(other)} calibration photos differ from the certified ones: {listed(other)}.\n"
            f"  Pass the certified capture, or use the back end {record.renderer.backend}."
        )
    rows, factors = [], []
    for view in photos:
        scaled = here(view.camera)
        residual = rgb_residual(view.image().cpu().numpy(), scaled.center.cpu().numpy())
        mask = view.mask().cpu().numpy() if view.has_mask else None
        rows.append(view_scores(residual, scaled.scale(), betas, mask))
        factors.append(scaled.factor)
    return _other(certificate, here, betas, np.array(rows), 0.0, np.array(factors), known=True)


def _other(
    certificate: Certificate,
    here: FrozenScale,
    betas: Sequence[Fraction],
    rows: Array,
    margin: float,
    factors: Array,
    *,
    known: bool = False,
) -> OtherRenderer:
    scores = dict(zip(betas, rows.T, strict=True))
    before = np.mean([view.factor for view in certificate.record.calibration])
    q, certified = _threshold(certificate, scores[certificate.beta]), certificate.threshold * before
    finite = 0 < certified < np.inf
    widening = (q * factors.mean() + margin) / certified - 1 if finite else 0.0
    return OtherRenderer(here.backend, scores, margin, not known, float(widening))


def _threshold(certificate: Certificate, scores: Array) -> float:
    record = certificate.record
    names = [view.name for view in record.calibration]
    views = dict(zip(names, scores.tolist(), strict=True))
    return record.promise.threshold(views, certificate.alpha)


def _difference(camera: Camera, there: FrozenScale, here: FrozenScale) -> Difference:
    one, other = there(camera), here(camera)
    apart = np.abs(one.center.cpu().double().numpy() - other.center.cpu().double().numpy())
    return Difference(one.scale(), other.scale(), apart.max(axis=2))
