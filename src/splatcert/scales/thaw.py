# SPDX-License-Identifier: Apache-2.0
"""A certified scale brought back to life, and its half-widths compared with recomputed ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.certificate import Certificate
from splatcert.field.store import fit_of
from splatcert.raster.render import Backend
from splatcert.scales.scale import FrozenScale, Scale
from splatcert.scales.training_views import fitted_scene
from splatcert.scene.roles import TrainingView
from splatcert.splats.gaussians import Splats
from splatcert.witnesses.photos import certified_photos


def thawed(
    certificate: Certificate,
    splats: Splats,
    scale: Scale,
    photos: Sequence[TrainingView] | None,
    backend: Backend | None = None,
) -> FrozenScale:
    """The certified scale, from the stored field, support and rule.

    It looks at views through the certified renderer, unless another back end is named.
    """
    record = certificate.record
    backend = backend or record.renderer.backend
    fitted = fitted_scene(
        splats,
        fit_of(certificate.field),
        [view.camera for view in record.training],
        record.scene.extent,
        record.renderer.background,
    )
    if scale.needs_photos:
        known = certified_photos(record.training, photos)
        scale = scale.prepared(known, fitted, backend)
    return scale.thaw(record.scale, fitted, backend)


def half_widths(
    stored: Certificate,
    recomputed: Certificate,
    splats: Splats,
    scale: Scale,
    photos: Sequence[TrainingView] | None = None,
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Half-widths over q at the calibration cameras: as certified, and as recomputed."""
    frozen = thawed(stored, splats, scale, photos, recomputed.record.renderer.backend)
    again = cast("FrozenScale", recomputed.scale)
    for view in recomputed.record.calibration:  # cameras of the capture, not of a stranger's file
        yield view.name, frozen(view.camera).scale(), again(view.camera).scale()
