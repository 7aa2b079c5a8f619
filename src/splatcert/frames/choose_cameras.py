# SPDX-License-Identifier: Apache-2.0
"""What `--cameras` selects: views of the capture, a path through them, or a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from splatcert.camera import Camera
from splatcert.certificate.content.record import Record
from splatcert.errors import OptionError
from splatcert.scene.camera_paths import orbit, spline
from splatcert.scene.load import parse_scale
from splatcert.scene.pixels import reduced_size
from splatcert.scene.readers.camera_files import path_rate, read_cameras

PATHS = {"orbit": orbit, "spline": spline}
VIEWS = ("held-out", "training", "all")
FILM_FPS, SLIDES_FPS = 30, 4
Cameras = dict[str, Camera]


@dataclass(frozen=True, eq=False)
class Choice:
    """Selected cameras by name, in order, and their description."""

    cameras: Cameras
    words: str
    rate: int | None
    """Frames per second of a path; None for separate views."""

    @property
    def is_path(self) -> bool:
        """Whether these are frames of a path, not separate views."""
        return self.rate is not None

    @property
    def fps(self) -> int:
        """Default frames per second of a film; separate views are shown longer than path frames."""
        return SLIDES_FPS if self.rate is None else self.rate


@dataclass(frozen=True, eq=False)
class Pool:
    """The views of a capture to choose from."""

    training: Mapping[str, Camera]
    held_out: Mapping[str, Camera]

    @classmethod
    def of(cls, record: Record) -> Pool:
        """The views of a certificate."""
        held_out = sorted((*record.calibration, *record.unlabelled), key=lambda view: view.name)
        return cls(
            {view.name: view.camera for view in record.training},
            {view.name: view.camera for view in held_out},
        )

    @property
    def longest_side(self) -> int:
        """Longest side of any picture, in pixels."""
        return max(max(camera.width, camera.height) for camera in self.views("all").values())

    def views(self, which: str) -> Cameras:
        """Training views, held-out views, or both sorted by name."""
        if which == "all":
            both = {**self.training, **self.held_out}
            return {name: both[name] for name in sorted(both)}
        return dict(self.training if which == "training" else self.held_out)


def is_named(asked: str) -> bool:
    """Whether these cameras come from the capture, not from a file."""
    return asked in VIEWS or asked in PATHS


def choose(asked: str, pool: Pool | None, *, fps: int, seconds: float | None) -> Choice:
    """The cameras that `--cameras` selects."""
    if not is_named(asked):
        if not Path(asked).exists():
            near = get_close_matches(asked, (*VIEWS, *PATHS), n=1)
            raise OptionError(
                f"--cameras {asked}: no such file or folder."
                + (f" Did you mean {near[0]}?\n" if near else "\n")
                + f"  Pass a file of cameras, or one of {', '.join((*VIEWS, *PATHS))}."
            )
        cameras = read_cameras(Path(asked))
        return Choice(cameras, f"{len(cameras)} from {asked}", path_rate(Path(asked)))
    if pool is None:
        raise OptionError(
            f"--cameras {asked} requires a capture: pass --data, or a file of cameras."
        )
    if asked in VIEWS:
        cameras = pool.views(asked)
        if not cameras:
            raise OptionError(f"the capture has no {asked} views.\n  Try --cameras all.")
        return Choice(cameras, f"{len(cameras)} {asked} views", None)
    frames = PATHS[asked](list(pool.training.values()), fps=fps, seconds=seconds)
    named = {f"{asked}_{index:04d}": camera for index, camera in enumerate(frames)}
    around = {"orbit": "an orbit around", "spline": "a spline through"}[asked]
    return Choice(named, f"{len(named)} frames of {around} the training cameras", fps)


def resized(cameras: Mapping[str, Camera], resolution: str | int | None) -> Cameras:
    """Cameras reduced to a long side in pixels, or scaled by a factor."""
    scale = parse_scale(resolution)
    if scale is None:
        return dict(cameras)
    found = {}
    for name, camera in cameras.items():
        size = camera.width, camera.height
        times = min(1.0, scale / max(size)) if isinstance(scale, int) else float(scale)
        found[name] = camera if times == 1 else camera.resized(*reduced_size(size, times))
    return found
