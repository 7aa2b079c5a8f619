# SPDX-License-Identifier: Apache-2.0
"""Pictures of the viewer: the frame of a viewpoint, and the card of one view of the capture."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.hashes import label_hash
from splatcert.conformal.boxes import Boxes, Flag
from splatcert.conformal.levels import in_percent
from splatcert.report.colours import WidthScale
from splatcert.scene.scene import Scene
from splatcert_viewer.cameras.known_views import KnownView, photo_of
from splatcert_viewer.cameras.viewpoint import Viewpoint
from splatcert_viewer.colours import coloured

Pixels = NDArray[np.uint8]
Mode = Literal["RGB", "half-width", "lower", "upper"]
MODES: tuple[Mode, ...] = ("RGB", "half-width", "lower", "upper")
MISSED, NOT_COUNTED = (255, 64, 64), (16, 16, 20)
"""Colours of pixels outside their boxes, and of masked pixels."""
FADED = 0.45
"""Brightness of all other pixels in a picture of misses."""


@dataclass(frozen=True)
class DisplayMode:
    """Which side of the boxes is shown, in which colours."""

    mode: Mode
    scale: WidthScale


@dataclass(frozen=True, eq=False)
class Frame:
    """A picture, and what is known about its view."""

    pixels: Pixels
    """[H, W, 3]."""
    factor: float
    """a_v."""
    support: Flag
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
    boxes = certificate.predict(full.resized(*size), preview_of=full)
    return Frame(picture(boxes, display), boxes.view_factor, boxes.flag or Flag(True), share)


def picture(boxes: Boxes, display: DisplayMode) -> Pixels:
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


def make_card(certificate: Certificate, view: KnownView, scene: Scene | None) -> Card:
    """Render, photograph and misses of one view, exactly as certified."""
    boxes = certificate.predict(view.camera)
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
        _verdict(view, missed if counted is None else missed[counted], certificate.beta),
        render,
        to_bytes(photo),
        _misses(boxes.center, missed, counted),
    )


def _verdict(view: KnownView, missed: Tensor, beta: Fraction) -> str:
    """How many pixels lie outside their boxes, in words."""
    share = float(missed.double().mean())
    met = "covered" if share <= beta else "not covered"
    caution = " The model was trained on this photo." if view.role == "training" else ""
    return (
        f"{100 * share:.1f}% of its pixels lie outside their boxes; up to "
        f"{in_percent(beta)} may. The view is {met}.{caution}"
    )


def _misses(center: Tensor, missed: Tensor, counted: Tensor | None) -> Pixels:
    """The render, faded to grey, with pixels outside their boxes marked, [H, W, 3]."""
    grey = to_bytes(FADED * center.mean(dim=-1, keepdim=True).expand_as(center)).copy()
    grey[missed.cpu().numpy()] = MISSED
    if counted is not None:
        grey[~counted.cpu().numpy()] = NOT_COUNTED
    return grey
