# SPDX-License-Identifier: Apache-2.0
"""How long-running functions report progress, whoever listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called now and then with the current stage and how much of it is done."""

    def __call__(self, doing: str, done: int, total: int) -> None:
        """Report that `done` of `total` steps of the stage `doing` are finished."""
        ...


def quiet(doing: str, done: int, total: int) -> None:
    """Report nothing: the default where nobody listens."""
