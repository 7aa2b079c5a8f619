# SPDX-License-Identifier: Apache-2.0
"""Which jobs run now: those not done yet, and those whose lost outputs they read.

A job is settled if its stamp matches its settings and inputs, whether or not its files are
there. So a model that only finished jobs needed is not trained again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from splatcert_bench.run.entries import RESERVED, BenchError
from splatcert_bench.run.fingerprint import Task, fingerprint_of, read_stamp

ALWAYS = ("predict", "evaluate")
"""Kinds of jobs that gather what is there; they take seconds and run in every instalment."""


def settled_jobs(stamps: Path, tasks: Sequence[Task]) -> set[str]:
    """Jobs whose stamp matches, and those of all jobs before them."""
    found: set[str] = set()
    for task in tasks:
        stamp = read_stamp(stamps, task.name)
        if stamp is not None and found.issuperset(task.after):
            if stamp.fingerprint == fingerprint_of(stamps, task):
                found.add(task.name)
    return found


def left(stamps: Path, tasks: Sequence[Task]) -> list[Task]:
    """Jobs that are not done, and finished ones that must be done again for their files."""
    settled = settled_jobs(stamps, tasks)
    whole = {task.name for task in tasks if _is_whole(stamps, task)}
    there = {task.name for task in tasks if _is_whole(stamps, task, _may_lack(task))}
    wanted = {task.name for task in tasks if task.name not in settled & there}
    for task in reversed(tasks):
        if task.name in wanted and not task.is_light:
            wanted |= {name for name in task.after if name not in whole}
    return [task for task in tasks if task.name in wanted]


def _may_lack(task: Task) -> tuple[Path, ...]:
    return task.outputs if task.passing else task.bulky


def _is_whole(stamps: Path, task: Task, without: Collection[Path] = ()) -> bool:
    stamp = read_stamp(stamps, task.name)
    return stamp is not None and stamp.is_intact(stamps.parent, without)


def skipped_jobs(stamps: Path, tasks: Sequence[Task], only: Sequence[str]) -> set[str]:
    """Jobs that this instalment leaves out.

    `only` names scenes or jobs, also by patterns. The jobs of the same scene that they read run
    as well. Jobs about several scenes run as soon as every scene they read is there.
    """
    if not only:
        return set()
    tasks = [task for task in tasks if task.stage not in ALWAYS]
    chosen = {task.name for task in tasks if _scene(task) is None}
    for pattern in only:
        named = {task.name for task in tasks if any(fnmatchcase(n, pattern) for n in _names(task))}
        if not named:
            raise BenchError(
                f"--only {pattern!r} matches no scene and no job of this bench.\n"
                "  Name scenes or jobs, separated by commas: truck,garden or '*/guide-source'."
            )
        chosen |= named
    known = {task.name: task for task in tasks}
    for task in reversed(tasks):
        if task.name in chosen and _scene(task) is not None:
            chosen |= {n for n in task.after if _scene(known[n]) == _scene(task)}
    scenes = {_scene(known[name]) for name in chosen}
    settled = settled_jobs(stamps, tasks)
    again = {task.name for task in left(stamps, tasks)}
    available: set[str] = set()
    for task in tasks:
        here = {name for name in task.after if _can_be_read(task, known[name], again, scenes)}
        if task.name in settled or (task.name in chosen and available & here >= set(task.after)):
            available.add(task.name)
    return set(known) - available


def _can_be_read(task: Task, source: Task, again: Collection[str], scenes: Collection) -> bool:
    """Whether a job's files are there, or may be made again by this instalment."""
    return task.is_light or source.name not in again or _scene(source) in scenes


def _scene(task: Task) -> str | None:
    """The scene of a job; None if it is about several."""
    first, slash, _ = task.name.partition("/")
    return first.partition("+")[0] if slash and first not in RESERVED else None


def _names(task: Task) -> Iterable[str]:
    """What a pattern may match: the job, its model or its scene."""
    scene = _scene(task)
    return (task.name,) if scene is None else (task.name, task.name.partition("/")[0], scene)
