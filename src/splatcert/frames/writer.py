# SPDX-License-Identifier: Apache-2.0
"""One frame as files: a plain render, or colour, box edges and half-width of a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera, camera_hash
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.hashes import splats_hash
from splatcert.conformal.boxes import Boxes, Flag
from splatcert.errors import OptionError
from splatcert.frames.ledger import Row, key_of
from splatcert.raster.render import Backend, render
from splatcert.report.colours import WidthScale
from splatcert.splats.gaussians import Splats
from splatcert.storage.png import save_png, to_pixels
from splatcert.storage.schema import to_plain
from splatcert.storage.whole import output_folder, replacing

Maps = Literal["npz", "exr", "none"]
Floats = NDArray[np.float32]
RGB, HALF_WIDTH = "rgb", "half_width"


class FrameWriter(Protocol):
    """Writes the files of single frames."""

    def key(self, camera: Camera) -> str:
        """One hash of everything that determines a frame."""
        ...

    def write(self, folder: Path, name: str, stem: str, camera: Camera) -> Row:
        """Write the files of a view; returns its row of the table."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class CertifiedFrames:
    """Writes frames with the boxes of a certificate."""

    certificate: Certificate
    scale: WidthScale
    maps: Maps
    kinds: tuple[str, ...] = (RGB, "lower", "upper", HALF_WIDTH)
    """Which pictures to write."""

    def key(self, camera: Camera) -> str:
        """One hash of everything that determines a frame."""
        seal, other = self.certificate.record.seal, self.certificate.other
        drawn = (camera_hash(camera), self.scale.top, self.maps)
        carried = () if other is None else (other.backend, other.margin, self.certificate.threshold)
        return key_of("certified", seal, *drawn, *carried)

    def write(self, folder: Path, name: str, stem: str, camera: Camera) -> Row:
        """Predict one camera and write its files; returns its row of the table."""
        boxes = self.certificate.predict(camera)
        maps = float_maps(boxes)
        files = {kind: f"{kind}/{stem}.png" for kind in self.kinds}
        for kind in self.kinds:
            coloured = self.scale.colours if kind == HALF_WIDTH else to_pixels
            output_folder((folder / files[kind]).parent, inside=folder)
            save_png(folder / files[kind], coloured(maps[kind]))
        if self.maps != "none":
            files["maps"] = f"maps/{stem}.{self.maps}"
            output_folder((folder / files["maps"]).parent, inside=folder)
            save_maps(folder / files["maps"], maps)
        return {**row_of(name, camera, boxes), "files": files}


@dataclass(frozen=True, eq=False)
class ModelFrames:
    """Writes plain renders of a model."""

    splats: Splats
    background: tuple[float, float, float]
    backend: Backend

    @cached_property
    def _identity(self) -> str:
        return splats_hash(self.splats)

    def key(self, camera: Camera) -> str:
        """One hash of everything that determines a frame."""
        return key_of("model", self._identity, self.background, self.backend, camera_hash(camera))

    def write(self, folder: Path, name: str, stem: str, camera: Camera) -> Row:
        """Render one camera to a PNG file."""
        picture = render(self.splats, camera, background=self.background, backend=self.backend)
        file = f"{stem}.png"
        output_folder((folder / file).parent, inside=folder)
        save_png(folder / file, to_pixels(picture.rgb.cpu().numpy()))
        size = {"width": camera.width, "height": camera.height}
        return {"name": name, **size, "files": {RGB: file}}


def float_maps(boxes: Boxes) -> dict[str, Floats]:
    """The maps of a frame, float32: rgb, lower, upper [H, W, 3] and half_width [H, W]."""
    tensors = {
        RGB: boxes.center,
        "lower": boxes.lower,
        "upper": boxes.upper,
        HALF_WIDTH: boxes.half_width,
    }
    return {name: tensor.cpu().numpy().astype(np.float32) for name, tensor in tensors.items()}


def row_of(name: str, camera: Camera, boxes: Boxes) -> Row:
    """The numbers of one frame; vacuous boxes count as unbounded, because they say as little."""
    flag = boxes.flag or Flag(True)
    return to_plain(
        {
            "name": name,
            "width": camera.width,
            "height": camera.height,
            "view_factor": boxes.view_factor,
            "mean_half_width": inf if boxes.is_vacuous else float(boxes.half_width.double().mean()),
            "vacuous": boxes.is_vacuous,
            "threshold": boxes.threshold,
            "support": "within" if flag.inside else "out",
            "reasons": flag.reasons,
            "descriptor": None if boxes.descriptor is None else boxes.descriptor.tolist(),
        }
    )


def save_maps(path: Path, maps: Mapping[str, Floats]) -> None:
    """Write float maps as npz (one array per name) or as one EXR picture (one layer per name)."""
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
    """The OpenEXR library, or how to install it."""
    try:
        import OpenEXR
    except ImportError:
        raise OptionError(
            "EXR files require the OpenEXR library, which is not installed.\n"
            "  Install it (pip install 'splatcert[media]'), or use --maps npz."
        ) from None
    return OpenEXR
