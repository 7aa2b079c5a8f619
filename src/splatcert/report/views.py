# SPDX-License-Identifier: Apache-2.0
"""Calibration views as the report shows them: renders, boxes, misses and pixel coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.certificate.hashes import label_hash
from splatcert.conformal.maps import rgb_residual
from splatcert.progress import Progress
from splatcert.report.content import ShapeTest
from splatcert.report.pictures import Mask, ViewPicture
from splatcert.scene.roles import EvaluationView
from splatcert.scene.scene import Scene

Array = NDArray[np.float64]
BINS = 10


@dataclass(frozen=True, eq=False)
class ReportViews:
    """What rendering the calibration views yields for the report."""

    pictures: tuple[ViewPicture, ...] = ()
    inside: Array | None = None
    """Share of pixels inside their boxes per calibration view; None without photographs."""
    shape_test: ShapeTest | None = None


def render_views(
    certificate: Certificate,
    scene: Scene | None,
    shown: Sequence[str],
    *,
    photos: bool,
    on: Progress,
) -> ReportViews:
    """Render the views to show; with photographs, count the misses of every calibration view."""
    bounded = math.isfinite(certificate.threshold)
    labels = _labels(certificate, scene) if scene is not None and bounded else {}
    names = [view.name for view in certificate.record.calibration] if labels else list(shown)
    pictures: dict[str, ViewPicture] = {}
    inside, tenths = [], []
    for done, name in enumerate(names):
        on("rendering calibration views", done, len(names))
        seen = _View.of(certificate, name, labels.get(name))
        if seen.label is not None:
            inside.append(seen.share_inside())
            tenths.append(seen.error_by_shape())
        if name in shown:
            pictures[name] = seen.picture(photos)
    flat = certificate.record.scale.shape == 0
    return ReportViews(
        pictures=tuple(pictures[name] for name in shown),
        inside=np.array(inside) if labels else None,
        shape_test=None if flat or not labels else ShapeTest(*np.mean(tenths, axis=0)),
    )


def _labels(certificate: Certificate, scene: Scene) -> dict[str, EvaluationView]:
    """The calibration views with their photos, refused unless they are the certified ones."""
    expected = {view.name: view.image for view in certificate.record.calibration}
    found = scene.held_out.reveal("evaluation", tuple(expected), by="report")
    if others := [view.name for view in found if label_hash(view) != expected[view.name]]:
        raise CertificateError(
            f"{len(others)} of {len(found)} photos differ from the certified ones "
            f"(first: {others[0]}).\n"
            "  Pass the certified capture, or write the report from the certificate alone."
        )
    return {view.name: view for view in found}


@dataclass(frozen=True, eq=False)
class _View:
    """One calibration view with its boxes, and its photo where it is given."""

    name: str
    center: NDArray[np.float32]
    half_width: NDArray[np.float32]
    missed: Mask | None
    error: Array | None
    """[H, W]."""
    counted: Mask
    label: EvaluationView | None

    @classmethod
    def of(cls, certificate: Certificate, name: str, label: EvaluationView | None) -> _View:
        (record,) = (view for view in certificate.record.calibration if view.name == name)
        boxes = certificate.predict(record.camera)
        center, half_width = boxes.center.cpu().numpy(), boxes.half_width.cpu().numpy()
        counted, missed, error = np.ones(half_width.shape, dtype=bool), None, None
        if label is not None:
            image = label.image()
            counted = label.mask().cpu().numpy()
            missed = ~boxes.contains(image).cpu().numpy() & counted
            error = rgb_residual(image.cpu().numpy(), center)
        return cls(name, center, half_width, missed, error, counted, label)

    def share_inside(self) -> float:
        """Share of unmasked pixels inside their boxes."""
        assert self.missed is not None
        return 1 - float(self.missed.sum() / self.counted.sum())

    def error_by_shape(self) -> Array:
        """Mean shape and mean relative error per tenth of the pixels, ordered by shape, [2, 10]."""
        assert self.error is not None
        shape = (self.half_width / self.half_width.mean(dtype=np.float64))[self.counted]
        error = self.error[self.counted]
        relative = error / max(float(error.mean()), 1e-12)
        tenths = np.array_split(np.argsort(shape, kind="stable"), BINS)
        means = [[values[rows].mean() for rows in tenths] for values in (shape, relative)]
        return np.array(means)

    def picture(self, photos: bool) -> ViewPicture:
        """The view reduced to what the page shows."""
        bounded = bool(np.isfinite(self.half_width).all())
        photo = self.label.image().cpu().numpy() if self.label and photos else None
        return ViewPicture.reduced(
            self.name,
            center=self.center,
            half_width=self.half_width if bounded else None,
            missed=self.missed,
            error=self.error,
            photo=photo,
        )
