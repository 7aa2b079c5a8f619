# SPDX-License-Identifier: Apache-2.0
"""What commands print and write: facts that wrap, progress, files that appear whole."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from io import StringIO
from typing import Any, TypeVar

Item = TypeVar("Item")
LABEL_WIDTH = 12
SECONDS_BETWEEN_LINES = 5.0


def visible(text: str) -> str:
    """The same text with control characters spelt out: names in files may hold any.

    A terminal would obey them, and clear itself or change what was printed before.
    """
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def say(label: str, text: str) -> None:
    """Print one labelled fact, wrapped to the terminal, paths kept whole."""
    margin = " " * (LABEL_WIDTH + 2)
    print(
        textwrap.fill(
            visible(text),
            width=max(shutil.get_terminal_size().columns, 40),
            initial_indent=f"  {label:<{LABEL_WIDTH}}",
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def silent(wanted: bool = True) -> AbstractContextManager[object]:
    """Nothing is printed meanwhile, if so wanted; progress is, because it goes elsewhere."""
    return redirect_stdout(StringIO()) if wanted else nullcontext()


def progress(items: Sequence[Item], doing: str) -> Iterator[Item]:
    """The items, with a bar on a terminal and an occasional line elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import track

        console = Console(stderr=True)
        yield from track(items, description=doing, console=console, transient=True)
        return
    spoken = time.monotonic()
    for done, item in enumerate(items):
        if time.monotonic() - spoken > SECONDS_BETWEEN_LINES:
            print(f"{doing}: {done} of {len(items)}", file=sys.stderr, flush=True)
            spoken = time.monotonic()
        yield item


Report = Callable[[str, int, int], None]
"""Told what is going on, how much of it is done, and of how much."""


@contextmanager
def stages() -> Iterator[Report]:
    """A function to tell progress to: a bar for each stage on a terminal, else a line at times."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def report(doing: str, done: int, total: int) -> None:
            if doing not in tasks:
                tasks[doing] = bar.add_task(doing, total=total)
            bar.update(tasks[doing], completed=done, total=total)

        yield report


def _lines() -> Report:
    spoken = [time.monotonic()]

    def report(doing: str, done: int, total: int) -> None:
        if time.monotonic() - spoken[0] > SECONDS_BETWEEN_LINES:
            print(f"{doing}: {done} of {total}", file=sys.stderr, flush=True)
            spoken[0] = time.monotonic()

    return report
