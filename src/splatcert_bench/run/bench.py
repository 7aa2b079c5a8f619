# SPDX-License-Identifier: Apache-2.0
"""Run a bench: finished jobs are skipped, failures are reported, and the rest continues."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from splatcert.storage.schema import to_plain
from splatcert.storage.whole import output_folder, owned_folder, write_text_whole
from splatcert.training.jobs import Job, NotBegun, Outcome, run_jobs
from splatcert_bench.baselines.named import maker_of
from splatcert_bench.jobs.graph import tasks_of
from splatcert_bench.run.entries import BenchError
from splatcert_bench.run.fingerprint import Task, perform, read_stamp
from splatcert_bench.run.kept import drop_passing, keep, take_over
from splatcert_bench.run.layout import Bench
from splatcert_bench.run.plan import left, skipped_jobs

SHOWN = 3
"""Entries that a message lists, to stay within five lines."""


@dataclass(frozen=True)
class Failure:
    """A job that failed or could not start."""

    job: str
    why: str
    begun: bool = True
    """False if a job it depends on failed."""


@dataclass
class State:
    """Progress of a bench."""

    total: int
    done: int = 0
    failed: list[Failure] = field(default_factory=list)
    running: tuple[str, ...] = ()
    left: float | None = None
    """Estimated seconds, from the jobs done so far; None before the first."""
    skipped: int = 0
    """Jobs that were left for a later instalment."""
    has_results: bool = False
    """Whether tables and figures were written from everything that is there."""

    def words(self) -> str:
        """The progress in one line."""
        parts = [f"{self.done} of {self.total} jobs done"]
        begun = sum(one.begun for one in self.failed)
        if begun:
            parts.append(f"{begun} failed")
        if skipped := len(self.failed) - begun:
            parts.append(f"{skipped} cannot start")
        if self.running:
            shown = ", ".join(self.running[:3])
            more = f" and {len(self.running) - 3} more" if len(self.running) > 3 else ""
            parts.append(f"running {shown}{more}")
        if self.skipped:
            parts.append(f"{self.skipped} left for later")
        if self.left is not None:
            parts.append(f"about {duration(self.left)} left")
        return "; ".join(parts)


@dataclass(frozen=True)
class Instalment:
    """A part of a bench that is run by itself."""

    only: tuple[str, ...] = ()
    """Scenes or jobs to run, also as patterns; all if empty."""
    keep: Path | None = None
    """Folder of small results: finished jobs are taken from it, and added to it."""


Tell = Callable[[State, Outcome | None], None]
"""Called whenever a job ends or the running jobs change."""


class Forecast:
    """Estimate of the time left, from jobs of the same kind."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._open = Counter(task.stage for task in tasks if task.stage)
        self._seconds: dict[str, list[float]] = {}
        self.at_once = 1
        """Most jobs seen running at the same time."""

    def know(self, stage: str, seconds: float) -> None:
        """Record how long a job of this kind took, now or in an earlier run."""
        if stage:
            self._seconds.setdefault(stage, []).append(seconds)

    def ended(self, stage: str) -> None:
        """Count one job of this kind as ended."""
        if stage:
            self._open[stage] -= 1

    def left(self) -> float | None:
        """Seconds left; a kind without a record counts as the mean of the others."""
        if not self._seconds:
            return None
        means = {stage: sum(s) / len(s) for stage, s in self._seconds.items()}
        usual = sum(means.values()) / len(means)
        work = sum(count * means.get(stage, usual) for stage, count in self._open.items())
        return work / self.at_once


