# SPDX-License-Identifier: Apache-2.0
"""One frame of a plain model: a picture, and nothing that is certified."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from splatcert.certificate.provenance import camera_hash, splats_hash
from splatcert.commands.certified_frames import RGB
from splatcert.commands.frame_ledger import Row, key_of
from splatcert.commands.pictures import save_png, to_pixels
from splatcert.console import output_folder
from splatcert.raster.interface import Backend, render
from splatcert.scene.cameras import Camera
from splatcert.splats.gaussians import Splats


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
