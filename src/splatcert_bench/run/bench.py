# SPDX-License-Identifier: Apache-2.0
"""Running a bench: what is done stays done, what fails is told, and the rest goes on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from splatcert.jobs import Job, NotBegun, Outcome, run_jobs
from splatcert.storage.schema import to_plain
from splatcert.storage.whole import owned_folder, write_text_whole
from splatcert_bench.baselines.named import maker_of
from splatcert_bench.run.fingerprint import Task, is_done, perform, read_stamp
from splatcert_bench.run.graph import tasks_of
from splatcert_bench.run.layout import Bench, refuse_missing


@dataclass(frozen=True)
class Failure:
    """A job that did not come to its end."""

    job: str
    why: str
    begun: bool = True
    """False where something that it waits for had failed."""


@dataclass
class State:
    """How far a bench is."""

    total: int
    done: int = 0
    failed: list[Failure] = field(default_factory=list)
    running: tuple[str, ...] = ()
    left: float | None = None
    """Seconds, as far as the jobs done so far tell; None before the first."""

    def words(self) -> str:
        """One line for people."""
        parts = [f"{self.done} of {self.total} jobs done"]
        begun = sum(one.begun for one in self.failed)
        if begun:
            parts.append(f"{begun} failed")
        if skipped := len(self.failed) - begun:
            parts.append(f"{skipped} cannot begin")
        if self.running:
            shown = ", ".join(self.running[:3])
            more = f" and {len(self.running) - 3} more" if len(self.running) > 3 else ""
            parts.append(f"running {shown}{more}")
        if self.left is not None:
            parts.append(f"about {duration(self.left)} left")
        return "; ".join(parts)


Tell = Callable[[State, Outcome | None], None]
"""Told whenever a job ends, or others are running."""


class Forecast:
    """How long the rest will take, from jobs of the same kind."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._open = Counter(task.stage for task in tasks if task.stage)
        self._seconds: dict[str, list[float]] = {}
        self.at_once = 1
        """Most jobs that were seen running together."""

    def know(self, stage: str, seconds: float) -> None:
        """A job of this kind took that long, now or in an earlier run."""
        if stage:
            self._seconds.setdefault(stage, []).append(seconds)

    def ended(self, stage: str) -> None:
        """One fewer to do."""
        if stage:
            self._open[stage] -= 1

    def left(self) -> float | None:
        """Seconds; kinds that nobody has seen yet count as the mean of the others."""
        if not self._seconds:
            return None
        means = {stage: sum(s) / len(s) for stage, s in self._seconds.items()}
        usual = sum(means.values()) / len(means)
        work = sum(count * means.get(stage, usual) for stage, count in self._open.items())
        return work / self.at_once


def run_bench(
    bench: Bench, *, workers: int = 1, ray_address: str | None = None, tell: Tell | None = None
) -> State:
    """Do what is left to do; the state at the end names what failed."""
    refuse_missing(bench)
    for method in bench.config.study.methods:
        maker_of(method, bench.file.parent)  # a misspelt one is told now, not after training
    with owned_folder(bench.out, "running a bench"):
        settings = json.dumps(to_plain(bench.config), indent=1)
        write_text_whole(bench.out / "bench.json", settings + "\n")
        return _run(bench, tasks_of(bench), workers, ray_address, tell)


def _run(
    bench: Bench, tasks: list[Task], workers: int, ray_address: str | None, tell: Tell | None
) -> State:
    stamps = bench.out / "jobs"
    stamps.mkdir(parents=True, exist_ok=True)
    kinds = {task.name: task.stage for task in tasks}
    todo = _left(stamps, tasks)
    state = State(total=len(tasks), done=len(tasks) - len(todo))
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
        if tell is not None:
            tell(state, None)

    for outcome in run_jobs(jobs, workers=workers, ray_address=ray_address, watch=watch):
        forecast.ended(kinds[outcome.job.name])
        if outcome.error is not None:
            begun = not isinstance(outcome.error, NotBegun)
            state.failed.append(Failure(outcome.job.name, str(outcome.error), begun))
        else:
            state.done += 1
            if outcome.result is not None:
                forecast.know(kinds[outcome.job.name], outcome.result)
        state.running = tuple(n for n in state.running if n != outcome.job.name)
        state.left = forecast.left()
        if tell is not None:
            tell(state, outcome)
    state.left = None
    return state


def _left(stamps: Path, tasks: Sequence[Task]) -> list[Task]:
    """Jobs that are not done, and all that read what those will leave."""
    left: dict[str, Task] = {}
    for task in tasks:
        if any(name in left for name in task.after) or not is_done(stamps, task):
            left[task.name] = task
    return list(left.values())


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
