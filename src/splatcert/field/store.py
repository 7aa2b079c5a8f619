# SPDX-License-Identifier: Apache-2.0
"""Conversion between a fitted field and the arrays of its file, and their storage."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np
import torch

from splatcert.certificate.content.record import FieldRecord
from splatcert.certificate.field_file import FIELD, KEPT, FieldArrays
from splatcert.errors import InputError
from splatcert.field.fit import FieldFit, ResidualField
from splatcert.field.solve import FitTrace, Reason
from splatcert.field.support import FoldedSupport


def arrays_of(fit: FieldFit) -> FieldArrays:
    """The arrays that a fit's file holds."""
    found, trace = fit.field, fit.field.trace
    return FieldArrays(
        coefficients=found.coefficients.numpy(),
        support=fit.support.sums.numpy(),
        psnr=fit.psnr,
        relative_residuals=np.array(trace.relative_residuals, dtype=np.float64),
        objective=np.array(trace.objective, dtype=np.float64),
        degree=found.degree,
        prior=found.prior,
        ridge=found.ridge,
        true_residual=trace.true_residual,
        converged=trace.converged,
        reason=trace.reason,
    )


def fit_of(arrays: FieldArrays) -> FieldFit:
    """The fit that a file holds."""
    trace = FitTrace(
        relative_residuals=tuple(arrays.relative_residuals.tolist()),
        objective=tuple(arrays.objective.tolist()),
        true_residual=arrays.true_residual,
        converged=arrays.converged,
        reason=cast("Reason", arrays.reason),
    )
    field = ResidualField(
        coefficients=torch.from_numpy(arrays.coefficients),
        degree=arrays.degree,
        prior=arrays.prior,
        ridge=arrays.ridge,
        trace=trace,
    )
    support = FoldedSupport(torch.from_numpy(arrays.support))
    return FieldFit(field=field, support=support, psnr=arrays.psnr)


def save_field(path: Path, fit: FieldFit, *, inputs: Mapping[str, str] | None = None) -> None:
    """Write a fit; `inputs` are the SHA-256 hashes of its inputs, by name."""
    arrays_of(fit).save(path, inputs=inputs)


def load_field(
    path: Path, *, gaussians: int | None = None, inputs: Mapping[str, str] | None = None
) -> FieldFit:
    """Read a fit; refuse one that is damaged, or of a different model or different inputs."""
    return fit_of(FieldArrays.load(path, gaussians=gaussians, inputs=inputs))


def kept_field(
    folder: Path | None, *, gaussians: int, inputs: Mapping[str, str]
) -> FieldFit | None:
    """A field that an interrupted or finished run left in its folder, if its inputs match."""
    for name in () if folder is None else (KEPT, FIELD):
        with suppress(InputError):  # a damaged file counts as missing
            return load_field(cast("Path", folder) / name, gaussians=gaussians, inputs=inputs)
    return None


def field_record(fit: FieldFit) -> FieldRecord:
    """How the fit ended, for a certificate."""
    trace = fit.field.trace
    return FieldRecord(
        prior=float(fit.field.prior),
        ridge=float(fit.field.ridge),
        steps=trace.steps,
        converged=trace.converged,
        ending=trace.sentence(),
        residual=float(trace.true_residual),
        training_psnr=float(np.nanmean(fit.psnr)),
    )
