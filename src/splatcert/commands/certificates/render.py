# SPDX-License-Identifier: Apache-2.0
"""`splatcert render`: pictures of a model, or of a certificate with a box at every pixel."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from splatcert.commands import MEMBER, unset
from splatcert.commands.engines import CertifiedEngineOptions, Engine
from splatcert.console import progress, say, say_all
from splatcert.errors import OptionError
from splatcert.storage.whole import output_folder

if TYPE_CHECKING:
    from splatcert.frames.job import FrameRequest, Job
    from splatcert.report.colours import WidthScale

Colour = tuple[float, float, float]
Row = dict[str, Any]
LONGEST_NAME = 200
"""Bytes of a file name; systems allow 255, and suffixes are added."""


@dataclass(frozen=True, kw_only=True)
class Render:
    """Render a model, or a certificate with its boxes, from any cameras.

    For a model, writes one PNG per view. For a certificate, writes colour, box edges and
    half-width as pictures and as numbers, a table of all frames, and a film of render and
    half-width side by side. Safe to interrupt: run the same command again to resume.
    """

    interrupted: ClassVar[str] = "Finished frames are kept. Run the same command again to resume."

    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT|MODEL")]
    """Certificate, or model in any form that certify takes."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="DIR")]
    """Folder to write the pictures to."""
    cameras: Annotated[str, tyro.conf.arg(metavar="WHICH|FILE")] = "held-out"
    """Cameras: held-out, training, all, orbit, spline, or a file or COLMAP folder of cameras."""
    model: Annotated[Path | None, unset("MODEL")] = None
    """Path to the certified model, if it has moved."""
    data: Annotated[Path | None, unset("DATA")] = None
    """Capture: cameras and coordinate frame of a model; a certificate's own, if it has moved."""
    member: Annotated[str | None, unset("NAME", text=MEMBER)] = None
    resolution: Annotated[str | None, unset("SIZE")] = None
    """Longest side in pixels (1600) or a factor (1/2). Default: at most as large as certified."""
    seconds: Annotated[float | None, unset("FLOAT")] = None
    """Duration of the camera path in seconds. Default: from its length."""
    fps: Annotated[int | None, unset("INT")] = None
    """Frames per second. Default: 30 along a path, 4 for separate views."""
    maps: Literal["auto", "npz", "exr", "none"] = "auto"
    """Format of float maps. auto: npz for separate views, none along a path."""
    no_film: bool = False
    """Do not write the film."""
    background: Annotated[Colour | None, unset("R G B")] = None
    """Colour behind a model, 0 to 1. Default: the model's, else the capture's, else black."""
    engine: tyro.conf.OmitArgPrefixes[CertifiedEngineOptions] = field(
        default_factory=CertifiedEngineOptions
    )
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 < self.seconds <= 3600:
            raise OptionError(f"--seconds must be above 0 and at most 3600, got {self.seconds:g}.")
        if self.fps is not None and not 1 <= self.fps <= 240:
            raise OptionError(f"--fps must be 1 to 240, got {self.fps}.")
        if self.background is not None and not all(0 <= c <= 1 for c in self.background):
            raise OptionError(
                f"--background must be three numbers from 0 to 1, got {self.background}."
            )

    def run(self) -> None:
        """Choose cameras, render missing frames, write tables and film."""
        self.engine.attempt(self._run)

    def _run(self, engine: Engine) -> None:
        from splatcert.frames.job import frame_job
        from splatcert.storage.whole import owned_folder

        job = frame_job(self._request(engine))
        stems = picture_names(job.choice.cameras)
        started = time.perf_counter()
        with owned_folder(output_folder(self.output), "rendering") as folder:
            rows, made = self._frames(job, stems, folder)
            written = self._finish(job, rows, folder)
        seconds, compared = time.perf_counter() - started, job.comparison(rows)
        if self.json:
            facts = self._facts(job, rows, written)
            facts["comparison"] = None if compared is None else compared.facts()
            print(json.dumps(facts, indent=2))
            return
        say_all(job.words)
        say("Cameras", job.choice.words)
        say("Back end", job.engine or engine.words)
        kept = f"; {len(rows) - made} were already finished" if made < len(rows) else ""
        say("Rendered", f"{made} views in {seconds:.1f} s, including writing{kept}")
        say_all(frame_words(rows, job.scale, job.false_alarms))
        if compared is not None:
            say("Compared", f"{compared.words}.")
        say_all(written)
        say("Wrote", f"{folder}/{first_file(rows)}" + (" ..." if len(rows) > 1 else ""))

    def _request(self, engine: Engine) -> FrameRequest:
        from splatcert.frames.job import FrameRequest

        return FrameRequest(
            path=self.path,
            cameras=self.cameras,
            model=self.model,
            data=self.data,
            member=self.member,
            resolution=self.resolution,
            seconds=self.seconds,
            fps=self.fps,
            maps=self.maps,
            background=self.background,
            backend=engine.asked,
        )

    def _frames(self, job: Job, stems: dict[str, str], folder: Path) -> tuple[list[Row], int]:
        """Rows of all frames in order, and how many were rendered in this run."""
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
        """Write tables, colour scale and film; returns what was written, in labelled lines."""
        from splatcert.frames.film import NOT_INSTALLED, Film, can_film
        from splatcert.frames.ledger import write_tables
        from splatcert.report.colours import UNIT
        from splatcert.storage.png import save_png

        written = {}
        if job.scale is not None:
            write_tables(folder, rows)
            save_png(folder / "scale.png", job.scale.legend(UNIT))
            written["Table"] = f"{folder}/frames.csv and frames.json"
        if not self.no_film and len(rows) > 1 and (job.scale is not None or job.choice.is_path):
            if not can_film():
                return {**written, "Film": NOT_INSTALLED}
            path = Film(folder, rows, job.scale).write(
                folder / "film.mp4", self.fps or job.choice.fps
            )
            written["Film"] = f"{path}"
        return written

    def _facts(self, job: Job, rows: list[Row], written: dict[str, str]) -> dict[str, Any]:
        kind = "model frames" if job.scale is None else "certified frames"
        scale = None if job.scale is None else job.scale.end
        film = written.get("Film")
        return {
            "kind": kind,
            "path": str(self.output),
            "cameras": job.choice.words,
            "film": film if film and film.endswith(".mp4") else None,
            "scale_top": scale,
            "frames": rows,
        }


