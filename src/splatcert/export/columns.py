# SPDX-License-Identifier: Apache-2.0
"""Support and uncertainty of every Gaussian, as named columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from splatcert.certificate.certificate import Certificate
from splatcert.field.sightings import Sightings
from splatcert.scale import shrink
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import SH_CONSTANT, basis

STORED = {
    "exposure": "E, sum of its weights over all training views and pixels",
    "spread": "0 where it was photographed from one side only, towards 1 from all around",
    "views_seen": "training views in which it makes up at least a quarter of a pixel",
    "residual": "mean training residual of the pixels it shows in, RGB from 0 to 1",
    "field_mean": "residual field carried by it, mean over all directions, RGB from 0 to 1",
    "uncertainty": "certified half-width where it alone is seen as in training, in a view of "
    "factor one, RGB from 0 to 1",
}
"""Columns that are written, and what they mean."""
RENDERED = {
    "opacity": "peak opacity, 0 to 1 (the file's own column of this name is its logit)",
    "scale_max": "largest standard deviation, in the capture's units",
    "scale_min": "smallest standard deviation, in the capture's units",
    "x": "centre",
    "y": "centre",
    "z": "centre",
}
"""Further names that a rule may use, and what they mean."""


def support_columns(
    certificate: Certificate, report: Callable[[int], None] | None = None
) -> dict[str, Tensor]:
    """The columns of `STORED`, [N] each; every training camera is looked through once."""
    observed, record = certificate.observed, certificate.record
    support, field = observed.support, observed.field
    cameras = [view.camera.camera() for view in record.training]
    sightings = Sightings.of(
        observed.splats, cameras, backend=record.renderer.backend, report=report
    )
    return {
        "exposure": support.exposure,
        "spread": support.spread(),
        "views_seen": torch.from_numpy(sightings.counts()),
        "residual": support.residual_summary(),
        "field_mean": field.coefficients[:, 0] * SH_CONSTANT,
        "uncertainty": uncertainty(certificate),
    }


def uncertainty(certificate: Certificate) -> Tensor:
    """Half-width q b~ of a pixel that shows one Gaussian from where training views were, [N].

    The shape's mean is that of a usual calibration view, and its view factor one.
    """
    observed = certificate.observed
    coefficients = observed.field.coefficients
    towards = normalize(observed.support.direction.to(coefficients), dim=1)
    values = (coefficients * basis(towards, observed.field.degree)).sum(1)
    unseen = towards.norm(dim=1) == 0
    values = torch.where(unseen, coefficients[:, 0] * SH_CONSTANT, values)
    usual = float(np.median(certificate.views.held_out.field_means))
    shape = shrink(values.clamp(min=0), usual, certificate.rule.lambda_b)
    return shape * certificate.threshold


def rule_columns(splats: Splats, stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """All columns that a rule may name."""
    scales = splats.scales
    rendered = {
        "opacity": splats.opacities,
        "scale_max": scales.amax(1),
        "scale_min": scales.amin(1),
        **dict(zip("xyz", splats.means.unbind(1), strict=True)),
    }
    own = {name: column for name, column in splats.extra.items() if name.isidentifier()}
    return {**own, **rendered, **stored}


def with_columns(splats: Splats, stored: dict[str, Tensor]) -> Splats:
    """The splats with these columns; a column of the same name is replaced."""
    return replace(splats, extra={**splats.extra, **stored})


def with_colours(splats: Splats, colours: Tensor) -> Splats:
    """The same shapes in flat colours, [N, 3] in [0, 1], the same from every side."""
    sh = torch.zeros_like(splats.sh)
    sh[:, 0] = (colours.to(sh) - 0.5) / SH_CONSTANT
    return replace(splats, sh=sh)