def run_bench(
    bench: Bench,
    *,
    workers: int = 1,
    ray_address: str | None = None,
    tell: Tell | None = None,
    instalment: Instalment | None = None,
) -> State:
    """Run the remaining jobs, or those of one instalment; the state names what failed."""
    refuse_missing(bench)
    for method in bench.config.study.methods:
        maker_of(method, bench.file.parent)  # a misspelt name is reported now, not after training
    asked = instalment or Instalment()
    with owned_folder(bench.out, "running a bench"):
        settings = json.dumps(to_plain(bench.config), indent=1)
        write_text_whole(bench.out / "bench.json", settings + "\n")
        every, stamps = tasks_of(bench), output_folder(bench.out / "jobs")
        if asked.keep is not None:
            take_over(asked.keep, bench.out, every)
        skipped = skipped_jobs(stamps, every, asked.only)
        tasks = tasks_of(bench, skipped)
        state = State(total=len(tasks), skipped=len(every) - len(tasks))
        ran: set[str] = set()
        # Again, because a model that was trained anew may differ from the one that was lost.
        while not state.failed and (todo := left(stamps, tasks)):
            if ran.issuperset(task.name for task in todo):
                raise RuntimeError(f"{todo[0].name} is not done after it ran")
            ran |= {task.name for task in todo}
            state.done = len(tasks) - len(todo)
            _run(bench, tasks, todo, state, Runner(workers, ray_address, tell, asked.keep))
        state.done = len(tasks) - len(left(stamps, tasks))
        state.has_results = not state.failed and any(one.stage == "evaluate" for one in tasks)
        if asked.keep is not None:
            drop_passing(asked.keep, bench.out, tasks)
    return state


class Runner(NamedTuple):
    """Where jobs run, whom progress is told and where results are kept."""

    workers: int
    ray_address: str | None
    tell: Tell | None
    keep: Path | None


def _run(
    bench: Bench, tasks: Sequence[Task], todo: Sequence[Task], state: State, runner: Runner
) -> None:
    stamps = bench.out / "jobs"
    known = {task.name: task for task in tasks}
    forecast = Forecast(todo)
    for task in tasks:
        if stamp := read_stamp(stamps, task.name):
            forecast.know(task.stage, stamp.seconds)
    names = {task.name for task in todo}
    jobs = [
        Job(task.name, perform, (stamps, task), tuple(n for n in task.after if n in names))
        for task in todo
    ]

    def watch(running: Sequence[str]) -> None:
        forecast.at_once = max(forecast.at_once, len(running))
        state.running, state.left = tuple(running), forecast.left()
        if runner.tell is not None:
            runner.tell(state, None)

    for outcome in run_jobs(
        jobs, workers=runner.workers, ray_address=runner.ray_address, watch=watch
    ):
        task = known[outcome.job.name]
        forecast.ended(task.stage)
        if outcome.error is not None:
            begun = not isinstance(outcome.error, NotBegun)
            state.failed.append(Failure(task.name, str(outcome.error), begun))
        else:
            state.done += 1
            if outcome.result is not None:
                forecast.know(task.stage, outcome.result)
            if runner.keep is not None:
                keep(runner.keep, bench.out, task)
        state.running = tuple(n for n in state.running if n != task.name)
        state.left = forecast.left()
        if runner.tell is not None:
            runner.tell(state, outcome)
    state.left = None


def duration(seconds: float) -> str:
    """A duration in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def refuse_missing(bench: Bench) -> None:
    """Refuse captures and models that do not exist, all in one message."""
    missing = [
        f"{entry.name}: no capture at {bench.capture(entry.name)}"
        for entry in bench.config.scene
        if entry.path is not None and not bench.capture(entry.name).exists()
    ]
    missing += [
        f"{model.scene}: no finished run at {model.given}"
        for model in bench.models()
        if model.given is not None and not (model.given / "splats.ply").is_file()
    ]
    if missing:
        lines = "\n  ".join(missing[:SHOWN])
        more = f" (and {len(missing) - SHOWN} more)" if len(missing) > SHOWN else ""
        raise BenchError(
            f"{bench.file} lists captures or models that do not exist{more}:\n  {lines}\n"
            "  Captures are relative to --data (default: the file's folder), models to the file."
        )
