# SPDX-License-Identifier: Apache-2.0
"""Many views at once, each on one core.

Kernels share all cores within a view, but the NumPy and torch code around them uses one. Over
many views it is faster to give each view a core of its own. Results are the same to the bit,
because kernels give the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

from splatcert import _native
from splatcert.camera import Camera
from splatcert.progress import Progress, each, quiet
from splatcert.storage.memory import BYTES_PER_PIXEL, memory_limit

Item = TypeVar("Item")
Result = TypeVar("Result")


BYTES_AT_WORK = 4 * BYTES_PER_PIXEL
"""Memory per pixel while a view is rendered and scored."""


def abreast(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    cameras: Sequence[Camera],
    doing: str = "",
    on: Progress = quiet,
) -> list[Result]:
    """What `work` makes of each item, in their order; items must not depend on each other.

    Of the largest of the `cameras`, as many are at work as memory allows.
    """
    largest = max((camera.width * camera.height for camera in cameras), default=1)
    room = memory_limit() // (BYTES_AT_WORK * largest)
    workers = min(_native.threads(), len(items), room)
    if workers <= 1:
        return [work(item) for item in each(items, doing, on)]
    pool = ThreadPoolExecutor(workers, initializer=_native.keep_to_this_thread, initargs=(True,))
    with one_torch_thread(), pool:
        try:
            waiting = [pool.submit(work, item) for item in items]
            return [result.result() for result in each(waiting, doing, on)]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)  # an error or Ctrl-C ends it early


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Run torch on one thread: sums keep their order and the kernels keep the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
