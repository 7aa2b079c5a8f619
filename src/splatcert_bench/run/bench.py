# SPDX-License-Identifier: Apache-2.0
"""Run a bench: finished jobs are skipped, failures are reported, and the rest continues."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from splatcert.storage.schema import to_plain
from splatcert.storage.whole import output_folder, owned_folder, write_text_whole
from splatcert.training.jobs import Job, NotBegun, Outcome, run_jobs
from splatcert_bench.baselines.named import maker_of
from splatcert_bench.run.fingerprint import Task, is_done, perform, read_stamp
from splatcert_bench.run.graph import tasks_of
from splatcert_bench.run.layout import Bench, refuse_missing


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
        if self.left is not None:
            parts.append(f"about {duration(self.left)} left")
        return "; ".join(parts)


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
    bench: Bench, *, workers: int = 1, ray_address: str | None = None, tell: Tell | None = None
) -> State:
    """Run the remaining jobs; the returned state names what failed."""
    refuse_missing(bench)
    for method in bench.config.study.methods:
        maker_of(method, bench.file.parent)  # a misspelt name is reported now, not after training
    with owned_folder(bench.out, "running a bench"):
        settings = json.dumps(to_plain(bench.config), indent=1)
        write_text_whole(bench.out / "bench.json", settings + "\n")
        return _run(bench, tasks_of(bench), workers, ray_address, tell)


def _run(
    bench: Bench, tasks: list[Task], workers: int, ray_address: str | None, tell: Tell | None
) -> State:
    stamps = bench.out / "jobs"
    output_folder(stamps)
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
    """Jobs that are not done, and all jobs that depend on them."""
    left: dict[str, Task] = {}
    for task in tasks:
        if any(name in left for name in task.after) or not is_done(stamps, task):
            left[task.name] = task
    return list(left.values())


def duration(seconds: float) -> str:
    """A duration in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
