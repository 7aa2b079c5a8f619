# SPDX-License-Identifier: Apache-2.0
"""The one exception family that means: the input is at fault, and here is what to do."""

from __future__ import annotations


class InputError(ValueError):
    """A user's file, option or value cannot be used.

    Subclasses live beside the code that raises them. The message says what was
    found (with numbers), where, and what to do about it, in at most five lines.
    Commands turn it into exit code 2 without a traceback.
    """
