# SPDX-License-Identifier: Apache-2.0
"""One frame: what a viewpoint shows, and how hard it is."""

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


MISSED, NOT_COUNTED = (255, 64, 64), (16, 16, 20)
FADED = 0.45
"""Brightness of what lies inside its box, where misses are shown."""


@dataclass(frozen=True, eq=False)
class Card:
    """One view close up."""

    words: str
    """What its photograph says, or why there is none."""
    render: Pixels
    photo: Pixels | None = None
    misses: Pixels | None = None


def make_card(
    certificate: Certificate, view: KnownView, promise: Promise, scene: Scene | None
) -> Card:
    """Render, photograph and misses of one view, exactly as it was certified."""
    boxes = boxes_at(certificate, view.camera, promise.threshold)
    render = to_bytes(boxes.center)
    if scene is None:
        return Card("Start the viewer with --data to see its photograph and misses.", render)
    labelled = photo_of(view, scene)
    if labelled is None:
        why = "was used by the certificate" if view.image is None else "is there any more"
        return Card(f"No photograph of this view {why}.", render)
    if label_hash(labelled) != view.image:
        return Card("Its photograph is not the one that was certified, so it is not shown.", render)
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
    """How many pixels miss, in words."""
    share = float(missed.double().mean())
    met = "enough are inside" if share <= promise.beta else "too many miss"
    caution = " The model was fitted to this photo: no evidence." if view.role == "training" else ""
    return f"{100 * share:.1f}% of its pixels miss, {in_percent(promise.beta)} may: {met}.{caution}"


def _misses(center: Tensor, missed: Tensor, counted: Tensor | None) -> Pixels:
    """The render, faded to grey, with pixels outside their boxes marked, [H, W, 3]."""
    grey = to_bytes(FADED * center.mean(dim=-1, keepdim=True).expand_as(center)).copy()
    grey[missed.cpu().numpy()] = MISSED
    if counted is not None:
        grey[~counted.cpu().numpy()] = NOT_COUNTED
    return grey
