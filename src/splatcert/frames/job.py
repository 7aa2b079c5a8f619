# SPDX-License-Identifier: Apache-2.0
"""What to render from where: a certificate or a model, and the chosen cameras."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from splatcert.certificate.store import is_certificate
from splatcert.deploy import open_certificate
from splatcert.errors import OptionError
from splatcert.frames.choose_cameras import FILM_FPS, Choice, Pool, choose, is_named, resized
from splatcert.frames.writer import CertifiedFrames, FrameWriter, ModelFrames, require_exr
from splatcert.raster.placement import chosen_background, load_for_scene
from splatcert.raster.render import Backend
from splatcert.report.colours import WidthScale
from splatcert.report.summary import promise_lines
from splatcert.scene.load import load_scene
from splatcert.splats.files import load_splats

PATH_SCOPE = (
    "Frames of a path are neighbours, and nobody drew them like the held-out photos. The guarantee "
    "is about one exchangeable view, not about all frames of a film."
)
"""What a film or an orbit says about itself."""


@dataclass(frozen=True, kw_only=True)
class FrameRequest:
    """The options of `splatcert render` that decide what is in the frames."""

    path: Path
    cameras: str
    model: Path | None
    data: Path | None
    resolution: str | None
    seconds: float | None
    fps: int | None
    maps: Literal["auto", "npz", "exr", "none"]
    background: tuple[float, float, float] | None
    backend: Backend


@dataclass(frozen=True, eq=False)
class Job:
    """Cameras to render, and how."""

    writer: FrameWriter
    choice: Choice
    words: dict[str, str]
    """What is rendered, in labelled lines."""
    scale: WidthScale | None
    """Colours of the half-width; None for a plain model."""


def frame_job(asked: FrameRequest) -> Job:
    """Frames with boxes of a certificate, or plain frames of a model."""
    return _certified_job(asked) if is_certificate(asked.path) else _model_job(asked)


def _certified_job(asked: FrameRequest) -> Job:
    if asked.background is not None:
        raise OptionError("a certificate fixes its background; --background is for a model.")
    if asked.maps == "exr":
        require_exr()
    certificate = open_certificate(asked.path, asked.model, asked.data)
    record = certificate.record
    if asked.backend not in ("cpu", record.renderer.backend):
        raise OptionError(
            f"{asked.path} certifies pixels of the {record.renderer.backend} back end.\n"
            "  Leave --backend out."
        )
    held_out = (*record.calibration, *record.unlabelled)
    pool = Pool(
        {view.name: view.camera for view in record.training},
        {view.name: view.camera for view in sorted(held_out, key=lambda v: v.name)},
    )
    chosen = choose(asked.cameras, pool, fps=asked.fps or FILM_FPS, seconds=asked.seconds)
    certified = max(max(camera.width, camera.height) for camera in pool.views("all").values())
    cameras = resized(chosen.cameras, asked.resolution or certified)
    scale, maps = WidthScale.of(certificate), asked.maps
    if maps == "auto":
        maps = "none" if chosen.is_path else "npz"
    words = {
        "Certificate": f"{record.scene.name}, {record.model.gaussians:,} Gaussians",
        **promise_lines(certificate),
    }
    if chosen.is_path:
        words["Film"] = PATH_SCOPE
    writer = CertifiedFrames(certificate=certificate, scale=scale, maps=maps)
    return Job(writer, replace(chosen, cameras=cameras), words, scale)


def _model_job(asked: FrameRequest) -> Job:
    if asked.model is not None or asked.maps not in ("auto", "none"):
        raise OptionError(
            f"{asked.path} is a model; --model and --maps go with a certificate.\n"
            "  splatcert certify makes one."
        )
    scene, pool = None, None
    if asked.data is not None:
        scene = load_scene(asked.data, resolution=asked.resolution)
        held_out = {view.name: view.camera for view in scene.held_out}
        pool = Pool({view.name: view.camera for view in scene.training}, held_out)
    chosen = choose(asked.cameras, pool, fps=asked.fps or FILM_FPS, seconds=asked.seconds)
    if not is_named(asked.cameras):
        chosen = replace(chosen, cameras=resized(chosen.cameras, asked.resolution))
    why, background = chosen_background(asked.background, None, asked.path, scene)
    if scene is None:
        splats, frame = load_splats(asked.path), "as stored"
    else:
        placed = load_for_scene(asked.path, scene, background=background, backend=asked.backend)
        splats, frame = placed.splats, placed.words()
    words = {
        "Model": f"{asked.path}, {len(splats):,} Gaussians",
        "Frame": frame,
        "Background": " ".join(f"{c:g}" for c in background) + f", {why}",
    }
    return Job(ModelFrames(splats, background, asked.backend), chosen, words, None)
