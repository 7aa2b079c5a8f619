# SPDX-License-Identifier: Apache-2.0
"""What this machine has: instruction sets, threads, memory, torch and GPUs."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch

from splatcert import __version__
from splatcert.raster import native
from splatcert.storage.memory import memory_limit, physical_memory

SOFTWARE = "CPU"
"""WebGPU's kind of adapter that is a program on the processor, such as Mesa's lavapipe."""


@dataclass(frozen=True)
class Adapter:
    """One device that could render."""

    name: str
    kind: str
    """DiscreteGPU, IntegratedGPU, CPU (software), or CUDA."""
    driver: str

    @property
    def is_software(self) -> bool:
        """Whether the processor does its work."""
        return self.kind == SOFTWARE

    def words(self) -> str:
        """The adapter in one line."""
        kind = "software, on the processor" if self.is_software else self.kind
        return f"{self.name} ({kind}; {self.driver})"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The parts of this machine that decide what runs, and how fast."""

    splatcert: str
    python: str
    system: str
    instruction_set: str
    """In use; the best of `instruction_sets`, unless another was chosen."""
    instruction_sets: tuple[str, ...]
    cores: int
    threads: int
    """Threads of the cpu back end."""
    memory: int
    """Bytes of the machine; 0 if unknown."""
    memory_limit: int
    """Most bytes that one picture may take."""
    torch: str
    adapters: tuple[Adapter, ...]
    """Those that back ends use."""
    other_adapters: tuple[Adapter, ...] = ()
    """Those that `gpu` could use instead."""


def look_around() -> Machine:
    """Describe this machine; nothing in it names the machine itself."""
    return Machine(
        splatcert=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        instruction_set=native.isa(),
        instruction_sets=tuple(native.available_isas()),
        cores=os.cpu_count() or 1,
        threads=native.threads(),
        memory=physical_memory(),
        memory_limit=memory_limit(),
        torch=torch.__version__,
        adapters=(*gpu_adapters(), *cuda_adapters()),
        other_adapters=other_gpus(),
    )


def gpu_adapters() -> tuple[Adapter, ...]:
    """The device of the back end `gpu`, if wgpu is installed and finds one."""
    if find_spec("wgpu") is None:
        return ()
    from splatcert.raster.gpu.adapter import adapter_info
    from splatcert.raster.render import BackendError

    try:
        info = adapter_info()
    except BackendError:
        return ()
    return (_adapter(info),)


def other_gpus() -> tuple[Adapter, ...]:
    """Devices that the back end `gpu` does not use."""
    if not gpu_adapters():
        return ()
    from splatcert.raster.gpu.adapter import other_adapters

    return tuple(_adapter(info) for info in other_adapters())


def _adapter(info: dict[str, Any]) -> Adapter:
    driver = " ".join(filter(None, (info["backend_type"], info["description"])))
    return Adapter(info["device"], info["adapter_type"], driver)


def cuda_adapters() -> tuple[Adapter, ...]:
    """CUDA devices that torch finds."""
    if not torch.cuda.is_available():
        return ()
    version = f"CUDA {torch.version.cuda}"
    count = torch.cuda.device_count()
    return tuple(Adapter(torch.cuda.get_device_name(k), "CUDA", version) for k in range(count))
