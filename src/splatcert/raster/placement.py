# SPDX-License-Identifier: Apache-2.0
"""Which frame a model is in, decided by the training photographs.

A trainer may move the world before it starts without storing how. Each frame that it may have
used gives different pictures from the training cameras; the right one matches the photographs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import log10
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from splatcert.camera import Camera
from splatcert.raster.render import Backend, render
from splatcert.scene.roles import TrainingView, require_labels
from splatcert.scene.scene import Scene
from splatcert.splats.files import ModelInfo, describe_model, load_splats
from splatcert.splats.formats.frames import common_frames
from splatcert.splats.gaussians import Splats
from splatcert.splats.gsplat_frame import FrameCandidate, gsplat_frames
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
        """The mean colour of the pixels that count, [3]."""
        return (self.rgb * self.weight).sum((0, 1)) / self.weight.sum().clamp(min=1e-12)


@dataclass(frozen=True)
class PhotoFit:
    """How well renders match photographs: PSNR in dB over all of them."""

    psnr: float
    flat: float
    """PSNR of one flat colour per photo, which needs no knowledge of the scene."""
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
        """Name of the candidate."""
        return self.candidate.name

    def restore(self, splats: Splats) -> Splats:
        """The model's splats in the capture's frame, if this candidate is right."""
        return transform_splats(splats, np.linalg.inv(self.candidate.to_model))


def sample_photos(views: Sequence[TrainingView]) -> list[SmallPhoto]:
    """A few training photographs spread over the capture, at most 400 pixels on the long side."""
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
    """PSNR of a sum of squared errors; at most 120, the limit of float32."""
    return -10 * log10(max(squared / max(count, 1e-12), 1e-12))


def rank_frames(
    splats: Splats,
    candidates: Sequence[FrameCandidate],
    photos: Sequence[SmallPhoto],
    *,
    background: Colour = BLACK,
    backend: Backend = "cpu",
) -> list[FrameFit]:
    """The candidates by how well the moved splats match the photographs, best first."""
    fits = []
    for candidate in candidates:
        moved = transform_splats(splats, np.linalg.inv(candidate.to_model))
        fit = fit_photos(moved, photos, background=background, backend=backend)
        fits.append(FrameFit(candidate, fit))
    return sorted(fits, key=lambda one: -one.fit.psnr)


def require_frame(fits: Sequence[FrameFit]) -> FrameFit:
    """The best of several frames; refused if the photographs do not single it out."""
    best, second = fits[:2]
    numbers = "; ".join(f"{one.name} {one.fit.psnr:.1f}" for one in fits)
    if not best.fit.is_likeness:
        raise FrameError(
            "the model does not match its photos in any possible frame "
            f"({best.fit.photos} training photos compared).\n"
            f"  PSNR in dB: {numbers}.\n"
            f"  One flat colour per photo reaches {best.fit.flat:.1f}.\n"
            "  The model belongs to a different capture, or COLMAP was run again after training."
        )
    if best.fit.psnr < second.fit.psnr + CLEAR_LEAD:
        raise FrameError(
            f"two frames match {best.fit.photos} training photos about equally well.\n"
            f"  PSNR in dB: {numbers}.\n"
            "  Pass the trainer's run folder, which stores the frame. If you know the frame, the\n"
            "  option frame of load_splats takes it, in Python."
        )
    return best


@dataclass(frozen=True, eq=False)
class Placement:
    """A model in a capture's frame, how it got there, and how well it matches the photographs."""

    splats: Splats
    how: str
    fit: PhotoFit
    next_best: float | None = None
    """PSNR in the next best frame, where there was a choice."""

    def words(self) -> str:
        """The placement as one sentence."""
        photos = f"{self.fit.photos} training photos"
        if not self.fit.is_likeness:
            return (
                f"{self.how}, but its renders do not look like the photos: {self.fit.psnr:.1f} dB "
                f"on {photos}, against {self.fit.flat:.1f} for a flat colour. The model may be in "
                "a different frame or belong to a different capture"
            )
        rest = "" if self.next_best is None else f", {self.next_best:.1f} in the next best frame"
        return f"{self.how}; {self.fit.psnr:.1f} dB on {photos}{rest}"

    def facts(self) -> dict[str, Any]:
        """The placement as JSON values."""
        return {"how": self.how, **asdict(self.fit), "next_best": self.next_best}


def load_for_scene(
    path: Path, scene: Scene, *, background: Colour | None = None, backend: Backend = "cpu"
) -> Placement:
    """The splats in the scene's frame, checked by rendering a few training views."""
    info = describe_model(path)
    colour = background_of(info, scene)[1] if background is None else background
    photos = sample_photos(scene.training)
    if info.format == "gsplat" and info.frame == "model" and scene.points is not None:
        return _rebuilt(load_splats(path, frame="model"), scene, photos, colour, backend)
    splats, how = load_splats(path), "as stored"
    if info.format == "nerfstudio":
        # nerfstudio's transform ends at the original data; a transforms.json may differ from it.
        splats = transform_splats(splats, scene.frame.original_to_scene)
        how = "moved back by dataparser_transforms.json"
    fit = fit_photos(splats, photos, background=colour, backend=backend)
    if info.frame == "unknown" and not fit.is_likeness:
        if info.format == "ply" and scene.points is not None:
            # gsplat's PLY export keeps the trainer's frame, which a PLY cannot record.
            with suppress(FrameError):
                return _rebuilt(splats, scene, photos, colour, backend)
        with suppress(FrameError):
            return _turned(splats, photos, colour, backend)
    return Placement(splats, how, fit)


def _turned(
    splats: Splats, photos: list[SmallPhoto], background: Colour, backend: Backend
) -> Placement:
    """The model turned from another axis convention: converters of one format disagree."""
    fits = rank_frames(splats, common_frames(), photos, background=background, backend=backend)
    best = require_frame(fits)
    how = f"turned to the capture's axes ({best.name})"
    return Placement(best.restore(splats), how, best.fit, fits[1].fit.psnr)


def _rebuilt(
    splats: Splats, scene: Scene, photos: list[SmallPhoto], background: Colour, backend: Backend
) -> Placement:
    """The model moved out of the frame that gsplat's trainer derives from a capture."""
    assert scene.points is not None
    known = [camera for name, camera in scene.cameras.items() if name not in scene.added]
    poses = np.linalg.inv([camera.world_to_camera for camera in known])
    frames = gsplat_frames(splats, poses, scene.points.xyz)
    fits = rank_frames(splats, frames, photos, background=background, backend=backend)
    best = require_frame(fits)
    how = f"rebuilt from the capture ({best.name})"
    return Placement(best.restore(splats), how, best.fit, fits[1].fit.psnr)


def chosen_background(
    asked: Colour | None, trained: Colour | None, model: Path, scene: Scene | None
) -> tuple[str, Colour]:
    """The background colour and its source: the user, the run, or `background_of`."""
    if asked is not None:
        return "as requested", asked
    if trained is not None:
        return "from the training run", trained
    return background_of(describe_model(model), scene)


def background_of(info: ModelInfo, scene: Scene | None) -> tuple[str, Colour]:
    """The background colour of a model and its source."""
    if info.background is not None:
        return "from the model's training settings", info.background
    photos = cast("Colour | None", scene.details.get("background") if scene else None)
    if photos is not None:
        return "as composited behind the photos", photos
    return "default", BLACK
