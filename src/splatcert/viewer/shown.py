# SPDX-License-Identifier: Apache-2.0
"""What is shown to every client: made ready once, never changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splatcert.certificate.certificate import Certificate
from splatcert.report.colours import WidthScale
from splatcert.scene.scene import Scene
from splatcert.viewer.html import Gauge
from splatcert.viewer.known_views import KnownView, known_views
from splatcert.viewer.levels import StoredLevels
from splatcert.viewer.viewpoint import Array


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A certificate with its model, and all that can be prepared before anybody looks."""

    certificate: Certificate
    scene: Scene | None
    """The capture, for photographs whose labels were used; None without."""
    views: tuple[KnownView, ...]
    levels: StoredLevels
    gauge: Gauge
    pixel_scale: WidthScale
    """Of pixels. Both scales are absolute: they depend on the certificate and not on what is
    looked at, so that a colour means the same number in every view and mode."""
    view_scale: WidthScale
    """Of views as a whole, none of which is as wide on average as its widest pixels."""

    @classmethod
    def of(cls, certificate: Certificate, scene: Scene | None) -> Exhibit:
        """Of a certificate that has its model."""
        factors = [view.factor for view in certificate.record.calibration]
        gauge = Gauge(min(factors), max(factors), certificate.rule.predictor is not None)
        views, levels = known_views(certificate), StoredLevels.of(certificate)
        return cls(
            certificate,
            scene,
            views,
            levels,
            gauge,
            WidthScale.for_pixels(certificate.usual_half_widths),
            WidthScale.holding(max(certificate.usual_half_widths)),
        )

    @property
    def extent(self) -> float:
        """Size of the scene."""
        return self.certificate.record.scene.extent

    @property
    def start(self) -> KnownView:
        """The view to begin with: a calibration view of middling difficulty."""
        known = [view for view in self.views if view.role == "calibration"]
        return sorted(known, key=lambda view: (view.factor, view.needed))[len(known) // 2]

    @property
    def up(self) -> Array:
        """What photographers held upwards, on average, [3]."""
        views = [view for view in self.views if view.role == "training"]
        mean = np.mean([-view.camera.world_to_camera[1, :3] for view in views], axis=0)
        length = float(np.linalg.norm(mean))
        return mean / length if length > 1e-6 else -views[0].camera.world_to_camera[1, :3]
