# SPDX-License-Identifier: Apache-2.0
"""One certified frame as files: colour, box edges and half-width, for eyes and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera, camera_hash
from splatcert.certificate.hashes import splats_hash
from splatcert.deploy import open_certificate
from splatcert.errors import OptionError
from splatcert.frames.choose_cameras import FILM_FPS, Choice, Pool, choose, is_named, resized
from splatcert.frames.ledger import Row, key_of
from splatcert.raster.placement import chosen_background, load_for_scene
from splatcert.raster.render import Backend, render
from splatcert.report.colours import WidthBar
from splatcert.scene.load import load_scene
from splatcert.splats.files import load_splats
from splatcert.splats.gaussians import Splats
from splatcert.storage.png import save_png, to_pixels
from splatcert.storage.schema import to_plain
from splatcert.storage.whole import output_folder, replacing

if TYPE_CHECKING:
    from splatcert.camera import Camera
    from splatcert.certificate.boxes import CertifiedBoxes
    from splatcert.certificate.certificate import Certificate
    from splatcert.commands.render import Render

Maps = Literal["npz", "exr", "none"]
Floats = NDArray[np.float32]
RGB, HALF_WIDTH = "rgb", "half_width"


@dataclass(frozen=True, eq=False, kw_only=True)
class CertifiedFrames:
    """How frames of one certificate are made."""

    certificate: Certificate
    scale: WidthBar
    maps: Maps

    def key(self, camera: Camera) -> str:
        """All that decides a frame."""
        seal = self.certificate.record.seal
        return key_of("certified", seal, camera_hash(camera), self.scale.top, self.maps)

    def write(self, folder: Path, name: str, stem: str, camera: Camera) -> Row:
        """Predict one camera, write its files, and return its row of the table."""
        boxes = self.certificate.predict(camera)
        maps = float_maps(boxes)
        files = {kind: f"{kind}/{stem}.png" for kind in maps}
        for kind, values in maps.items():
            shown = self.scale.colours(values) if kind == HALF_WIDTH else to_pixels(values)
            output_folder((folder / files[kind]).parent)
            save_png(folder / files[kind], shown)
        if self.maps != "none":
            files["maps"] = f"maps/{stem}.{self.maps}"
            output_folder((folder / files["maps"]).parent)
            save_maps(folder / files["maps"], maps)
        return {**row_of(name, camera, boxes), "files": files}


def float_maps(boxes: CertifiedBoxes) -> dict[str, Floats]:
    """What a frame consists of, float32: rgb, lower, upper [H, W, 3] and half_width [H, W]."""
    tensors = {
        RGB: boxes.center,
        "lower": boxes.lower,
        "upper": boxes.upper,
        HALF_WIDTH: boxes.half_width,
    }
    return {name: tensor.cpu().numpy().astype(np.float32) for name, tensor in tensors.items()}


def row_of(name: str, camera: Camera, boxes: CertifiedBoxes) -> Row:
    """The numbers of one frame."""
    return to_plain(
        {
            "name": name,
            "width": camera.width,
            "height": camera.height,
            "view_factor": boxes.view_factor,
            "mean_half_width": float(boxes.half_width.double().mean()),
            "threshold": boxes.threshold,
            "support": "within" if boxes.support.inside else "out",
            "reasons": boxes.support.reasons,
        }
    )


def save_maps(path: Path, maps: Mapping[str, Floats]) -> None:
    """Float maps as npz (one array a name) or as one EXR picture (one layer a name)."""
    if path.suffix == ".npz":
        with replacing(path) as aside, aside.open("wb") as file:
            np.savez(file, allow_pickle=False, **maps)
        return
    open_exr = require_exr()
    # A plain viewer shows the unnamed R, G, B; the rest are layers beside it.
    channels = {"RGB" if name == RGB else name: values for name, values in maps.items()}
    channels[f"{HALF_WIDTH}.Y"] = channels.pop(HALF_WIDTH)
    header = {"compression": open_exr.ZIP_COMPRESSION, "type": open_exr.scanlineimage}
    with replacing(path) as aside:
        open_exr.File(header, channels).write(str(aside))


def require_exr():
    """The OpenEXR library."""
    try:
        import OpenEXR
    except ImportError:
        raise OptionError(
            "EXR files need the OpenEXR library, which is not installed.\n"
            "  Install it (pip install 'splatcert[media]'), or take --maps npz."
        ) from None
    return OpenEXR


@dataclass(frozen=True, eq=False)
class ModelFrames:
    """How frames of one model are made."""

    splats: Splats
    background: tuple[float, float, float]
    backend: Backend

    @cached_property
    def _identity(self) -> str:
        return splats_hash(self.splats)

    def key(self, camera: Camera) -> str:
        """All that decides a frame."""
        return key_of("model", self._identity, self.background, self.backend, camera_hash(camera))

    def write(self, folder: Path, name: str, stem: str, camera: Camera) -> Row:
        """Render one camera to a PNG file."""
        picture = render(self.splats, camera, background=self.background, backend=self.backend)
        file = f"{stem}.png"
        output_folder((folder / file).parent)
        save_png(folder / file, to_pixels(picture.rgb.cpu().numpy()))
        size = {"width": camera.width, "height": camera.height}
        return {"name": name, **size, "files": {RGB: file}}


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
