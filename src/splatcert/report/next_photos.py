# SPDX-License-Identifier: Apache-2.0
"""Where to photograph next according to a certificate alone: near its hardest views."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.certificate import Certificate
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.report.content import NextPhoto, NextPhotos, plus_minus

Array = NDArray[np.float64]
PLACES = 5
COLUMNS = ("photograph near", "half-width needed, of 255", "what is different there")


def next_photos(certificate: Certificate) -> NextPhotos:
    """Places near the calibration views that needed the widest boxes, widest first."""
    record, views = certificate.record, certificate.views
    rows = views.held_out.rows_of(view.name for view in record.calibration)
    needed = views.oracle("held-out", certificate.beta, record.scale.shape)[rows]
    described = views.held_out.descriptors[rows]
    typical = np.median(described, axis=0)
    photos = []
    for row in np.argsort(-needed, kind="stable")[:PLACES]:
        view = record.calibration[row]
        x, y, z = view.camera.centre.tolist()
        cells = (view.name, plus_minus(float(needed[row])), _reason(described[row], typical))
        photos.append(NextPhoto(cells, (x, y, z)))
    return NextPhotos(COLUMNS, tuple(photos))


def _reason(found: Array, typical: Array) -> str:
    """How the view is less well supported than most, or that it is hard all the same."""
    angle, exposure, distance = (
        FEATURE_NAMES.index(name) for name in ("sup_ang_mean", "sup_logE_mean", "g_dnn")
    )
    reasons = []
    if found[angle] > 1.1 * typical[angle]:
        reasons.append(
            f"surfaces seen {math.degrees(found[angle]):.0f}° away from the directions they were "
            f"photographed from (median {math.degrees(typical[angle]):.0f}°)"
        )
    if found[exposure] < typical[exposure] - math.log(1.25):
        share = math.exp(found[exposure] - typical[exposure])
        reasons.append(f"surfaces photographed {100 * share:.0f}% as often as the median")
    if found[distance] > 1.25 * typical[distance]:
        ratio = found[distance] / typical[distance]
        reasons.append(f"{ratio:.1f} times the median distance to a training camera")
    if not reasons:
        return "as well photographed as the rest, but hard: fine detail, gloss or motion"
    return "; ".join(reasons)
