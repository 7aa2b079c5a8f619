# SPDX-License-Identifier: Apache-2.0
"""What `splatcert render` is asked for: which frames, and who makes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from splatcert.commands.camera_choice import FILM_FPS, Choice, Pool, choose, is_named, resized
from splatcert.commands.certified import open_certificate
from splatcert.commands.certified_frames import CertifiedFrames, require_exr
from splatcert.commands.frame_ledger import Row
from splatcert.commands.frames import chosen_background, load_for_scene
from splatcert.commands.model_frames import ModelFrames
from splatcert.commands.options import OptionError
from splatcert.commands.width_bar import WidthBar
from splatcert.scene.cameras import Camera
from splatcert.scene.load import load_scene
from splatcert.splats.files import load_splats

if TYPE_CHECKING:
    from splatcert.commands.render import Render


class FrameWriter(Protocol):
    """Makes the files of one frame."""

    def key(self, camera: Camera) -> str:
        """All that decides a frame, as one hash."""
        ...

    def write(self, folder: Path, name: str, stem: str, camera: Camera) -> Row:
        """Write the files of a view; returns its row of the table."""
        ...


@dataclass(frozen=True, eq=False)
class Job:
    """What to render, from where."""

    writer: FrameWriter
    choice: Choice
    words: dict[str, str]
    """What it is, for people."""
    scale: WidthBar | None
    """Of the half-width; None for a plain model."""


def certified_job(asked: Render) -> Job:
    """Frames with boxes, from the cameras asked for."""
    if asked.background is not None:
        raise OptionError("a certificate has its background: --background is for a model.")
    if asked.maps == "exr":
        require_exr()
    certificate = open_certificate(asked.path, asked.model, asked.data)
    record = certificate.record
    if asked.engine.backend not in ("cpu", record.renderer.backend):
        raise OptionError(
            f"{asked.path} is about the pixels of the {record.renderer.backend} back end; "
            "leave --backend out."
        )
    held_out = (*record.calibration, *record.unlabelled)
    pool = Pool(
        {view.name: view.camera.camera() for view in record.training},
        {view.name: view.camera.camera() for view in sorted(held_out, key=lambda v: v.name)},
    )
    chosen = choose(asked.cameras, pool, fps=asked.fps or FILM_FPS, seconds=asked.seconds)
    certified = max(max(camera.width, camera.height) for camera in pool.views("all").values())
    cameras = resized(chosen.cameras, asked.resolution or certified)
    scale, maps = WidthBar.of(certificate), asked.maps
    if maps == "auto":
        maps = "none" if chosen.is_path else "npz"
    words = {
        "certificate": f"of {record.scene.name}, {record.model.gaussians:,} Gaussians",
        "guarantee": certificate.guarantee,
    }
    writer = CertifiedFrames(certificate=certificate, scale=scale, maps=maps)
    return Job(writer, Choice(cameras, chosen.words, chosen.is_path), words, scale)


def model_job(asked: Render) -> Job:
    """Plain pictures, from the cameras asked for."""
    if asked.model is not None or asked.maps not in ("auto", "none"):
        raise OptionError(
            f"{asked.path} is a model: --model and --maps go with a certificate.\n"
            "  splatcert certify makes one."
        )
    scene, pool = None, None
    if asked.data is not None:
        scene = load_scene(asked.data, resolution=asked.resolution)
        held_out = {view.name: view.camera for view in scene.held_out}
        pool = Pool({view.name: view.camera for view in scene.training}, held_out)
    chosen = choose(asked.cameras, pool, fps=asked.fps or FILM_FPS, seconds=asked.seconds)
    if not is_named(asked.cameras):
        cameras = resized(chosen.cameras, asked.resolution)
        chosen = Choice(cameras, chosen.words, chosen.is_path)
    why, background = chosen_background(asked.background, None, asked.path, scene)
    if scene is None:
        splats, frame = load_splats(asked.path), "as stored"
    else:
        placed = load_for_scene(
            asked.path, scene, background=background, backend=asked.engine.backend
        )
        splats, frame = placed.splats, placed.words()
    words = {
        "model": f"{asked.path}, {len(splats):,} Gaussians",
        "frame": frame,
        "background": " ".join(f"{c:g}" for c in background) + f", {why}",
    }
    return Job(ModelFrames(splats, background, asked.engine.backend), chosen, words, None)
