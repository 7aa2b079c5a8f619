# SPDX-License-Identifier: Apache-2.0
"""Jobs that depend on each other, run in processes or on a Ray cluster.

A job is a top-level function and picklable arguments; it stores its result on disk and
returns something small. The result does not depend on the machine. If a job fails, the jobs
that wait for it are not run; all others are.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any, Protocol

from splatcert.errors import InputError


class ClusterError(InputError):
    """A cluster that cannot be used."""


class JobError(RuntimeError):
    """A job whose process ended without a result."""


class NotBegun(RuntimeError):  # noqa: N818 - nothing went wrong in the job itself
    """A job not run because one it waited for failed."""


@dataclass(frozen=True)
class Job:
    """A function call to make once other jobs are done."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    after: tuple[str, ...] = ()
    """Names of the jobs it waits for."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended: its result, or the error it raised."""

    job: Job
    result: Any = None
    error: BaseException | None = None


Watch = Callable[[Sequence[str]], None]
"""Called with the names of the running jobs whenever they change."""


def run_jobs(
    jobs: Sequence[Job],
    *,
    workers: int = 1,
    ray_address: str | None = None,
    watch: Watch | None = None,
) -> Iterator[Outcome]:
    """Outcomes in order of completion. One worker runs in this process, several in their own.

    A kernel already uses every core, so several workers help only where a job leaves cores
    idle; each worker then gets its share of the threads.
    """
    _check_names(jobs)
    place = _place(workers, ray_address, len(jobs))
    waiting = {job.name: job for job in jobs}
    done: set[str] = set()
    failed: set[str] = set()
    try:
        while waiting or place.running:
            for job in [job for job in waiting.values() if failed & set(job.after)]:
                cause = next(name for name in job.after if name in failed)
                failed.add(waiting.pop(job.name).name)
                yield Outcome(job, error=NotBegun(f"not started because {cause} failed"))
            for job in [job for job in waiting.values() if done >= set(job.after)]:
                if place.has_room:
                    place.start(waiting.pop(job.name))
            if not place.running:
                continue
            if watch is not None:
                watch(place.running)
            outcome = place.next()
            (failed if outcome.error else done).add(outcome.job.name)
            yield outcome
    finally:
        place.close()


def _check_names(jobs: Sequence[Job]) -> None:
    """Check that every job waits only for earlier jobs, so that none can wait for itself."""
    known: set[str] = set()
    for job in jobs:
        if missing := set(job.after) - known:
            raise ValueError(f"job {job.name!r} waits for {sorted(missing)}, not listed before it")
        if job.name in known:
            raise ValueError(f"two jobs are named {job.name!r}")
        known.add(job.name)


class _Place(Protocol):
    """Where jobs run."""

    @property
    def running(self) -> Sequence[str]: ...
    @property
    def has_room(self) -> bool: ...
    def start(self, job: Job) -> None: ...
    def next(self) -> Outcome: ...
    def close(self) -> None: ...


def _place(workers: int, ray_address: str | None, jobs: int) -> _Place:
    if ray_address is not None:
        return _Cluster(ray_address)
    return _Processes(workers) if workers > 1 and jobs > 1 else _Here()


class _Here:
    """This process, one job at a time."""

    def __init__(self) -> None:
        self._job: Job | None = None

    @property
    def running(self) -> Sequence[str]:
        return () if self._job is None else (self._job.name,)

    @property
    def has_room(self) -> bool:
        return self._job is None

    def start(self, job: Job) -> None:
        self._job = job

    def next(self) -> Outcome:
        job, self._job = self._job, None
        assert job is not None
        try:
            return Outcome(job, result=job.function(*job.arguments))
        except Exception as error:
            return Outcome(job, error=error)

    def close(self) -> None:
        pass


class _Processes:
    """One process per job, so that a crash affects only its own job."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._threads = max(1, (os.cpu_count() or 1) // workers)
        # Spawned, not forked: a fork would copy locks that other threads hold.
        self._context = multiprocessing.get_context("spawn")
        self._children: dict[connection.Connection, tuple[Job, Any]] = {}

    @property
    def running(self) -> Sequence[str]:
        return [job.name for job, _ in self._children.values()]

    @property
    def has_room(self) -> bool:
        return len(self._children) < self._workers

    def start(self, job: Job) -> None:
        ours, theirs = self._context.Pipe(duplex=False)
        child = self._context.Process(
            target=_in_child, args=(theirs, job, self._threads), daemon=True
        )
        child.start()
        theirs.close()
        self._children[ours] = (job, child)

    def next(self) -> Outcome:
        ready = connection.wait(list(self._children))[0]
        assert isinstance(ready, connection.Connection)
        job, child = self._children.pop(ready)
        try:
            result, error = ready.recv()
        except EOFError:  # it ended without sending a result
            child.join()
            result, error = None, JobError(f"its process ended with code {child.exitcode}")
        ready.close()
        child.join()
        return Outcome(job, result=result, error=error)

    def close(self) -> None:
        for _, child in self._children.values():
            child.terminate()


def _on_node(job: Job) -> Any:
    from splatcert.raster import native

    native.set_threads(1)
    return job.function(*job.arguments)


def _in_child(pipe: connection.Connection, job: Job, threads: int) -> None:
    from splatcert.raster import native

    threading.Thread(target=_end_with_parent, daemon=True).start()
    native.set_threads(threads)
    try:
        told = job.function(*job.arguments), None
    except Exception as error:
        told = None, error
    try:
        pipe.send(told)
    except Exception:  # an error may hold something that cannot be pickled
        pipe.send((None, JobError(str(told[1] or "its result cannot be sent"))))


def _end_with_parent() -> None:
    """Stop a job whose parent was killed, because the next run will write the same files."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


class _Cluster:
    """Ray tasks of one processor each, as many at a time as the cluster has processors."""

    def __init__(self, address: str) -> None:
        self._ray: Any = _connect(address)
        self._tasks: dict[Any, Job] = {}
        # A node may fail during a job. The job is then retried from its last checkpoint.
        options = {"num_cpus": 1, "max_retries": -1, "retry_exceptions": False}
        self._perform = self._ray.remote(**options)(_on_node)

    @property
    def running(self) -> Sequence[str]:
        return [job.name for job in self._tasks.values()]

    @property
    def has_room(self) -> bool:
        # Nodes may join or leave; jobs not yet sent keep their order.
        return len(self._tasks) < max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def start(self, job: Job) -> None:
        self._tasks[self._perform.remote(job)] = job

    def next(self) -> Outcome:
        (ready,), _ = self._ray.wait(list(self._tasks), num_returns=1)
        job = self._tasks.pop(ready)
        try:
            return Outcome(job, result=self._ray.get(ready))
        except self._ray.exceptions.RayTaskError as error:
            return Outcome(job, error=error.cause)
        except Exception as error:
            return Outcome(job, error=error)

    def close(self) -> None:
        for task in self._tasks:
            self._ray.cancel(task, force=True)


def _connect(address: str) -> Any:
    try:
        import ray  # type: ignore[import-not-found]
    except ImportError as error:
        raise ClusterError("--ray requires ray: pip install 'splatcert[ray]'.") from error
    if not ray.is_initialized():
        try:
            _knock(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
        except (OSError, ValueError, RuntimeError) as error:
            raise ClusterError(
                f"no Ray cluster answers at {address!r}: {error}.\n"
                "  Check the address and the port, or omit --ray to run here."
            ) from error
    return ray


def _knock(address: str) -> None:
    """Fail at once if nothing listens at host:port; Ray itself would retry for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=5).close()
