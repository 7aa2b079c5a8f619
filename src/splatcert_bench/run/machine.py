# SPDX-License-Identifier: Apache-2.0
"""The machine that jobs run on, how busy it is, and the memory of this process."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path


def machine() -> dict[str, object]:
    """The machine that times were measured on."""
    from splatcert.raster import native

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": _memory(),
        "instructions": native.isa(),
        "system": platform.system(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on every system
        return "unknown"
    return f"{pages * size / 2**30:.0f} GiB"


def load() -> float | None:
    """Processes that ran or waited, mean over the last minute; None if unknown."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


def peak_mib() -> int | None:
    """Largest memory of this process so far, in MiB; None if unknown."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit // 2**20
