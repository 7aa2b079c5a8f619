# SPDX-License-Identifier: Apache-2.0
"""Which frame a model is in, told by the photographs.

A trainer may move the world before it starts and not store how. Each frame it may have
used gives other pictures from the training cameras; the right one shows what was taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from splatcert.raster.interface import Backend, render
from splatcert.scene.cameras import Camera
from splatcert.scene.roles import TrainingView, require_labels
from splatcert.splats.gaussians import Splats
from splatcert.splats.gsplat_frame import FrameCandidate
from splatcert.splats.transform import FrameError, transform_splats

SAMPLED_VIEWS = 4
LONG_SIDE = 400
LIKENESS = 2.0
"""Decibels by which renders must beat one flat colour per photo."""
CLEAR_LEAD = 1.0
"""Decibels by which a frame must beat the next best one."""

Colour = tuple[float, float, float]
BLACK: Colour = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class SmallPhoto:
    """A training photograph reduced for comparison, with the camera that took it."""

    camera: Camera
    rgb: Tensor
    """[H, W, 3]."""
    weight: Tensor
    """Share of each pixel that counts, [H, W, 1]."""

    def flat(self) -> Tensor:
        """The one colour that is nearest to all of its pixels, [3]."""
        return (self.rgb * self.weight).sum((0, 1)) / self.weight.sum().clamp(min=1e-12)


@dataclass(frozen=True)
class PhotoFit:
    """How well pictures match photographs, as PSNR in decibels over all of them."""

    psnr: float
    flat: float
    """What one flat colour per photo reaches: the score of knowing nothing of the scene."""
    photos: int

    @property
    def is_likeness(self) -> bool:
        """Whether the renders show what the photographs show."""
        return self.psnr >= self.flat + LIKENESS


@dataclass(frozen=True, eq=False)
class FrameFit:
    """A candidate frame, and how well splats moved out of it match the photographs."""

    candidate: FrameCandidate
    fit: PhotoFit

    @property
    def name(self) -> str:
        """Of the candidate."""
        return self.candidate.name

    def restore(self, splats: Splats) -> Splats:
        """Splats of the model in the capture's frame, if this is the right one."""
        return transform_splats(splats, np.linalg.inv(self.candidate.to_model))


def sample_photos(views: Sequence[TrainingView]) -> list[SmallPhoto]:
    """A few training photographs spread over the capture, at most 400 pixels long."""
    chosen = np.unique(np.linspace(0, len(views) - 1, SAMPLED_VIEWS).round().astype(int))
    return [_reduced(require_labels(views[int(k)], TrainingView)) for k in chosen]


def _reduced(view: TrainingView) -> SmallPhoto:
    factor = min(1.0, LONG_SIDE / max(view.camera.width, view.camera.height))
    width, height = (
        max(1, round(factor * side)) for side in (view.camera.width, view.camera.height)
    )
    mask = view.mask()[..., None].float()
    rgb, weight = (
        interpolate(part.permute(2, 0, 1)[None], size=(height, width), mode="area")[0].movedim(0, 2)
        for part in (view.image() * mask, mask)
    )
    return SmallPhoto(view.camera.resized(width, height), rgb / weight.clamp(min=1e-12), weight)


def fit_photos(
    splats: Splats,
    photos: Sequence[SmallPhoto],
    *,
    background: Colour = BLACK,
    backend: Backend = "cpu",
) -> PhotoFit:
    """PSNR of the splats' renders against the photographs."""
    rendered, flat, count = 0.0, 0.0, 0.0
    for photo in photos:
        picture = render(splats, photo.camera, background=background, backend=backend)
        ours = picture.rgb.detach().to(photo.rgb).clamp(0, 1)
        rendered += float(((ours - photo.rgb) ** 2 * photo.weight).sum(dtype=torch.float64))
        flat += float(((photo.flat() - photo.rgb) ** 2 * photo.weight).sum(dtype=torch.float64))
        count += 3 * float(photo.weight.sum(dtype=torch.float64))
    return PhotoFit(_decibels(rendered, count), _decibels(flat, count), len(photos))


def _decibels(squared: float, count: float) -> float:
    """PSNR of a sum of squared errors; at most 120, where float32 ends."""
    return -10 * log10(max(squared / max(count, 1e-12), 1e-12))


def rank_frames(
    splats: Splats,
    candidates: Sequence[FrameCandidate],
    photos: Sequence[SmallPhoto],
    *,
    background: Colour = BLACK,
    backend: Backend = "cpu",
) -> list[FrameFit]:
    """The candidates by how well the moved splats match the photographs, the best first."""
    fits = []
    for candidate in candidates:
        moved = transform_splats(splats, np.linalg.inv(candidate.to_model))
        fit = fit_photos(moved, photos, background=background, backend=backend)
        fits.append(FrameFit(candidate, fit))
    return sorted(fits, key=lambda one: -one.fit.psnr)


def require_frame(fits: Sequence[FrameFit]) -> FrameFit:
    """The best of several frames, or a refusal when the photographs do not single it out."""
    best, second = fits[:2]
    numbers = "; ".join(f"{one.name} {one.fit.psnr:.1f}" for one in fits)
    if not best.fit.is_likeness:
        raise FrameError(
            f"no frame brings the model to the photographs. On {best.fit.photos} training views,\n"
            f"  PSNR in dB: {numbers}.\n"
            f"  One flat colour per photo has {best.fit.flat:.1f}.\n"
            "  The model belongs to another capture, or COLMAP was run again after training."
        )
    if best.fit.psnr < second.fit.psnr + CLEAR_LEAD:
        raise FrameError(
            f"two frames fit the {best.fit.photos} training photographs about equally:\n"
            f"  PSNR in dB: {numbers}.\n"
            "  Load the model with the frame you know: load_splats(path, frame=matrix)."
        )
    return best
