# SPDX-License-Identifier: Apache-2.0
"""What commands print: labelled lines that wrap, tables, and progress."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    redirect_stdout,
    suppress,
)
from io import StringIO
from typing import Any, TypeVar

from splatcert.progress import Progress, each, end_if_interrupted

Item = TypeVar("Item")
LABEL_WIDTH = 14
SECONDS_BETWEEN_LINES = 5.0
PLAIN = str.maketrans({"≥": ">=", "≤": "<=", "°": " deg", "±": "+/-", "·": "-", "̃": "~"})
"""For terminals whose encoding lacks these characters."""


def visible(text: str) -> str:
    """The same text with control characters escaped: names in files may hold any.

    A terminal would obey them, and clear itself or change what was printed before.
    """
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def columns() -> int:
    """Width of the terminal; 80 where there is none."""
    return max(shutil.get_terminal_size().columns, 40)


def write(text: str) -> None:
    """Print text in what the terminal's encoding has."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(PLAIN).encode(encoding, "replace").decode(encoding)
    print(text)


def say(label: str, text: str) -> None:
    """Print one labelled fact, wrapped to the terminal, paths kept whole."""
    write(
        textwrap.fill(
            visible(text),
            width=columns(),
            initial_indent=f"{label:<{LABEL_WIDTH}}",
            subsequent_indent=" " * LABEL_WIDTH,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def say_all(facts: Mapping[str, str]) -> None:
    """Print labelled facts, one after the other."""
    for label, text in facts.items():
        say(label, text)


def show_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Collection[str] = ()
) -> None:
    """Print an aligned table; columns named in `numbers` are flush right, long cells wrap."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        side = "right" if heading in numbers else "left"
        table.add_column(Text(heading), justify=side, vertical="top", overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    console = Console(file=sys.stdout, width=columns(), highlight=False)
    with console.capture() as drawn:
        console.print(table)
    for line in drawn.get().splitlines():
        write(line.rstrip())


def silent(wanted: bool = True) -> AbstractContextManager[object]:
    """Print nothing meanwhile if `wanted`; progress still shows, because it goes to stderr."""
    return redirect_stdout(StringIO()) if wanted else nullcontext()


def progress(items: Sequence[Item], doing: str) -> Iterator[Item]:
    """The items, with a bar on a terminal and an occasional line elsewhere."""
    with stages() as on:
        yield from each(items, doing, on)


@contextmanager
def stages() -> Iterator[Progress]:
    """A `Progress` that shows a bar per stage on a terminal, and an occasional line elsewhere.

    It also ends the work after Ctrl-C.
    """
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich import progress as rich_progress
    from rich.console import Console

    shown = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.fields[note]}"),
    )
    with rich_progress.Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def on(doing: str, done: int, total: int, note: str = "") -> None:
            end_if_interrupted()
            if doing not in tasks:
                tasks[doing] = bar.add_task(doing, total=total, note=note)
            bar.update(tasks[doing], completed=done, total=total, note=note)

        yield on


def _lines() -> Progress:
    printed = [time.monotonic()]
    begun: dict[str, tuple[float, int]] = {}

    def on(doing: str, done: int, total: int, note: str = "") -> None:
        end_if_interrupted()
        now = time.monotonic()
        started, first = begun.setdefault(doing, (now, done))
        if now - printed[0] > SECONDS_BETWEEN_LINES:
            left = (now - started) / max(done - first, 1) * (total - done)
            words = "  ".join(filter(None, (f"{doing}: {done} of {total}", note)))
            with suppress(OSError):  # a closed pipe is no reason to stop working
                print(f"{words}  {left:.0f} s left", file=sys.stderr, flush=True)
            printed[0] = now

    return on
