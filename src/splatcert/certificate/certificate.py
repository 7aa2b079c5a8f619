# SPDX-License-Identifier: Apache-2.0
"""The certificate: a threshold, everything it rests on, and boxes for any camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera, camera_hash
from splatcert.certificate.boxes import CertifiedBoxes
from splatcert.certificate.diagnostics import SupportFlag
from splatcert.certificate.record import Record
from splatcert.certificate.rule import ScaleRule
from splatcert.difficulty.descriptor import CameraGeometry
from splatcert.difficulty.views_file import SceneViews
from splatcert.errors import InputError
from splatcert.field.fit import FieldFit
from splatcert.field.fitted_scene import Observed
from splatcert.splats.gaussians import Splats

OUTSIDE_BATCH = (
    "is no view of the batch that set the unit of the view factor, so the guarantee does not "
    "cover it; certify with unit deployed for cameras asked later"
)


class CertificateError(InputError):
    """A certificate that cannot be used, or not with this model."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Boxes with a guarantee for one model, one renderer and one set of calibration views.

    With probability at least 1 - alpha, at least a fraction 1 - beta of the pixels of a new
    view lie inside their boxes, if that view is exchangeable with the calibration views
    (thm:validity). Where calibration views have masks, of the pixels that count.
    """

    record: Record
    """All that certificate.json says."""
    fit: FieldFit
    """Residual field and support."""
    views: SceneViews
    """Per-view numbers of training and held-out views."""
    splats: Splats | None = None
    """The model; without it a certificate can be read, but predicts nothing."""

    @property
    def alpha(self) -> Fraction:
        """A new view may fall short with at most this probability."""
        return self.record.guarantee.alpha

    @property
    def beta(self) -> Fraction:
        """Share of a view's pixels that may miss."""
        return self.record.guarantee.beta

    @property
    def threshold(self) -> float:
        """q; infinite where there were too few calibration views."""
        return self.record.guarantee.threshold

    @property
    def guarantee(self) -> str:
        """The promise in words."""
        return self.record.guarantee.statement

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the calibration views, in order of their names, [m]."""
        return np.array([view.score for view in self.record.calibration])

    @property
    def usual_half_widths(self) -> list[float]:
        """Mean half-widths that calibration views get, or need where boxes are unbounded, [m]."""
        views = self.record.calibration
        if np.isfinite(self.threshold):
            return [self.threshold * view.factor for view in views]
        return [view.score * view.factor for view in views]

    @cached_property
    def rule(self) -> ScaleRule:
        """How a query becomes a scale."""
        return ScaleRule.of(self.record.scale)

    @cached_property
    def observed(self) -> Observed:
        """The model with all that is known of it without a held-out label."""
        if self.splats is None:
            raise CertificateError(
                "a certificate predicts only together with its model.\n"
                "  Load both: load_certificate(path, load_splats(model))."
            )
        renderer, scene = self.record.renderer, self.record.scene
        cameras = [view.camera.camera() for view in self.record.training]
        return observe(self.splats, self.fit, cameras, scene.extent, renderer.background)

    @cached_property
    def _batch(self) -> frozenset[str]:
        """Hashes of the cameras that set the unit in the paper's mode."""
        return frozenset(v.pose for v in (*self.record.calibration, *self.record.unlabelled))

    def predict(self, camera: Camera) -> CertifiedBoxes:
        """Boxes for one camera; the same whatever else is asked before, after or with it."""
        query = self.observed.query(camera, backend=self.record.renderer.backend)
        shape, factor = query.shape(self.rule.lambda_b), self.rule.factor(query.descriptor)
        flag = self.flag(query.descriptor, camera)
        return CertifiedBoxes.around(query.center, shape, factor, self.threshold, flag)

    def flag(self, descriptor: NDArray[np.float64], camera: Camera) -> SupportFlag:
        """Whether a camera, described so, stays within what the calibration views have shown."""
        flag = self.record.support.check(descriptor, camera)
        if self.record.scale.batch_only and camera_hash(camera) not in self._batch:
            flag = flag.beyond(OUTSIDE_BATCH)
        return flag

    def predict_batch(self, cameras: Sequence[Camera]) -> list[CertifiedBoxes]:
        """Boxes for several cameras, each as if it were asked alone."""
        return [self.predict(camera) for camera in cameras]

    def save(self, folder: str | Path) -> Path:
        """Write the certificate's folder; returns it."""
        from splatcert.certificate.store import save_certificate

        return save_certificate(self, Path(folder))


def observe(
    splats: Splats,
    fit: FieldFit,
    cameras: Sequence[Camera],
    extent: float,
    background: tuple[float, float, float],
) -> Observed:
    """The model with all that its training views, at these cameras, tell of it."""
    geometry = CameraGeometry(cameras, extent)
    return Observed(splats, fit.field, fit.support.total, geometry, background)
