# SPDX-License-Identifier: Apache-2.0
"""How much memory one picture may take: sizes in a file are counted before they are believed."""

from __future__ import annotations

import math
import os

from splatcert.errors import InputError

VARIABLE = "SPLATCERT_MEMORY_GIB"
UNKNOWN = 4 << 30
"""Limit where the system does not say how much memory it has."""
GIB = 1 << 30
BYTES_PER_PIXEL = BYTES_PER_ENTRY = 64
"""What a picture takes at its peak, per pixel, and what its renderer takes per Gaussian in a tile
of 16 x 16 pixels: 16 numbers each."""


class MemoryLimitError(InputError):
    """A picture that would take more memory than it may."""


def memory_limit() -> int:
    """Most bytes that one picture may take: half of the machine's memory, unless set otherwise."""
    asked = os.environ.get(VARIABLE)
    if asked is None:
        return physical_memory() // 2 or UNKNOWN
    try:
        limit = float(asked) * GIB
    except ValueError:
        limit = math.nan
    if not 0 < limit < math.inf:
        raise MemoryLimitError(
            f"{VARIABLE} must be a positive number of GiB, got {asked!r}.\n"
            "  Unset it for half of the machine's memory."
        )
    return int(limit)


def physical_memory() -> int:
    """Bytes of memory of this machine; 0 if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system, or it does not say
        return 0


def require_memory(needed: int, what: str, why: str = "") -> None:
    """Refuse `what` if it needs more bytes than one picture may take."""
    limit = memory_limit()
    if needed > limit:
        raise MemoryLimitError(
            f"{what} would take up to {needed / GIB:.3g} GiB of memory{why}.\n"
            f"  The limit is {limit / GIB:.3g} GiB. Use a smaller --resolution, or set {VARIABLE}."
        )
