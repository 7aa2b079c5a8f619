# SPDX-License-Identifier: Apache-2.0
"""Where another photograph would help most, as far as the calibration views tell."""

from __future__ import annotations

import math

import numpy as np

from splatcert.certificate.certificate import Certificate
from splatcert.report.content import NextPhoto
from splatcert.view.descriptor import FEATURE_NAMES

PLACES = 5


def next_photos(certificate: Certificate) -> tuple[NextPhoto, ...]:
    """Places near the calibration views that needed the widest boxes, worst first.

    What a report advises where nobody has searched for better places.
    """
    record, views = certificate.record, certificate.views
    rows = [views.held_out.names.index(view.name) for view in record.calibration]
    needed = views.oracle("held-out", certificate.beta, record.scale.lambda_b)[rows]
    described = views.held_out.descriptors[rows]
    typical = np.median(described, axis=0)
    worst = np.argsort(-needed, kind="stable")[:PLACES]
    return tuple(
        NextPhoto(
            title=f"near {record.calibration[row].name}",
            words=_reason(described[row], typical),
            half_width=float(needed[row]),
            place=_place(certificate, int(row)),
        )
        for row in worst
    )


def _place(certificate: Certificate, row: int) -> tuple[float, float, float]:
    x, y, z = certificate.record.calibration[row].camera.camera().centre.tolist()
    return x, y, z


def _reason(found: np.ndarray, typical: np.ndarray) -> str:
    """In what the view is worse supported than most, or that it is hard all the same."""
    angle, exposure, distance = (
        FEATURE_NAMES.index(name) for name in ("sup_ang_mean", "sup_logE_mean", "g_dnn")
    )
    reasons = []
    if found[angle] > 1.1 * typical[angle]:
        reasons.append(
            f"sees surfaces {math.degrees(found[angle]):.0f}° off the directions they were "
            f"photographed from (typically {math.degrees(typical[angle]):.0f}°)"
        )
    if found[exposure] < typical[exposure] - math.log(1.25):
        share = math.exp(found[exposure] - typical[exposure])
        reasons.append(f"sees surfaces that were photographed {100 * share:.0f}% as much as usual")
    if found[distance] > 1.25 * typical[distance]:
        ratio = found[distance] / typical[distance]
        reasons.append(f"stands {ratio:.1f} times as far from a training camera as usual")
    if not reasons:
        return "as well photographed as others, but hard: fine detail, gloss or movement"
    return "; ".join(reasons)
