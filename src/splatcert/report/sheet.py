# SPDX-License-Identifier: Apache-2.0
"""Views of a certificate beside their half-widths, as one picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from splatcert.console import progress
from splatcert.report.colours import WidthBar
from splatcert.storage.png import CAPTION_HEIGHT, INK, PAPER, Pixels, save_png, to_pixels

if TYPE_CHECKING:
    from splatcert.camera import Camera
    from splatcert.certificate.certificate import Certificate

GAP, FONT_SIZE = 12, 14
STEP = 0.4
"""Of the extent: just beyond what the calibration views showed."""


def save_sheet(path: Path, certificate: Certificate) -> None:
    """Four views, each as render and half-width, under one scale of colours."""
    views = chosen_views(certificate)
    boxes = {
        caption: certificate.predict(camera)
        for caption, camera in progress(list(views.items()), "rendering")
    }
    scale, rows = WidthBar.of(certificate), []
    for caption, one in boxes.items():
        words = f"{caption}: {one.support.words().split(':')[0]}"
        picture = to_pixels(one.center.numpy())
        rows.append(pair(words, picture, scale.colours(one.half_width.numpy()), scale.top))
    save_png(path, np.vstack([np.hstack(rows[:2]), np.hstack(rows[2:])]))


def chosen_views(certificate: Certificate) -> dict[str, Camera]:
    """The easiest, a middling and the hardest calibration view, and a place nobody stood.

    Hard is what needs wide boxes, whether or not they were foreseen: a score would not say so.
    """
    views = certificate.views
    needed = views.oracle("held-out", certificate.beta, certificate.rule.lambda_b)
    width = dict(zip(views.held_out.names, needed, strict=True))
    ranked = sorted(certificate.record.calibration, key=lambda view: width[view.name])
    hardest = ranked[-1].camera.camera()
    return {
        "easiest held-out view": ranked[0].camera.camera(),
        "a middling one": ranked[len(ranked) // 2].camera.camera(),
        "hardest held-out view": hardest,
        "from where nobody stood": stepped_back(hardest, STEP * certificate.record.scene.extent),
    }


def stepped_back(camera: Camera, distance: float) -> Camera:
    """The same camera, moved against its viewing axis."""
    pose = np.array(camera.world_to_camera)
    pose[2, 3] += distance
    return replace(camera, world_to_camera=pose)


def pair(caption: str, picture: Pixels, widths: Pixels, top: int) -> Pixels:
    """Two pictures side by side under their captions."""
    height, width = picture.shape[:2]
    sheet = Image.new("RGB", (2 * width + GAP, height + CAPTION_HEIGHT + GAP), PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=FONT_SIZE)
    captions = (caption, f"half-width, 0 (dark) to {top} of 255 and more (light)")
    for column, (words, pixels) in enumerate(zip(captions, (picture, widths), strict=True)):
        draw.text((column * width + 6, 4), words, fill=INK, font=font)
        sheet.paste(Image.fromarray(pixels), (column * width, CAPTION_HEIGHT))
    return np.asarray(sheet)
