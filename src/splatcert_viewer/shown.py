# SPDX-License-Identifier: Apache-2.0
"""State that all clients share: prepared once, never changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splatcert.certificate.certificate import Certificate
from splatcert.report.colours import WidthScale
from splatcert.scene.scene import Scene
from splatcert_viewer.cameras.known_views import KnownView, known_views
from splatcert_viewer.cameras.viewpoint import Array
from splatcert_viewer.html import Gauge
from splatcert_viewer.levels import Levels


@dataclass(frozen=True, eq=False)
class ViewerState:
    """A certificate with its model, and everything that can be prepared in advance."""

    certificate: Certificate
    scene: Scene | None
    """The capture, for the photographs the certificate used; None without them."""
    views: tuple[KnownView, ...]
    levels: Levels
    gauge: Gauge
    pixel_scale: WidthScale
    """Colours for pixels. Both scales depend on the certificate alone, so that a colour means the
    same number in every view and mode."""
    view_scale: WidthScale
    """Colours for the mean half-widths of views, which are smaller than those of single pixels."""

    @classmethod
    def of(cls, certificate: Certificate, scene: Scene | None) -> ViewerState:
        """The state for a certificate that has its model."""
        factors = [view.factor for view in certificate.record.calibration]
        gauge = Gauge(min(factors), max(factors), min(factors) < max(factors))
        views, levels = known_views(certificate), Levels.of(certificate)
        return cls(
            certificate,
            scene,
            views,
            levels,
            gauge,
            WidthScale.of(certificate),
            WidthScale.holding(max(certificate.usual_half_widths)),
        )

    @property
    def extent(self) -> float:
        """Size of the scene."""
        return self.certificate.record.scene.extent

    @property
    def start(self) -> KnownView:
        """The initial view: the calibration view of median difficulty."""
        known = [view for view in self.views if view.role == "calibration"]
        return sorted(known, key=lambda view: (view.factor, view.needed))[len(known) // 2]

    @property
    def up(self) -> Array:
        """Mean up direction of the training cameras, [3]."""
        views = [view for view in self.views if view.role == "training"]
        mean = np.mean([-view.camera.world_to_camera[1, :3] for view in views], axis=0)
        length = float(np.linalg.norm(mean))
        return mean / length if length > 1e-6 else -views[0].camera.world_to_camera[1, :3]
