# SPDX-License-Identifier: Apache-2.0
"""Work that is many: the same function over many inputs, in processes or on a Ray cluster.

A job is a top-level function and picklable arguments; it leaves its result on disk and
returns something small. Which machine runs it changes nothing.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from splatcert.errors import InputError


class ClusterError(InputError):
    """A cluster that cannot be used."""


@dataclass(frozen=True)
class Job:
    """A call to make somewhere."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a job ended: its result, or the error it raised."""

    job: Job
    result: Any = None
    error: BaseException | None = None


def run_jobs(
    jobs: Sequence[Job], *, workers: int = 1, ray_address: str | None = None
) -> Iterator[Outcome]:
    """Outcomes as they come. One worker runs in this process, several in their own.

    A kernel already uses every core, so more than one worker pays only where a job
    leaves cores idle; each worker then gets its share of the threads.
    """
    if ray_address is not None:
        yield from _on_ray(jobs, ray_address)
    elif workers <= 1 or len(jobs) <= 1:
        for job in jobs:
            yield _perform(job)
    else:
        yield from _in_processes(jobs, workers)


def _perform(job: Job) -> Outcome:
    try:
        return Outcome(job, result=job.function(*job.arguments))
    except Exception as error:
        return Outcome(job, error=error)


def _limit_threads(count: int) -> None:
    from splatcert.raster import native

    native.set_threads(count)


def _in_processes(jobs: Sequence[Job], workers: int) -> Iterator[Outcome]:
    share = max(1, (os.cpu_count() or 1) // workers)
    # Spawned, not forked: a fork would copy locks that other threads hold.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _limit_threads, (share,)) as pool:
        futures = {pool.submit(job.function, *job.arguments): job for job in jobs}
        for future in as_completed(futures):
            error = future.exception()
            result = None if error else future.result()
            yield Outcome(futures[future], result=result, error=error)


def _on_ray(jobs: Sequence[Job], address: str) -> Iterator[Outcome]:
    try:
        import ray  # type: ignore[import-not-found]
    except ImportError as error:
        raise ClusterError("--ray needs the ray package: pip install 'splatcert[ray]'.") from error
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False)
        except (ConnectionError, ValueError) as error:
            raise ClusterError(f"no Ray cluster answers at {address!r}: {error}.") from error
    # A node may die under a job: the job is on disk up to its last checkpoint and is redone.
    remote = ray.remote(max_retries=3, retry_exceptions=False)
    waiting = {remote(job.function).remote(*job.arguments): job for job in jobs}
    while waiting:
        (ready,), _ = ray.wait(list(waiting), num_returns=1)
        job = waiting.pop(ready)
        try:
            yield Outcome(job, result=ray.get(ready))
        except Exception as error:
            yield Outcome(job, error=error)
