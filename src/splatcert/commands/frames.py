# SPDX-License-Identifier: Apache-2.0
"""A model in the coordinates of a capture, whatever its trainer did to them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from splatcert.raster.frame_check import (
    BLACK,
    Colour,
    PhotoFit,
    SmallPhoto,
    fit_photos,
    rank_frames,
    require_frame,
    sample_photos,
)
from splatcert.raster.interface import Backend
from splatcert.scene.scene import Scene
from splatcert.splats.files import ModelInfo, describe_model, load_splats
from splatcert.splats.gaussians import Splats
from splatcert.splats.gsplat_frame import gsplat_frames
from splatcert.splats.transform import FrameError, transform_splats


@dataclass(frozen=True, eq=False)
class PlacedModel:
    """A model in a capture's frame, how it got there, and what the photographs say to it."""

    splats: Splats
    how: str
    fit: PhotoFit
    next_best: float | None = None
    """PSNR in the next best frame, where there was a choice."""

    def words(self) -> str:
        """One sentence for people."""
        photos = f"{self.fit.photos} training photos"
        if not self.fit.is_likeness:
            return (
                f"{self.how}, but renders do not look like the photos: {self.fit.psnr:.1f} dB on "
                f"{photos}, where a flat colour has {self.fit.flat:.1f}. The model may be in "
                "another frame, or of another capture"
            )
        rest = "" if self.next_best is None else f", {self.next_best:.1f} in the next best frame"
        return f"{self.how}; {self.fit.psnr:.1f} dB on {photos}{rest}"

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {"how": self.how, **asdict(self.fit), "next_best": self.next_best}


def load_for_scene(
    path: Path, scene: Scene, *, background: Colour | None = None, backend: Backend = "cpu"
) -> PlacedModel:
    """The splats in the scene's frame, checked by rendering a few training views."""
    info = describe_model(path)
    colour = background_of(info, scene)[1] if background is None else background
    photos = sample_photos(scene.training)
    if info.format == "gsplat" and info.frame == "model" and scene.points is not None:
        return _rebuilt(load_splats(path, frame="model"), scene, photos, colour, backend)
    splats, how = load_splats(path), "as stored"
    if info.format == "nerfstudio":
        # nerfstudio's way back ends at the original data; a transforms.json may differ from it.
        splats = transform_splats(splats, scene.frame.original_to_scene)
        how = "taken back by dataparser_transforms.json"
    fit = fit_photos(splats, photos, background=colour, backend=backend)
    if info.format == "ply" and not fit.is_likeness and scene.points is not None:
        # An export of gsplat's keeps the trainer's frame, and a PLY cannot say so.
        with suppress(FrameError):
            return _rebuilt(splats, scene, photos, colour, backend)
    return PlacedModel(splats, how, fit)


def _rebuilt(
    splats: Splats, scene: Scene, photos: list[SmallPhoto], background: Colour, backend: Backend
) -> PlacedModel:
    """A model taken out of the frame that gsplat's trainer makes from a capture."""
    assert scene.points is not None
    poses = np.linalg.inv([camera.world_to_camera for camera in scene.cameras.values()])
    frames = gsplat_frames(splats, poses, scene.points.xyz)
    fits = rank_frames(splats, frames, photos, background=background, backend=backend)
    best = require_frame(fits)
    how = f"rebuilt from the capture ({best.name})"
    return PlacedModel(best.restore(splats), how, best.fit, fits[1].fit.psnr)


def chosen_background(
    asked: Colour | None, trained: Colour | None, model: Path, scene: Scene | None
) -> tuple[str, Colour]:
    """The colour to render on, and why: the user's, the run's, else `background_of`."""
    if asked is not None:
        return "as asked", asked
    if trained is not None:
        return "as the model was trained", trained
    return background_of(describe_model(model), scene)


def background_of(info: ModelInfo, scene: Scene | None) -> tuple[str, Colour]:
    """The colour behind a model's splats, and why this one."""
    if info.background is not None:
        return "as the model was evaluated in training", info.background
    photos = cast("Colour | None", scene.details.get("background") if scene else None)
    if photos is not None:
        return "as behind the capture's photos", photos
    return "the default", BLACK
