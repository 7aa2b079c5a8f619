# SPDX-License-Identifier: Apache-2.0
"""Training as a person follows it: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from splatcert.training.optimise import Progress

SECONDS_BETWEEN_LINES = 10.0
SMOOTHING = 0.02


class _Smooth:
    """Loss and PSNR averaged over recent photographs; single ones jump about."""

    def __init__(self) -> None:
        self.loss = self.psnr = None

    def add(self, progress: Progress) -> str:
        if self.loss is None or self.psnr is None:
            self.loss, self.psnr = progress.loss, progress.psnr
        self.loss += SMOOTHING * (progress.loss - self.loss)
        self.psnr += SMOOTHING * (progress.psnr - self.psnr)
        return f"loss {self.loss:.4f}  {self.psnr:.2f} dB  {progress.gaussians:,} Gaussians"


@contextmanager
def progress_bar(
    iterations: int, name: str, talk: bool
) -> Iterator[Callable[[Progress], None] | None]:
    """A function to call after each step; None where nobody listens."""
    if not talk:
        yield None
    elif sys.stderr.isatty():
        yield from _bar(iterations, name)
    else:
        yield _lines(iterations, name)


def _bar(iterations: int, name: str) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    smooth = _Smooth()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=iterations, words="")

        def report(progress: Progress) -> None:
            bar.update(task, completed=progress.step, words=smooth.add(progress))

        yield report


def _lines(iterations: int, name: str) -> Callable[[Progress], None]:
    smooth, started = _Smooth(), time.monotonic()
    first: list[int] = []
    spoken = [started]

    def report(progress: Progress) -> None:
        words, now = smooth.add(progress), time.monotonic()
        first[:] = first or [progress.step - 1]
        if now - spoken[0] < SECONDS_BETWEEN_LINES and progress.step < iterations:
            return
        spoken[0] = now
        rate = (now - started) / (progress.step - first[0])
        left = rate * (iterations - progress.step)
        print(
            f"{name}: {progress.step}/{iterations}  {words}  {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )

    return report
