# SPDX-License-Identifier: Apache-2.0
"""The residual field: where this model is wrong, fitted to its own training views.

eq:spatial-fit   C = argmin sum_t |A_t C - e_t|^2 + tau |C - C_prior|^2

C_prior is a constant field at a high quantile of the training residuals, so whatever no
training view constrains counts as uncertain. tau is relative to the mean diagonal of sum A^T A.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.camera import Camera
from splatcert.config import FieldConfig
from splatcert.field.normal_equations import FieldError, mask_of, sweep
from splatcert.field.operator import NormalOperator, PreparedViews
from splatcert.field.solve import (
    BlockPreconditioner,
    FitTrace,
    Stopping,
    conjugate_gradients,
)
from splatcert.field.support import FoldedSupport
from splatcert.raster.abreast import one_torch_thread
from splatcert.raster.normal_sums import Rgb
from splatcert.raster.render import Backend
from splatcert.raster.view import View
from splatcert.scene.roles import TrainingView
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import SH_CONSTANT

Report = Callable[[str, int, int], None]
"""Called with the stage ("sweep" or "fit"), the work done and the total."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualField:
    """Residuals carried by the Gaussians, in harmonics of the direction to the camera."""

    coefficients: Tensor
    """C, float32 [N, K] with K = (degree + 1)^2; `field.operator` renders them."""
    degree: int
    prior: float
    """Value of the constant field that unseen Gaussians keep."""
    ridge: float
    """tau, absolute."""
    trace: FitTrace

    def __len__(self) -> int:
        return len(self.coefficients)


@dataclass(frozen=True, eq=False, kw_only=True)
class FieldFit:
    """Everything fitted to the labels of the training views."""

    field: ResidualField
    support: FoldedSupport
    psnr: NDArray[np.float64]
    """PSNR of each training view in the given order, in dB; NaN where no pixel counts, [T]."""
    seconds: float = 0.0
    """Duration of the fit; not stored."""
    details: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Seconds per stage and bytes of prepared views; not stored."""
    opened: Mapping[Camera, View] = dataclasses.field(default_factory=dict)
    """Training views still open after the fit; not stored."""


def fit_field(
    splats: Splats,
    training: Sequence[TrainingView],
    config: FieldConfig | None = None,
    *,
    background: Rgb = (0.0, 0.0, 0.0),
    backend: Backend = "cpu",
    report: Report | None = None,
) -> FieldFit:
    """Fit the field to the training residuals and add up the support, in one sweep and a solve.

    On the `cpu` back end the result has the same bits for any number of threads.
    """
    config = FieldConfig() if config is None else config
    if not training:
        raise FieldError("there are no training views to fit the residual field to.")
    splats.check_finite()
    clock = _Clock()
    with one_torch_thread(), torch.no_grad():
        views = PreparedViews(
            splats,
            [view.camera for view in training],
            backend=backend,
            limit=config.cache_mib << 20,
        )
        equations = sweep(
            views,
            training,
            degree=config.degree,
            folds=config.folds,
            background=background,
            report=_part(report, "sweep", len(training)),
        )
        clock.lap("sweep")
        prior = equations.residual_quantile(config.prior_quantile)
        ridge = config.ridge * equations.mean_diagonal()
        precondition = BlockPreconditioner(equations.sums.blocks, ridge)
        clock.lap("preconditioner")
        normal = NormalOperator(views, lambda index: mask_of(training[index]))
        change, trace = conjugate_gradients(
            lambda c: normal(c) + ridge * c,
            equations.right_hand_side(prior),
            precondition,
            Stopping(
                tolerance=config.tolerance,
                progress=config.progress,
                max_steps=config.max_steps,
            ),
            start=equations.misfit(prior),
            report=_part(report, "fit", config.max_steps),
        )
        clock.lap("solve")
        coefficients = change
        coefficients[:, 0] += prior / SH_CONSTANT
    return FieldFit(
        field=ResidualField(
            coefficients=coefficients.float(),
            degree=config.degree,
            prior=prior,
            ridge=ridge,
            trace=trace,
        ),
        support=FoldedSupport(equations.sums.support),
        psnr=equations.psnr,
        seconds=sum(clock.laps.values()),
        details=clock.laps | {"cache_bytes": views.used},
        opened=views.kept(),
    )


class _Clock:
    """Seconds between laps."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


def _part(report: Report | None, name: str, total: int) -> Callable[[int], None] | None:
    """Progress of one stage."""
    return None if report is None else lambda done: report(name, done, total)
