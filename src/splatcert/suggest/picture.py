# SPDX-License-Identifier: Apache-2.0
"""The picture that `splatcert suggest` writes: a map of the capture, and suggested views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate
from splatcert.report.colours import WidthScale
from splatcert.scene.camera_paths import Layout
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import SH_CONSTANT
from splatcert.storage.png import INK, PAPER, Pixels, to_pixels
from splatcert.suggest.rank import Suggestion

Floats = NDArray[np.float64]
Colour = tuple[int, int, int]
SMOOTH = 3
"""The map is drawn this much larger, then reduced for smooth lines."""
COARSE = 3
"""Side in pixels of the map's cells, each in one colour of the scene."""
MARGIN = 0.12
TRAINING = (147, 197, 253)
"""Colour of training cameras."""
FAINT = 0.75
"""Opacity of the scene in the map."""
SHOWN = 6
"""Suggestions that are also shown as small renders."""
MAP, PANEL, LEGEND, LINE = 760, 300, 88, 24
TALLEST = 3 * PANEL
"""Sizes within the picture, in pixels."""


def picture(certificate: Certificate, found: Sequence[Suggestion]) -> Pixels:
    """The map with all suggestions, and the first ones as small renders."""
    scale = WidthScale.of(certificate)
    training = [view.camera for view in certificate.record.training]
    plan = PlanView.around([*training, *(one.camera for one in found)], MAP)
    shown = panels(certificate, found[:SHOWN], scale)
    height = max(MAP + LEGEND + LINE * len(found), len(shown) * shown[0].height) + 16
    sheet = Image.new("RGB", (MAP + shown[0].width + 32, height), PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=14)
    sheet.paste(
        Image.fromarray(plan.draw(certificate.fitted.splats, training, marks(found))), (0, 0)
    )
    draw.text((16, MAP + 12), f"{len(training)} training cameras", fill=TRAINING, font=font)
    words = f"{len(found)} suggestions; the lighter, the larger the gain"
    draw.text((16, MAP + 34), words, fill=INK, font=font)
    draw.text(
        (MAP - 276, MAP + 12), "half-width in the small pictures, of 255", fill=INK, font=font
    )
    scale.draw(draw, MAP - 276, MAP + 38, 256)
    for place, one in enumerate(found, 1):
        line = MAP + LEGEND + LINE * (place - 1)
        draw.text((34, line), f"{place}", fill=INK, font=font, anchor="ra")
        draw.text((46, line), one.in_short(), fill=INK, font=font)
    for row, panel in enumerate(shown):
        sheet.paste(panel, (MAP + 16, 8 + row * panel.height))
    return np.asarray(sheet)


def marks(found: Sequence[Suggestion]) -> dict[str, tuple[Camera, Colour]]:
    """Suggestions by rank, coloured by gain; the smallest gain is still visible."""
    most = max(one.gain for one in found)
    marked = {}
    for place, one in enumerate(found, 1):
        share = np.array([0.35 + 0.65 * one.gain / most])
        red, green, blue = WidthScale(255).colours(share)[0]
        marked[str(place)] = (one.camera, (int(red), int(green), int(blue)))
    return marked


def panels(
    certificate: Certificate, found: Sequence[Suggestion], scale: WidthScale
) -> list[Image.Image]:
    """Each suggestion as it renders now, beside its half-width."""
    font, drawn = ImageFont.load_default(size=14), []
    camera = found[0].camera
    size = PANEL, min(max(1, round(PANEL * camera.height / camera.width)), TALLEST)
    for place, one in enumerate(found, 1):
        boxes = certificate.predict(one.camera)
        sheet = Image.new("RGB", (2 * PANEL + 16, size[1] + 30), PAPER)
        ImageDraw.Draw(sheet).text(
            (0, 4), f"{place}  {one.start}: {one.move}"[:80], fill=INK, font=font
        )
        halves = (
            to_pixels(boxes.center.cpu().numpy()),
            scale.colours(boxes.half_width.cpu().numpy()),
        )
        for column, pixels in enumerate(halves):
            small = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS)
            sheet.paste(small, (column * (PANEL + 16), 26))
        drawn.append(sheet)
    return drawn


@dataclass(frozen=True, eq=False)
class PlanView:
    """A map of a capture seen from above."""

    layout: Layout
    size: int
    centre: Floats
    """Centre of the map in the plane, [2]."""
    reach: float
    """Distance from the centre to the nearest edge, in the capture's units."""

    @classmethod
    def around(cls, cameras: Sequence[Camera], size: int) -> PlanView:
        """A map that contains all these cameras."""
        layout = Layout.of(cameras)
        flat = _flat(layout, layout.centres)
        low, high = flat.min(axis=0), flat.max(axis=0)
        reach = (0.5 + MARGIN) * float((high - low).max())
        return cls(layout, size, (low + high) / 2, max(reach, 1e-9))

    def pixels(self, points: Floats) -> Floats:
        """Positions on the enlarged picture, [N, 2]."""
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
            self._camera(draw, camera, TRAINING, 0.018)
        font = ImageFont.load_default(size=15 * SMOOTH)
        for label, (camera, colour) in reversed(list(marked.items())):
            x, y = self._camera(draw, camera, colour, 0.06)
            radius = 11 * SMOOTH
            circle = [x - radius, y - radius, x + radius, y + radius]
            draw.ellipse(circle, fill=PAPER, outline=colour, width=2 * SMOOTH)
            draw.text((x, y), label, fill=INK, font=font, anchor="mm")
        return np.asarray(sheet.resize((self.size, self.size), Image.Resampling.LANCZOS))

    def _scene(self, splats: Splats) -> Pixels:
        """Centres of opaque Gaussians in their own colours, faintly."""
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
        """Draw a wedge in the viewing direction; returns the camera's position."""
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
