# SPDX-License-Identifier: Apache-2.0
"""One certified frame as files: colour, box edges and half-width, for eyes and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.artefacts import replacing
from splatcert.certificate.plain import to_plain
from splatcert.certificate.provenance import camera_hash
from splatcert.commands.frame_ledger import Row, key_of
from splatcert.commands.options import OptionError
from splatcert.commands.pictures import save_png, to_pixels
from splatcert.commands.width_bar import WidthBar
from splatcert.console import output_folder

if TYPE_CHECKING:
    from splatcert.certificate.boxes import CertifiedBoxes
    from splatcert.certificate.certificate import Certificate
    from splatcert.scene.cameras import Camera

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
