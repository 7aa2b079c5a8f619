# SPDX-License-Identifier: Apache-2.0
"""A map of a capture from above: what was photographed from where, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from splatcert.commands.pictures import INK, PAPER, Pixels
from splatcert.scene.camera_paths import Layout
from splatcert.scene.cameras import Camera
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import SH_CONSTANT

Floats = NDArray[np.float64]
Colour = tuple[int, int, int]

SMOOTH = 3
"""Drawn this much larger, then reduced: lines without steps."""
COARSE = 3
"""Pixels of the map that share one colour of the scene."""
MARGIN = 0.12
SEEN = (147, 197, 253)
"""Of training cameras."""
FAINT = 0.75
"""How much of the scene's own colours is left in the map."""


@dataclass(frozen=True, eq=False)
class PlanView:
    """The horizontal plane of a capture, and its way onto a picture."""

    layout: Layout
    size: int
    centre: Floats
    """Of the map, in the plane, [2]."""
    reach: float
    """From the centre to the nearest edge, in the capture's units."""

    @classmethod
    def around(cls, cameras: Sequence[Camera], size: int) -> PlanView:
        """A map that holds all these cameras."""
        layout = Layout.of(cameras)
        flat = _flat(layout, layout.centres)
        low, high = flat.min(axis=0), flat.max(axis=0)
        reach = (0.5 + MARGIN) * float((high - low).max())
        return cls(layout, size, (low + high) / 2, max(reach, 1e-9))

    def pixels(self, points: Floats) -> Floats:
        """Places on the enlarged picture, [N, 2]."""
        share = (_flat(self.layout, points) - self.centre) / self.reach
        # Seen from above: the second direction of the plane runs up the page.
        return (0.5 + 0.5 * share * (1, -1)) * self.size * SMOOTH

    def draw(
        self,
        splats: Splats,
        training: Sequence[Camera],
        marked: Mapping[str, tuple[Camera, Colour]],
    ) -> Pixels:
        """The map: scene, training cameras, and marked cameras with their labels."""
        side = self.size * SMOOTH
        sheet = Image.fromarray(self._scene(splats)).resize((side, side), Image.Resampling.BILINEAR)
        draw = ImageDraw.Draw(sheet)
        for camera in training:
            self._camera(draw, camera, SEEN, 0.018)
        font = ImageFont.load_default(size=15 * SMOOTH)
        for label, (camera, colour) in reversed(list(marked.items())):
            x, y = self._camera(draw, camera, colour, 0.06)
            radius = 11 * SMOOTH
            circle = [x - radius, y - radius, x + radius, y + radius]
            draw.ellipse(circle, fill=PAPER, outline=colour, width=2 * SMOOTH)
            draw.text((x, y), label, fill=INK, font=font, anchor="mm")
        return np.asarray(sheet.resize((self.size, self.size), Image.Resampling.LANCZOS))

    def _scene(self, splats: Splats) -> Pixels:
        """Centres of opaque Gaussians in their own faint colours, low over high."""
        means = splats.means.cpu().double().numpy()
        colours = splats.sh[:, 0].cpu().numpy() * SH_CONSTANT + 0.5
        opaque = splats.opacities.cpu().numpy() > 0.5
        centres = self.layout.centres @ self.layout.up
        # A roof or a ceiling would hide what lies below the cameras.
        chosen = np.flatnonzero(opaque & (means @ self.layout.up < centres.max()))
        places = self.pixels(means[chosen]) / (SMOOTH * COARSE)
        side = self.size // COARSE
        inside = ((places >= 0) & (places < side)).all(axis=1)
        columns, rows = places[inside].astype(int).T
        total, weight = np.zeros((side, side, 3)), np.zeros((side, side, 1))
        np.add.at(total, (rows, columns), colours[chosen[inside]].clip(0, 1))
        np.add.at(weight, (rows, columns), 1.0)
        shown = total / np.maximum(weight, 1)
        share = FAINT * np.minimum(weight, 2) / 2
        paper = np.array(PAPER) / 255
        return np.round(255 * (share * shown + (1 - share) * paper)).astype(np.uint8)

    def _camera(
        self, draw: ImageDraw.ImageDraw, camera: Camera, colour: Colour, length: float
    ) -> tuple[float, float]:
        """A wedge that opens to where the camera looks; returns where it stands."""
        tangent = camera.width / (2 * camera.fx)
        rotation = camera.world_to_camera[:3, :3]
        ends = [camera.forward + side * tangent * rotation[0] for side in (-1, 1)]
        away = length * 2 * self.reach
        corners = np.array([camera.centre, *(camera.centre + away * end for end in ends)])
        x, y = self.pixels(corners).T
        draw.polygon(list(zip(x, y, strict=True)), outline=colour, width=SMOOTH)
        return float(x[0]), float(y[0])


def _flat(layout: Layout, points: Floats) -> Floats:
    first, second = layout.plane()
    return np.stack([points @ first, points @ second], axis=-1)