def frame_words(
    rows: list[Row], scale: WidthScale | None, rate: Fraction | None = None
) -> dict[str, str]:
    """A summary of certified frames; `rate` is the flag's rate of false alarms."""
    from splatcert.conformal.boxes import Flag, width_in_words

    if scale is None:
        return {}
    widths = sorted(float(row["mean_half_width"]) for row in rows)
    median, vacuous = widths[len(widths) // 2], sum(bool(row["vacuous"]) for row in rows)
    least = width_in_words(widths[0]).removesuffix(" of 255")
    told = {
        "Half-width": f"{width_in_words(median)} in the median frame ({least} to "
        f"{width_in_words(widths[-1])}); pictures show 0 to {scale.top}",
        "Vacuous": f"{vacuous} of {len(rows)} frames have boxes wider than the range of colours, "
        "which say nothing"
        if vacuous
        else "",
        "Flagged": f"{sum(row['support'] == 'out' for row in rows)} of {len(rows)} frames are out "
        f"of distribution{Flag(False, rate=rate).alarms}",
    }
    beyond = next((reason for row in rows for reason in row["reasons"]), None)
    if beyond is not None:
        told["Outside"] = f"for example, a frame {beyond}"
    return {label: text for label, text in told.items() if text}


def first_file(rows: list[Row]) -> str:
    """The first file of the first frame."""
    return next(iter(rows[0]["files"].values()))


def _is_unicode(name: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in name)


def picture_names(names: Iterable[str]) -> dict[str, str]:
    """A unique file name without suffix for each view, relative to the output folder."""
    stems = {name: PurePosixPath(name.replace("\\", "/")) for name in names}
    for name, stem in stems.items():
        if stem.is_absolute() or ".." in stem.parts or not stem.name:
            raise OptionError(f"the view name {name!r} would be written outside the output folder.")
        encoded = [part.encode("utf-8", "surrogatepass") for part in stem.parts]
        if "\0" in name or not _is_unicode(name) or max(map(len, encoded)) > LONGEST_NAME:
            raise OptionError(f"the view name {name!r:.80} is not a valid file name.\n  Rename it.")
    short = {name: str(stem.with_suffix("")) for name, stem in stems.items()}
    return (
        short if len(set(short.values())) == len(short) else {n: str(s) for n, s in stems.items()}
    )
