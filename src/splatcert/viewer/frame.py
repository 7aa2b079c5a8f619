# SPDX-License-Identifier: Apache-2.0
"""What the viewer paints: the frame of a viewpoint, and the card of one view of the capture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.camera import Camera
from splatcert.certificate.boxes import CertifiedBoxes
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.diagnostics import SupportFlag
from splatcert.certificate.hashes import label_hash
from splatcert.conformal.levels import in_percent
from splatcert.report.colours import WidthScale
from splatcert.scene.scene import Scene
from splatcert.viewer.colours import coloured
from splatcert.viewer.known_views import KnownView, photo_of
from splatcert.viewer.levels import Promise
from splatcert.viewer.viewpoint import Viewpoint

Pixels = NDArray[np.uint8]
Mode = Literal["RGB", "half-width", "lower", "upper"]
MODES: tuple[Mode, ...] = ("RGB", "half-width", "lower", "upper")
MISSED, NOT_COUNTED = (255, 64, 64), (16, 16, 20)
"""Colours of pixels outside their boxes, and of masked pixels."""
FADED = 0.45
"""Brightness of all other pixels in a picture of misses."""


@dataclass(frozen=True)
class DisplayMode:
    """Which side of the boxes is shown, at which threshold and colours."""

    mode: Mode
    threshold: float
    scale: WidthScale


@dataclass(frozen=True, eq=False)
class Frame:
    """A picture, and what is known about its view."""

    pixels: Pixels
    """[H, W, 3]."""
    factor: float
    """a_v."""
    support: SupportFlag
    share: float
    """Share of the certified width and height; below 1 it is a preview."""


def certified_pixels(certificate: Certificate) -> int:
    """Number of pixels that the guarantee is about: the median over calibration views."""
    sizes = [view.camera.width * view.camera.height for view in certificate.record.calibration]
    return int(np.median(sizes))


def draw(
    certificate: Certificate, viewpoint: Viewpoint, display: DisplayMode, share: float = 1.0
) -> Frame:
    """A frame at the certified number of pixels, or a preview at a share of its sides.

    A preview's factor and flag come from the coarser picture; only the flag's check of the image
    size uses the full one.
    """
    full = viewpoint.camera(certified_pixels(certificate))
    size = (max(1, round(side * share)) for side in (full.width, full.height))
    boxes = boxes_at(certificate, full.resized(*size), display.threshold, asked=full)
    return Frame(picture(boxes, display), boxes.view_factor, boxes.support, share)


def boxes_at(
    certificate: Certificate, camera: Camera, threshold: float, asked: Camera | None = None
) -> CertifiedBoxes:
    """`Certificate.predict` at another threshold; the flag is that of the camera `asked`."""
    query = certificate.observed.query(camera, backend=certificate.record.renderer.backend)
    shape = query.shape(certificate.rule.lambda_b)
    factor = certificate.rule.factor(query.descriptor)
    flag = certificate.flag(query.descriptor, asked or camera)
    return CertifiedBoxes.around(query.center, shape, factor, threshold, flag)


def picture(boxes: CertifiedBoxes, display: DisplayMode) -> Pixels:
    """One side of the boxes, [H, W, 3]."""
    if display.mode == "half-width":
        return coloured(boxes.half_width.cpu().numpy(), display.scale)
    if display.mode == "RGB":
        return to_bytes(boxes.center)
    return to_bytes(boxes.lower if display.mode == "lower" else boxes.upper)


def to_bytes(colours: Tensor) -> Pixels:
    """Colours [H, W, 3], clamped to [0, 1], as bytes."""
    clamped = colours.cpu().numpy().clip(0, 1)
    return np.asarray(cv2.convertScaleAbs(clamped, alpha=255), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Card:
    """One view of the capture in detail."""

    words: str
    """How well its photograph is covered, or why it is not shown."""
    render: Pixels
    photo: Pixels | None = None
    misses: Pixels | None = None


def make_card(
    certificate: Certificate, view: KnownView, promise: Promise, scene: Scene | None
) -> Card:
    """Render, photograph and misses of one view, exactly as certified."""
    boxes = boxes_at(certificate, view.camera, promise.threshold)
    render = to_bytes(boxes.center)
    if scene is None:
        return Card("Start the viewer with --data to see the photograph and its misses.", render)
    labelled = photo_of(view, scene)
    if labelled is None:
        unused = "The certificate used no photograph of this view."
        missing = "The photograph of this view is missing."
        return Card(unused if view.image is None else missing, render)
    if label_hash(labelled) != view.image:
        return Card("The photograph differs from the certified one, so it is not shown.", render)
    photo = labelled.image().to(boxes.center)
    counted = labelled.mask().to(boxes.center.device) if labelled.has_mask else None
    missed = ~boxes.contains(photo)
    return Card(
        _verdict(view, missed if counted is None else missed[counted], promise),
        render,
        to_bytes(photo),
        _misses(boxes.center, missed, counted),
    )


def _verdict(view: KnownView, missed: Tensor, promise: Promise) -> str:
    """How many pixels lie outside their boxes, in words."""
    share = float(missed.double().mean())
    met = "covered" if share <= promise.beta else "not covered"
    caution = " The model was trained on this photo." if view.role == "training" else ""
    return (
        f"{100 * share:.1f}% of its pixels lie outside their boxes; up to "
        f"{in_percent(promise.beta)} may. The view is {met}.{caution}"
    )


def _misses(center: Tensor, missed: Tensor, counted: Tensor | None) -> Pixels:
    """The render, faded to grey, with pixels outside their boxes marked, [H, W, 3]."""
    grey = to_bytes(FADED * center.mean(dim=-1, keepdim=True).expand_as(center)).copy()
    grey[missed.cpu().numpy()] = MISSED
    if counted is not None:
        grey[~counted.cpu().numpy()] = NOT_COUNTED
    return grey
