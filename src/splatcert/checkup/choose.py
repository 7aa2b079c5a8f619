# SPDX-License-Identifier: Apache-2.0
"""Which back end `auto` picks: the fastest one here that agrees with the reference.

Without a GPU that is the cpu's, and nothing is imported, measured or stored to know it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch

from splatcert.checkup.diagnose import Finding, examine
from splatcert.checkup.machine import Adapter, cuda_adapters, gpu_adapters
from splatcert.checkup.scenes import agreement_scenes
from splatcert.errors import InputError
from splatcert.raster import native
from splatcert.raster.render import Backend
from splatcert.raster.view import RENDERER_VERSION
from splatcert.storage.schema import read_json
from splatcert.storage.whole import write_text_whole

FILE, MAX_BYTES = "backends.json", 1 << 16


@dataclass(frozen=True)
class Choice:
    """The back end that `auto` stands for on this machine."""

    backend: Backend
    why: str


def fastest_backend() -> Choice:
    """The fastest back end that agrees with the reference; measured once per machine.

    An adapter that is software on the processor is never picked: the cpu back end is faster.
    """
    rivals = _rivals()
    if not rivals:
        return Choice("cpu", "no GPU found")
    key = _key(rivals)
    known = _remembered().get(key)
    if isinstance(known, dict) and known.get("backend") in ("cpu", *rivals):
        return Choice(cast("Backend", known["backend"]), str(known.get("why", "")))
    choice = _fastest([examine(name, agreement_scenes()) for name in ("cpu", *rivals)])
    _remember(key, choice)
    return choice


def _fastest(findings: list[Finding]) -> Choice:
    """By certified queries per second, among those that agree."""
    rates: dict[Backend, float] = {
        one.backend: one.speed.queries
        for one in findings
        if one.speed is not None and not one.faults
    }
    wrong = [f"{one.name} {one.verdict}" for one in findings if one.backend not in rates]
    best: Backend = max(rates, key=lambda name: rates[name]) if rates else "cpu"
    told = [f"{name} {rate:.3g} queries/s" for name, rate in rates.items()]
    return Choice(best, ", ".join((*told, *wrong)))


def _rivals() -> dict[Backend, Adapter]:
    """Devices that may be faster than the processor, by back end."""
    found: dict[Backend, Adapter] = {}
    for adapter in gpu_adapters():
        if not adapter.is_software:
            found["gpu"] = adapter
    if find_spec("gsplat") is not None:
        for adapter in cuda_adapters()[:1]:
            found["cuda"] = adapter
    return found


def _key(rivals: dict[Backend, Adapter]) -> str:
    """Everything that a choice depends on: versions, devices, drivers."""
    from splatcert import __version__

    devices = [f"{name}: {adapter.words()}" for name, adapter in rivals.items()]
    versions = (__version__, RENDERER_VERSION, torch.__version__, native.isa())
    return "; ".join((*versions, *devices))


def cache_file() -> Path:
    """Where choices are stored, in the user's cache folder (XDG)."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "splatcert" / FILE


def _remembered() -> dict[str, Any]:
    """Stored choices; none if there is no file, or not one of ours."""
    try:
        known = read_json(cache_file(), "choice of back ends", MAX_BYTES)
    except (OSError, InputError):
        return {}
    return known if isinstance(known, dict) else {}


def _remember(key: str, choice: Choice) -> None:
    """Store a choice; a folder that cannot be written only costs the next measurement."""
    text = json.dumps({**_remembered(), key: asdict(choice)}, indent=1)
    try:
        cache_file().parent.mkdir(parents=True, exist_ok=True)
        write_text_whole(cache_file(), text + "\n")
    except OSError:
        return
