# SPDX-License-Identifier: Apache-2.0
"""`splatcert render`: pictures of a model, or of a certificate with an error bar at every pixel."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from splatcert.commands import EngineOptions
from splatcert.console import progress, say
from splatcert.errors import OptionError
from splatcert.storage.whole import output_folder

if TYPE_CHECKING:
    from splatcert.frames.writer import Job
    from splatcert.report.colours import WidthBar

Colour = tuple[float, float, float]
Row = dict[str, Any]
LONGEST_NAME = 200
"""Bytes of a file's name; systems allow 255, and suffixes are added."""


@dataclass(frozen=True, kw_only=True)
class Render:
    """Render a model, or a certificate with its boxes, from any cameras.

    A model gives one PNG a view. A certificate gives colour, box edges and half-width as
    pictures and as numbers, a table of all frames, and a film that shows render and
    half-width side by side. Run the same command again after an interruption: frames that
    are done are kept.
    """

    interrupted: ClassVar[str] = "Finished frames are kept: the same command goes on from there."

    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT|MODEL")]
    """Certificate, or a model: PLY file, Inria folder, gsplat .pt or nerfstudio .ckpt."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="DIR")]
    """Folder for the pictures."""
    cameras: Annotated[str, tyro.conf.arg(metavar="WHICH|FILE")] = "held-out"
    """Views of the capture (held-out, training, all), a path (orbit around or spline through
    the training cameras), or a file: cameras.json, transforms.json, COLMAP folder."""
    model: Annotated[Path | None, tyro.conf.arg(metavar="MODEL")] = None
    """The certificate's model, where it is no longer where it was."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="DATA")] = None
    """Capture of a model: its cameras, and its frame. A certificate knows its own cameras."""
    resolution: Annotated[str | None, tyro.conf.arg(metavar="SIZE")] = None
    """Longest side in pixels (1600) or a factor (1/2). Unless told, a certificate is rendered
    at most as large as it was certified."""
    seconds: float | None = None
    """Length of a path; unless told, by the length of the way."""
    fps: int | None = None
    """Frames per second: 30 along a path, 4 for single views, unless told."""
    maps: Literal["auto", "npz", "exr", "none"] = "auto"
    """Float maps of a certificate's frames: npz for single views, none along a path, unless
    told."""
    no_film: bool = False
    """Leave the mp4 out."""
    background: Annotated[Colour | None, tyro.conf.arg(metavar="R G B")] = None
    """Colour behind a model's splats, 0 to 1. Unless told: the model's, the capture's, black."""
    engine: tyro.conf.OmitArgPrefixes[EngineOptions] = field(default_factory=EngineOptions)
    json: bool = False
    """Print one JSON object instead of words."""

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 < self.seconds <= 3600:
            raise OptionError(f"--seconds must lie between 0 and 3600, got {self.seconds:g}.")
        if self.fps is not None and not 1 <= self.fps <= 240:
            raise OptionError(f"--fps must be 1 to 240, got {self.fps}.")
        if self.background is not None and not all(0 <= c <= 1 for c in self.background):
            raise OptionError(
                f"--background needs three numbers from 0 to 1, got {self.background}."
            )

    def run(self) -> None:
        """Choose cameras, render what is missing, write tables and film, and say so."""
        from splatcert.deploy import is_certificate
        from splatcert.frames.writer import certified_job, model_job
        from splatcert.storage.whole import owned_folder

        engine = self.engine.start()
        job = certified_job(self) if is_certificate(self.path) else model_job(self)
        stems = picture_names(job.choice.cameras)
        started = time.perf_counter()
        with owned_folder(output_folder(self.output), "rendering") as folder:
            rows, made = self._frames(job, stems, folder)
            written = self._finish(job, rows, folder)
        seconds = time.perf_counter() - started
        if self.json:
            print(json.dumps(self._facts(job, rows, written), indent=2))
            return
        for label, text in job.words.items():
            say(label, text)
        say("cameras", job.choice.words)
        say("back end", engine)
        kept = f", {len(rows) - made} were there already" if made < len(rows) else ""
        say("rendered", f"{made} views in {seconds:.1f} s, files included{kept}")
        for label, text in frame_words(rows, job.scale).items():
            say(label, text)
        for label, text in written.items():
            say(label, text)
        say("wrote", f"{folder}/{job_file(rows)}" + (" ..." if len(rows) > 1 else ""))

    def _frames(self, job: Job, stems: dict[str, str], folder: Path) -> tuple[list[Row], int]:
        """Rows of all frames in order, and how many of them were rendered now."""
        from splatcert.frames.ledger import FrameLedger

        ledger, rows, made = FrameLedger(folder), [], 0
        for name, camera in progress(list(job.choice.cameras.items()), "rendering"):
            key = job.writer.key(camera)
            row = ledger.finished(name, key)
            if row is None:
                row = job.writer.write(folder, name, stems[name], camera)
                ledger.add(key, row)
                made += 1
            rows.append(row)
        return rows, made

    def _finish(self, job: Job, rows: list[Row], folder: Path) -> dict[str, str]:
        """Tables, scale and film, after all frames; what was written, in words."""
        from splatcert.frames.film import NOT_INSTALLED, Film, can_film
        from splatcert.frames.ledger import write_tables
        from splatcert.report.colours import UNIT
        from splatcert.storage.png import save_png

        written = {}
        if job.scale is not None:
            write_tables(folder, rows)
            save_png(folder / "scale.png", job.scale.legend(UNIT))
            written["table"] = f"{folder}/frames.csv and frames.json"
        if not self.no_film and len(rows) > 1 and (job.scale is not None or job.choice.is_path):
            if not can_film():
                return {**written, "film": NOT_INSTALLED}
            path = Film(folder, rows, job.scale).write(
                folder / "film.mp4", self.fps or job.choice.fps
            )
            written["film"] = f"{path}"
        return written

    def _facts(self, job: Job, rows: list[Row], written: dict[str, str]) -> dict[str, Any]:
        kind = "model frames" if job.scale is None else "certified frames"
        scale = None if job.scale is None else job.scale.end
        film = written.get("film")
        return {
            "kind": kind,
            "path": str(self.output),
            "cameras": job.choice.words,
            "film": film if film and film.endswith(".mp4") else None,
            "scale_top": scale,
            "frames": rows,
        }


