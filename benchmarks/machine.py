# SPDX-License-Identifier: Apache-2.0
"""Description of the machine that a timing was measured on."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from pathlib import Path

import torch

import splatcert
from splatcert.raster import native


def describe_machine() -> dict[str, object]:
    """Processor, cores, memory and versions; nothing that names the machine itself."""
    model, memory = platform.processor() or platform.machine(), None
    cpuinfo, meminfo = Path("/proc/cpuinfo"), Path("/proc/meminfo")
    if cpuinfo.exists():
        names = [
            l.split(":", 1)[1].strip()
            for l in cpuinfo.read_text().splitlines()
            if l.startswith("model name")
        ]
        model = names[0] if names else model
    if meminfo.exists():
        memory = round(int(meminfo.read_text().split()[1]) / 2**20, 1)
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "instruction_set": native.isa(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "splatcert": splatcert.__version__,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "load_average": [round(x, 2) for x in os.getloadavg()],
    }
