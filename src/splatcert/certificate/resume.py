# SPDX-License-Identifier: Apache-2.0
"""The fitted field, kept in the certificate's folder while the rest is computed.

Fitting takes most of the time of a run. One that is stopped goes on from the field it had
fitted, if splats, training views, renderer and settings are still the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from splatcert.certificate.issue import Request, model_record, renderer_record
from splatcert.certificate.record import TrainingRecord
from splatcert.certificate.store import FIELD, KEPT, field_inputs
from splatcert.errors import InputError
from splatcert.field.fit import FieldFit, fit_field
from splatcert.field.store import load_field, save_field

STAGES = {"sweep": "rendering training views", "fit": "fitting the residual field"}


def fitted_field(request: Request, seen: Sequence[TrainingRecord], folder: Path | None) -> FieldFit:
    """The field of these splats and training views: from the folder if it is there."""
    config = request.config
    renderer = renderer_record(request.backend, config.background)
    inputs = field_inputs(model_record(request.splats), seen, renderer, config.field)
    for path in () if folder is None else (folder / KEPT, folder / FIELD):
        with suppress(InputError):  # a damaged file is as good as none
            return load_field(path, gaussians=len(request.splats), inputs=inputs)
    fit = fit_field(
        request.splats,
        request.scene.training,
        config.field,
        background=config.background,
        backend=request.backend,
        report=lambda doing, done, total: request.tell(STAGES.get(doing, doing), done, total),
    )
    if folder is not None:
        save_field(folder / KEPT, fit, inputs=inputs)
    return fit
