# SPDX-License-Identifier: Apache-2.0
"""Waiting for something to happen: for minutes where the machine is busy, never longer than needed.

No test asserts how long something took, because that depends on what else the machine does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which something that has not happened never will."""


def until(happened: Callable[[], object], *, every: float = 0.05) -> None:
    """Return as soon as it has happened."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, f"it has not happened within {PATIENCE:g} s"
        time.sleep(every)