def frame_words(rows: list[Row], scale: WidthBar | None) -> dict[str, str]:
    """What a table of certified frames says, for people."""
    if scale is None:
        return {}
    widths = sorted(float(row["mean_half_width"]) for row in rows)
    median = widths[len(widths) // 2]
    told = {
        "half-width": f"{median:.4f} in the median frame, {widths[0]:.4f} to {widths[-1]:.4f}, "
        f"where RGB goes from 0 to 1; pictures show 0 to {scale.end:.3f}, {scale.top} of 255",
        "support": f"{sum(row['support'] == 'within' for row in rows)} of {len(rows)} frames "
        "within support",
    }
    beyond = next((reason for row in rows for reason in row["reasons"]), None)
    if beyond is not None:
        told["beyond"] = f"for example: a frame {beyond}"
    return told


def job_file(rows: list[Row]) -> str:
    """The first file of the first frame."""
    return next(iter(rows[0]["files"].values()))


def _is_unicode(name: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in name)


def picture_names(names: Iterable[str]) -> dict[str, str]:
    """A file name without suffix below the output folder for each view, none twice."""
    stems = {name: PurePosixPath(name.replace("\\", "/")) for name in names}
    for name, stem in stems.items():
        if stem.is_absolute() or ".." in stem.parts or not stem.name:
            raise OptionError(f"the view name {name!r} would be written outside the output folder.")
        encoded = [part.encode("utf-8", "surrogatepass") for part in stem.parts]
        if "\0" in name or not _is_unicode(name) or max(map(len, encoded)) > LONGEST_NAME:
            raise OptionError(f"the view name {name!r:.80} is no name of a file.\n  Rename it.")
    short = {name: str(stem.with_suffix("")) for name, stem in stems.items()}
    return (
        short if len(set(short.values())) == len(short) else {n: str(s) for n, s in stems.items()}
    )
