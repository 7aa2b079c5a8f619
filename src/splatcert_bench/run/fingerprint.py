# SPDX-License-Identifier: Apache-2.0
"""Stamps: the inputs and outputs of a finished job.

A job is redone only if its fingerprint has changed: its settings, or the content of its
inputs. So a killed bench resumes, and one whose file was edited redoes only what the edit
affects. A fingerprint follows from stamps alone: no output needs to be there.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from splatcert import __version__
from splatcert.certificate.hashes import canonical
from splatcert.raster.abreast import one_torch_thread
from splatcert.storage.schema import JsonError, PlainError, from_plain, read_json
from splatcert.storage.whole import file_hash, locked, write_text_whole
from splatcert_bench.run.machine import load, peak_mib

MAX_STAMP = 1 << 20
"""Largest stamp that is read, in bytes."""


@dataclass(frozen=True)
class Task:
    """One job of a bench."""

    name: str
    stage: str
    """Kind of work; jobs of one kind take about equally long. Empty if it takes almost no time."""
    function: Callable[..., None]
    arguments: tuple[Any, ...]
    settings: Mapping[str, Any]
    """Plain values that determine the result."""
    outputs: tuple[Path, ...]
    """Files it writes."""
    after: tuple[str, ...] = ()
    """Jobs whose outputs it reads."""
    bulky: tuple[Path, ...] = ()
    """Outputs that are not kept between instalments: large, or not to be passed on.

    They are made again if an unfinished job reads them.
    """
    passing: bool = False
    """Whether its outputs are kept only until every job that reads them is done."""
    dated: tuple[Path, ...] = ()
    """Outputs that contain times: they differ from run to run, so fingerprints leave them out."""
    is_light: bool = False
    """Whether it reads no bulky output."""
    reads_times: bool = False
    """Whether its result depends on the dated outputs that it reads."""

    @property
    def kept(self) -> tuple[Path, ...]:
        """Outputs that are small enough to keep."""
        return tuple(path for path in self.outputs if path not in self.bulky)


@dataclass(frozen=True)
class Stamp:
    """Record of a finished job."""

    fingerprint: str
    outputs: dict[str, str]
    """SHA-256 of every file it wrote, by path inside the bench's folder."""
    sizes: dict[str, int]
    seconds: float
    load: float | None = None
    """Mean load of the machine while it ran; above the number of cores, times are too long."""
    peak_mib: int | None = None
    """Largest memory of its process until it ended."""
    processor_seconds: float | None = None
    """Time of all its threads together."""
    dated: tuple[str, ...] = ()
    """Files that contain times."""

    def is_intact(self, out: Path, without: Collection[Path] = ()) -> bool:
        """Whether its files, except these, still exist at the same size."""
        return all(
            (path := out / name) in without or (path.is_file() and path.stat().st_size == size)
            for name, size in self.sizes.items()
        )


UNKNOWN = {"load": None, "peak_mib": None, "processor_seconds": None, "dated": []}
"""Entries that older stamps do not have."""


def perform(stamps: Path, task: Task) -> float | None:
    """Run the job unless it is done; returns its seconds, or None if there was nothing to do.

    Waits if another process is running it, for example on a node that was given up too early.
    """
    with locked(stamps / f".{_file(task.name)}.lock"):
        fingerprint = fingerprint_of(stamps, task)
        known = read_stamp(stamps, task.name)
        if (
            known is not None
            and known.fingerprint == fingerprint
            and known.is_intact(stamps.parent)
        ):
            return None
        started, busy, used = time.perf_counter(), load(), time.process_time()
        try:
            with one_torch_thread():
                task.function(*task.arguments)
        except Exception:
            write_text_whole(stamps / f"{_file(task.name)}.error.txt", traceback.format_exc())
            raise
        (stamps / f"{_file(task.name)}.error.txt").unlink(missing_ok=True)
        seconds = time.perf_counter() - started
        loads = [value for value in (busy, load()) if value is not None]
        spent = Spent(
            seconds,
            time.process_time() - used,
            sum(loads) / len(loads) if loads else None,
        )
        write_stamp(stamps, task, fingerprint, spent)
        return seconds


def is_done(stamps: Path, task: Task) -> bool:
    """Whether the job is done and up to date."""
    known = read_stamp(stamps, task.name)
    if known is None or not known.is_intact(stamps.parent):
        return False
    return known.fingerprint == fingerprint_of(stamps, task)


def fingerprint_of(stamps: Path, task: Task) -> str:
    """One hash of version, settings and the content of the job's inputs."""
    read = {
        name: sorted(
            digest
            for path, digest in stamp.outputs.items()
            if task.reads_times or path not in stamp.dated
        )
        for name in task.after
        if (stamp := read_stamp(stamps, name)) is not None
    }
    content = {"splatcert": __version__, "stage": task.stage, "settings": task.settings}
    return hashlib.sha256(canonical(content | {"read": read}).encode()).hexdigest()


class Spent(NamedTuple):
    """What a job took."""

    seconds: float
    processor_seconds: float
    load: float | None


def write_stamp(stamps: Path, task: Task, fingerprint: str, spent: Spent) -> None:
    """Record that a job is done."""
    names = {path: name_in(stamps.parent, path) for path in task.outputs}
    content = {
        "job": task.name,
        "fingerprint": fingerprint,
        "outputs": {name: file_hash(path) for path, name in names.items()},
        "sizes": {name: path.stat().st_size for path, name in names.items()},
        "dated": [names[path] for path in task.dated],
        "seconds": round(spent.seconds, 3),
        "processor_seconds": round(spent.processor_seconds, 3),
        "load": None if spent.load is None else round(spent.load, 2),
        "peak_mib": peak_mib(),
    }
    write_text_whole(stamp_file(stamps, task.name), json.dumps(content, indent=1) + "\n")


def name_in(out: Path, path: Path) -> str:
    """The name of an output in stamps; a model given by the user is outside the folder."""
    return path.relative_to(out).as_posix() if path.is_relative_to(out) else str(path)


def stamp_file(stamps: Path, name: str) -> Path:
    """File of a job's stamp."""
    return stamps / f"{_file(name)}.json"


def read_stamp(stamps: Path, name: str) -> Stamp | None:
    """The stamp of a job; None if there is none or it cannot be read."""
    return read_stamp_file(stamp_file(stamps, name))


def read_stamp_file(path: Path) -> Stamp | None:
    """The stamp in a file; None if it cannot be read."""
    try:
        content = read_json(path, "stamp", MAX_STAMP)
        content.pop("job", None)
        return from_plain(Stamp, UNKNOWN | content)
    except (JsonError, PlainError, AttributeError, TypeError):
        return None


def _file(name: str) -> str:
    return name.replace("/", ".")
