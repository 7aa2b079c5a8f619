# SPDX-License-Identifier: Apache-2.0
"""The exception family for faulty input; each message says what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


class InputError(ValueError):
    """A user's file, option or value cannot be used.

    Subclasses live beside the code that raises them. The message says what was
    found (with numbers), where, and what to do about it, in at most five lines.
    Commands turn it into exit code 2 without a traceback.
    """


def listed(names: Iterable[str], limit: int = 3) -> str:
    """The first few names, for a message, and how many more there are.

    Names in files may hold line breaks, which would make a message longer than it is.
    """
    names = [name if name.isprintable() else repr(name)[1:-1] for name in names]
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def be(count: int) -> str:
    """The verb that goes with a number of things: is or are."""
    return "is" if count == 1 else "are"


class OptionError(InputError):
    """An option out of range."""
