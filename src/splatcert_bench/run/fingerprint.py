# SPDX-License-Identifier: Apache-2.0
"""Stamps: the inputs and outputs of a finished job.

A job is redone only if its fingerprint has changed: its settings, or the content of its
inputs. So a killed bench resumes, and one whose file was edited redoes only what the edit
affects.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatcert import __version__
from splatcert.certificate.hashes import canonical
from splatcert.raster.abreast import one_torch_thread
from splatcert.storage.schema import JsonError, read_json
from splatcert.storage.whole import file_hash, locked, write_text_whole
from splatcert_bench.run.machine import load, peak_mib


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


@dataclass(frozen=True)
class Stamp:
    """Record of a finished job."""

    fingerprint: str
    outputs: Mapping[str, str]
    """SHA-256 of every file it wrote, by path inside the bench's folder."""
    sizes: Mapping[str, int]
    seconds: float
    load: float | None = None
    """Mean load of the machine while it ran; above the number of cores, times are too long."""
    peak_mib: int | None = None
    """Largest memory of its process until it ended."""

    def is_intact(self, out: Path) -> bool:
        """Whether its files still exist, at the same size."""
        return all(
            (path := out / name).is_file() and path.stat().st_size == size
            for name, size in self.sizes.items()
        )


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
        started, busy = time.perf_counter(), load()
        try:
            with one_torch_thread():
                task.function(*task.arguments)
        except Exception:
            write_text_whole(stamps / f"{_file(task.name)}.error.txt", traceback.format_exc())
            raise
        (stamps / f"{_file(task.name)}.error.txt").unlink(missing_ok=True)
        seconds = time.perf_counter() - started
        loads = [value for value in (busy, load()) if value is not None]
        write_stamp(stamps, task, fingerprint, seconds, sum(loads) / len(loads) if loads else None)
        return seconds


def is_done(stamps: Path, task: Task) -> bool:
    """Whether the job is done and up to date."""
    known = read_stamp(stamps, task.name)
    if known is None or not known.is_intact(stamps.parent):
        return False
    return known.fingerprint == fingerprint_of(stamps, task)


def fingerprint_of(stamps: Path, task: Task) -> str:
    """One hash of version, settings and the content of the job's inputs."""
    found = {name: read_stamp(stamps, name) for name in task.after}
    read = {name: sorted(s.outputs.values()) for name, s in found.items() if s is not None}
    content = {"splatcert": __version__, "stage": task.stage, "settings": task.settings}
    return hashlib.sha256(canonical(content | {"read": read}).encode()).hexdigest()


def write_stamp(
    stamps: Path, task: Task, fingerprint: str, seconds: float, busy: float | None = None
) -> None:
    """Record that a job is done."""
    out = stamps.parent
    names = {p: str(p.relative_to(out) if p.is_relative_to(out) else p) for p in task.outputs}
    content = {
        "job": task.name,
        "fingerprint": fingerprint,
        "outputs": {name: file_hash(path) for path, name in names.items()},
        "sizes": {name: path.stat().st_size for path, name in names.items()},
        "seconds": round(seconds, 3),
        "load": None if busy is None else round(busy, 2),
        "peak_mib": peak_mib(),
    }
    write_text_whole(stamps / f"{_file(task.name)}.json", json.dumps(content, indent=1) + "\n")


def read_stamp(stamps: Path, name: str) -> Stamp | None:
    """The stamp of a job; None if there is none or it cannot be read."""
    return read_stamp_file(stamps / f"{_file(name)}.json")


def read_stamp_file(path: Path) -> Stamp | None:
    """The stamp in a file; None if it cannot be read."""
    try:
        content = read_json(path, "stamp")
        parts = {key: content[key] for key in ("fingerprint", "outputs", "sizes", "seconds")}
        return Stamp(**parts, load=content.get("load"), peak_mib=content.get("peak_mib"))
    except (JsonError, KeyError, TypeError):
        return None


def _file(name: str) -> str:
    return name.replace("/", ".")
