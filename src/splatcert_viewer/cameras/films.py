# SPDX-License-Identifier: Apache-2.0
"""Where films go: into the folder that the owner of the server chose, or to the browser."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from splatcert.camera import Camera
from splatcert.frames.choose_cameras import FILM_FPS
from splatcert.scene.readers.camera_files import write_camera_list
from splatcert_viewer.cameras.recorded import Shooting


@dataclass(frozen=True, eq=False)
class Films:
    """The films of one server."""

    scratch: Path
    """Folder for unfinished films, which ends with the server."""
    folder: Path | None = None
    """Where finished films are kept; None to send them to the browser that asked."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def room(self) -> Path:
        """A new folder for the frames of one film."""
        return Path(tempfile.mkdtemp(dir=self.scratch))

    def finish(
        self, shooting: Shooting, send: Callable[[str, bytes], object], on: Callable[[float], None]
    ) -> str:
        """Write a film whose frames are complete; returns where it is, in words.

        `send` offers a file to the browser, and `on` hears the share that is encoded.
        """
        film = shooting.folder / "film.mp4"
        try:
            if self.folder is not None:
                kept = self._named(self.folder, shooting.cameras)
                shooting.write(kept, on)
                return f"{kept.name} and its cameras are in the folder that --films names."
            shooting.write(film, on)
            send(film.name, film.read_bytes())
            return f"{film.name} is offered as a download."
        finally:
            shutil.rmtree(shooting.folder, ignore_errors=True)

    def _named(self, folder: Path, cameras: Mapping[str, Camera]) -> Path:
        """A free name for a film; its cameras are written beside it, which reserves the name."""
        with self._lock:
            number = 1
            while any((folder / f"film-{number:03d}{end}").exists() for end in (".mp4", ".json")):
                number += 1
            write_camera_list(folder / f"film-{number:03d}.json", cameras, fps=FILM_FPS)
        return folder / f"film-{number:03d}.mp4"
