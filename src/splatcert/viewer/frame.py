# SPDX-License-Identifier: Apache-2.0
"""One frame: what a viewpoint shows, and how hard it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.certificate.boxes import CertifiedBoxes
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.honesty import SupportFlag
from splatcert.report.colours import WidthScale
from splatcert.scene.cameras import Camera
from splatcert.viewer.colours import coloured
from splatcert.viewer.viewpoint import Viewpoint

Pixels = NDArray[np.uint8]
Mode = Literal["RGB", "half-width", "lower", "upper"]
MODES: tuple[Mode, ...] = ("RGB", "half-width", "lower", "upper")


@dataclass(frozen=True)
class Look:
    """What of the boxes is shown."""

    mode: Mode
    threshold: float
    scale: WidthScale


@dataclass(frozen=True, eq=False)
class Frame:
    """A picture with what is known about its view."""

    pixels: Pixels
    """[H, W, 3]."""
    factor: float
    """a_v."""
    support: SupportFlag
    share: float
    """Of the certified width and height; below 1 it is a preview."""


def certified_pixels(certificate: Certificate) -> int:
    """Pixels of a picture that the promise is about: as many as calibration views have."""
    sizes = [view.camera.width * view.camera.height for view in certificate.record.calibration]
    return int(np.median(sizes))


def draw(certificate: Certificate, viewpoint: Viewpoint, look: Look, share: float = 1.0) -> Frame:
    """A frame at the certified number of pixels, or a preview with a share of its sides.

    A preview's factor and flag are those of a coarser picture, the flag's question about size
    apart, which is asked of the full one.
    """
    full = viewpoint.camera(certified_pixels(certificate))
    size = (max(1, round(side * share)) for side in (full.width, full.height))
    boxes = boxes_at(certificate, full.resized(*size), look.threshold, asked=full)
    return Frame(picture(boxes, look), boxes.view_factor, boxes.support, share)


def boxes_at(
    certificate: Certificate, camera: Camera, threshold: float, asked: Camera | None = None
) -> CertifiedBoxes:
    """`Certificate.predict` at a threshold of other levels; flagged as the camera `asked`."""
    query = certificate.observed.query(camera, backend=certificate.record.renderer.backend)
    shape = query.shape(certificate.rule.lambda_b)
    factor = certificate.rule.factor(query.descriptor)
    flag = certificate.flag(query.descriptor, asked or camera)
    return CertifiedBoxes.around(query.center, shape, factor, threshold, flag)


def picture(boxes: CertifiedBoxes, look: Look) -> Pixels:
    """One side of the boxes, [H, W, 3]."""
    if look.mode == "half-width":
        return coloured(boxes.half_width.cpu().numpy(), look.scale)
    if look.mode == "RGB":
        return to_bytes(boxes.center)
    return to_bytes(boxes.lower if look.mode == "lower" else boxes.upper)


def to_bytes(colours: Tensor) -> Pixels:
    """Colours [H, W, 3], clamped to [0, 1], as bytes."""
    clamped = colours.cpu().numpy().clip(0, 1)
    return np.asarray(cv2.convertScaleAbs(clamped, alpha=255), dtype=np.uint8)
