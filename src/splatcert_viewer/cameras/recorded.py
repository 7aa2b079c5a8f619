# SPDX-License-Identifier: Apache-2.0
"""A recorded path: key views in order, the frames between them, and a film of them.

The film is made of the same frames as `splatcert render` makes from the exported cameras.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate
from splatcert.commands.certificates.render import frame_words
from splatcert.frames.choose_cameras import FILM_FPS, Choice, Pool, resized
from splatcert.frames.film import Film, encode
from splatcert.frames.job import Job
from splatcert.frames.ledger import Row
from splatcert.frames.writer import HALF_WIDTH, RGB, CertifiedFrames
from splatcert.report.colours import WidthScale
from splatcert.report.words.promise import path_guarantee
from splatcert.scene.camera_paths import through
from splatcert.storage.whole import replacing
from splatcert_viewer.cameras.viewpoint import Viewpoint
from splatcert_viewer.frame import certified_pixels

LONGEST = 60.0
"""Seconds of a film."""
MOST_KEYS = 60


def frames_between(
    certificate: Certificate, keys: Sequence[Viewpoint], seconds: float, fps: int = FILM_FPS
) -> dict[str, Camera]:
    """The cameras of a path by name, at most as large as certified pictures."""
    pixels = certified_pixels(certificate)
    cameras = through([key.camera(pixels) for key in keys], fps=fps, seconds=seconds)
    named = {f"path_{index:04d}": camera for index, camera in enumerate(cameras)}
    return resized(named, Pool.of(certificate.record).longest_side)


@dataclass(eq=False)
class Shooting:
    """A film in the making: one frame at a time, so that others can be served in between."""

    certificate: Certificate
    """At its own levels: a film at others would promise what was chosen afterwards."""
    cameras: dict[str, Camera]
    folder: Path
    """Where the frames are kept until the film is complete."""
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        scale = WidthScale.of(self.certificate)
        writer = CertifiedFrames(
            certificate=self.certificate, scale=scale, maps="none", kinds=(RGB, HALF_WIDTH)
        )
        choice = Choice(self.cameras, f"{len(self.cameras)} recorded frames", FILM_FPS)
        self._names = list(self.cameras)
        self._job = Job(writer, choice, path_guarantee(self.certificate), scale, self.certificate)

    @property
    def share(self) -> float:
        """How much is rendered, 0 to 1."""
        return len(self.rows) / len(self.cameras)

    def next_frame(self) -> None:
        """Render one more frame."""
        name = self._names[len(self.rows)]
        self.rows.append(self._job.writer.write(self.folder, name, name, self.cameras[name]))

    def write(self, path: Path, on: Callable[[float], None]) -> None:
        """Encode the film; the file appears once it is complete. `on` hears the share done."""
        film, count = Film(self.folder, self.rows, self._job.scale), len(self.rows)

        def pictures():
            for done, row in enumerate(self.rows):
                on(done / count)
                yield film.frame(row)

        with replacing(path) as aside:
            encode(aside, pictures(), film.size, FILM_FPS)

    def words(self) -> dict[str, str]:
        """What the promise is, and how the frames compare with the calibration views."""
        compared = self._job.comparison(self.rows)
        return {
            **self._job.words,
            **frame_words(self.rows, self._job.scale, self._job.false_alarms),
            **({} if compared is None else {"Compared": f"{compared.words}."}),
        }
