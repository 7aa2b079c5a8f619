# SPDX-License-Identifier: Apache-2.0
"""Small results of finished jobs, kept in a folder from which a later run continues.

The folder has the layout of OUT, without models, residual fields and photographs. A stamp is
written after the files it names, and a file is taken over only if it has the hash in its stamp.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from splatcert.storage.whole import (
    ArtefactError,
    file_hash,
    output_folder,
    refuse_link,
    replacing,
)
from splatcert_bench.run.fingerprint import Stamp, Task, name_in, read_stamp, stamp_file
from splatcert_bench.run.plan import settled_jobs

JOBS = "jobs"
MAX_BYTES = 1 << 28
"""Largest file that is kept or taken over."""
LAST = "evaluate"
"""Kind of the job that writes tables and figures: kept to be read, never taken over."""


def keep(folder: Path, out: Path, task: Task) -> None:
    """Copy the small outputs of a finished job, and its stamp last."""
    if not task.stage:  # it takes no time, and its model is outside OUT
        return
    for path in task.kept:
        _copy(path, folder / name_in(out, path), folder)
    stamp = stamp_file(out / JOBS, task.name)
    _copy(stamp, stamp_file(folder / JOBS, task.name), folder)


def take_over(folder: Path, out: Path, tasks: Sequence[Task]) -> list[str]:
    """Copy kept jobs to OUT, except those that are finished there; returns their names."""
    refuse_link(folder)
    settled = settled_jobs(out / JOBS, tasks)
    taken = []
    for task in tasks:
        if task.stage in ("", LAST) or task.name in settled:
            continue
        stamp = read_stamp(folder / JOBS, task.name)
        if stamp is None or not _is_sound(folder, out, task, stamp):
            continue
        for path in _there(folder, out, task):
            output_folder(path.parent, inside=out)
            _copy(folder / name_in(out, path), path, out)
        _copy(stamp_file(folder / JOBS, task.name), stamp_file(out / JOBS, task.name), out)
        taken.append(task.name)
    return taken


def drop_passing(folder: Path, out: Path, tasks: Sequence[Task]) -> None:
    """Remove files that were kept for jobs which are done by now."""
    settled = settled_jobs(out / JOBS, tasks)
    for task in tasks:
        readers = [one.name for one in tasks if task.name in one.after]
        if task.passing and settled.issuperset([task.name, *readers]):
            for path in task.kept:
                (folder / name_in(out, path)).unlink(missing_ok=True)


def _is_sound(folder: Path, out: Path, task: Task, stamp: Stamp) -> bool:
    """Whether a stamp names this job's files, and those that are kept have their hashes."""
    names = {name_in(out, path) for path in task.outputs}
    if names != set(stamp.outputs) or names != set(stamp.sizes):
        return False
    there = _there(folder, out, task)
    if not task.passing and len(there) < len(task.kept):
        return False
    for path in task.bulky:  # those of another run are judged by their own job
        if path.is_file() and file_hash(path) != stamp.outputs[name_in(out, path)]:
            return False
    return all(
        (kept := folder / name_in(out, path)).stat().st_size == stamp.sizes[name_in(out, path)]
        and file_hash(kept) == stamp.outputs[name_in(out, path)]
        for path in there
    )


def _there(folder: Path, out: Path, task: Task) -> list[Path]:
    """The outputs of a job that are kept as regular files of a usual size."""
    return [path for path in task.kept if _is_usable(folder, folder / name_in(out, path))]


def _is_usable(folder: Path, path: Path) -> bool:
    inside = [path, *path.parents][: len(path.relative_to(folder).parts)]
    if any(step.is_symlink() for step in inside) or not path.is_file():
        return False
    return path.stat().st_size <= MAX_BYTES


def _copy(source: Path, target: Path, inside: Path) -> None:
    """Copy a file under a temporary name and rename it."""
    if not os.path.isfile(source) or source.is_symlink():
        raise ArtefactError(f"{source} is not a regular file.\n  Remove it, and run again.")
    output_folder(target.parent, inside=inside)
    with replacing(target) as aside:
        shutil.copyfile(source, aside)
