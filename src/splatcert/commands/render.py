# SPDX-License-Identifier: Apache-2.0
"""`splatcert render`: a model from the cameras of a capture, as PNG files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from splatcert.commands.options import EngineOptions, OptionError
from splatcert.console import output_folder, progress, say

if TYPE_CHECKING:
    from splatcert.scene.cameras import Camera
    from splatcert.splats.gaussians import Splats

Colour = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Render:
    """Render a model from the cameras of a capture or a list, one PNG file per view."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """PLY file, Inria folder, gsplat .pt or nerfstudio .ckpt."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="DIR")]
    """Folder for the pictures."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Capture whose cameras are used (COLMAP, transforms.json, Blender)."""
    cameras: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Instead of a capture: a cameras.json as trainers write it."""
    views: Literal["held-out", "training", "all"] = "held-out"
    """Which cameras of the capture."""
    resolution: Annotated[str | None, tyro.conf.arg(metavar="SIZE")] = None
    """Longest side of the capture's views in pixels (1600) or a factor (1/2)."""
    background: Annotated[Colour | None, tyro.conf.arg(metavar="R G B")] = None
    """Colour behind the splats, 0 to 1. Unless told: the model's, the capture's, black."""
    engine: tyro.conf.OmitArgPrefixes[EngineOptions] = field(default_factory=EngineOptions)

    def __post_init__(self) -> None:
        if (self.data is None) == (self.cameras is None):
            raise OptionError("give either --data (a capture) or --cameras (a cameras.json).")
        if self.data is None and (self.views != "held-out" or self.resolution is not None):
            raise OptionError("--views and --resolution choose within a capture: give --data.")
        if self.background is not None and not all(0 <= c <= 1 for c in self.background):
            raise OptionError(
                f"--background needs three numbers from 0 to 1, got {self.background}."
            )

    def run(self) -> None:
        """Load, render, write, and say so."""
        from splatcert.commands.pictures import save_png, to_pixels
        from splatcert.raster.interface import render

        engine = self.engine.start()
        job = self._job_of_list(self.cameras) if self.cameras else self._job_of_capture()
        why, background = job.background
        files = picture_names(job.cameras)
        folder = output_folder(self.output)
        started = time.perf_counter()
        for name, camera in progress(list(job.cameras.items()), "rendering"):
            picture = render(job.splats, camera, background=background, backend=self.engine.backend)
            path = folder / files[name]
            output_folder(path.parent)
            save_png(path, to_pixels(picture.rgb.cpu().numpy()))
        seconds = time.perf_counter() - started

        say("model", f"{self.model}, {len(job.splats):,} Gaussians")
        say("frame", job.frame)
        say("background", " ".join(f"{c:g}" for c in background) + f", {why}")
        say("back end", engine)
        say("rendered", f"{len(files)} views in {seconds:.1f} s, files included")
        say("wrote", f"{folder}/{next(iter(files.values()))}" + (" ..." if len(files) > 1 else ""))

    def _job_of_capture(self) -> _Job:
        from splatcert.commands.frames import chosen_background, load_for_scene
        from splatcert.scene.load import load_scene

        assert self.data is not None
        scene = load_scene(self.data, resolution=self.resolution)
        chosen = {"held-out": scene.held_out.names, "training": scene.training.names}
        names = chosen.get(self.views, tuple(scene.cameras))
        if not names:
            raise OptionError(f"{self.data} has no {self.views} view.\n  Try --views all.")
        background = chosen_background(self.background, None, self.model, scene)
        placed = load_for_scene(
            self.model, scene, background=background[1], backend=self.engine.backend
        )
        cameras = {name: scene.cameras[name] for name in names}
        return _Job(placed.splats, cameras, placed.words(), background)

    def _job_of_list(self, path: Path) -> _Job:
        from splatcert.commands.frames import chosen_background
        from splatcert.scene.camera_list import read_camera_list
        from splatcert.splats.files import load_splats

        splats = load_splats(self.model)
        background = chosen_background(self.background, None, self.model, None)
        return _Job(splats, read_camera_list(path), "as stored", background)


@dataclass(frozen=True, eq=False)
class _Job:
    """What to render, from where, on what."""

    splats: Splats
    cameras: Mapping[str, Camera]
    frame: str
    """How the splats came to the cameras' coordinates, in words."""
    background: tuple[str, Colour]
    """Why, and which."""


def picture_names(names: Iterable[str]) -> dict[str, str]:
    """A PNG file below the output folder for each view, none the same as another."""
    stems = {name: PurePosixPath(name.replace("\\", "/")) for name in names}
    for name, stem in stems.items():
        if stem.is_absolute() or ".." in stem.parts or not stem.name:
            raise OptionError(f"the view name {name!r} would be written outside the output folder.")
        if "\0" in name:
            raise OptionError(f"the view name {name!r:.80} is no name of a file.\n  Rename it.")
    short = {name: str(stem.with_suffix(".png")) for name, stem in stems.items()}
    if len(set(short.values())) == len(short):
        return short
    return {name: f"{stem}.png" for name, stem in stems.items()}
