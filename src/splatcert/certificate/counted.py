# SPDX-License-Identifier: Apache-2.0
"""Which pixels a promise is about: all of a view's, or those that its mask lets count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from splatcert.evaluate.views import SceneViews
from splatcert.scene.cameras import Camera


@dataclass(frozen=True, kw_only=True)
class CountedPixels:
    """How much of the calibration photographs entered their scores."""

    masked_views: int
    """Calibration views of which some pixels do not count."""
    share: float
    """Pixels that count, of all pixels of the calibration views."""

    @classmethod
    def of(cls, views: SceneViews, calibration: Mapping[str, Camera]) -> CountedPixels:
        """From the stored counts of these held-out views and the sizes of their cameras."""
        known = dict(zip(views.held_out.names, views.held_out.pixels.tolist(), strict=True))
        counted = {name: known[name] for name in calibration}
        sizes = {name: camera.width * camera.height for name, camera in calibration.items()}
        return cls(
            masked_views=sum(counted[name] < sizes[name] for name in sizes),
            share=sum(counted.values()) / sum(sizes.values()),
        )

    def words(self, views: int) -> str:
        """For people, of so many calibration views."""
        return (
            f"on {self.masked_views} of {views} calibration views; {100 * self.share:.1f}% of "
            "the pixels count, and the guarantee is about these"
        )
