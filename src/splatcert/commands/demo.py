# SPDX-License-Identifier: Apache-2.0
"""`splatcert demo`: something to see in seconds, with no data but our own."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from splatcert.commands.options import EngineOptions
from splatcert.console import output_folder, progress, say

GAUSSIANS, VIEWS = 100_000, 4


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Render a made scene: colour, opacity and depth from four cameras, and its PLY file."""

    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("splatcert-demo")
    """Folder for the pictures and the model."""
    engine: tyro.conf.OmitArgPrefixes[EngineOptions] = field(default_factory=EngineOptions)

    def run(self) -> None:
        """Make, render, write, and say so."""
        folder = output_folder(self.output)
        from splatcert.commands.pictures import save_png, triptych
        from splatcert.raster.interface import render
        from splatcert.splats.files import save_ply
        from splatcert.splats.made import made_cameras, made_splats

        engine = self.engine.start()
        splats, cameras = made_splats(GAUSSIANS), made_cameras(VIEWS)
        elapsed: list[float] = []
        for index, camera in enumerate(progress(cameras, "rendering")):
            started = time.perf_counter()
            picture = render(splats, camera, backend=self.engine.backend)
            elapsed.append(time.perf_counter() - started)
            save_png(folder / f"view_{index}.png", triptych(picture))
        save_ply(splats, folder / "splats.ply")

        size = f"{cameras[0].width} x {cameras[0].height}"
        say("made", f"a courtyard of {len(splats):,} Gaussians, the same on every machine")
        say("back end", engine)
        say("rendered", f"{VIEWS} views of {size} pixels, {1000 * min(elapsed):.0f} ms the fastest")
        say("pictures", f"{folder}/view_0.png to view_{VIEWS - 1}.png: render, opacity, depth")
        say("model", f"{folder}/splats.ply opens in any splat viewer")
        say("next", f"splatcert inspect {folder}, or a capture or model of your own")
        say("error bars", "splatcert certify, for a capture of which some photos were held out")
