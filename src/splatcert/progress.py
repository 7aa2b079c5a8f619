# SPDX-License-Identifier: Apache-2.0
"""How long work tells whoever listens how far it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
interrupts: list[int] = []
"""Signals of Ctrl-C that the command line received; after the first, the process is to end.

A list, because a handler may itself be interrupted, and appending takes no lock.
"""


class Progress(Protocol):
    """Called with what is being done, how much of it is done, and of how much."""

    def __call__(self, doing: str, done: int, total: int, note: str = "", /) -> None:
        """Take note; `note` is a word on how it goes."""
        ...


def quiet(doing: str, done: int, total: int, note: str = "", /) -> None:
    """Nobody listens."""


def each(items: Sequence[Item], doing: str, on: Progress) -> Iterator[Item]:
    """The items one by one, telling how many are done."""
    for done, item in enumerate(items):
        end_if_interrupted()
        on(doing, done, len(items))
        yield item


def end_if_interrupted() -> None:
    """Raise the `KeyboardInterrupt` of a Ctrl-C that did not get through.

    Python raises it once, wherever the main thread is. nanobind discards any exception of
    `Tensor.__dlpack__`, through which kernels take their arrays, and retries another way.
    """
    if interrupts:
        raise KeyboardInterrupt


def part_of(on: Progress, part: str) -> Progress:
    """The same callback for one part of the work, whose steps are counted by themselves."""

    def tell(doing: str, done: int, total: int, note: str = "", /) -> None:
        on(f"{part}: {doing}", done, total, note)

    return tell
