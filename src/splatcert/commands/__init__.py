# SPDX-License-Identifier: Apache-2.0
"""One module per command: a dataclass of options whose `run` does the work."""

from __future__ import annotations

from typing import Protocol


class Command(Protocol):
    """Parsed options that know what to do."""

    def run(self) -> None:
        """Do it; raise `InputError` when the input is at fault."""
        ...


def what_is_kept(command: Command) -> str:
    """What an interrupted command leaves to go on from: its `interrupted`, if it has one."""
    return getattr(command, "interrupted", "Nothing half-written was left behind: run it again.")
