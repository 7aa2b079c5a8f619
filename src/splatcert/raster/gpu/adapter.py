# SPDX-License-Identifier: Apache-2.0
"""Which GPU the back end `gpu` runs on, and what is told where there is none."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from splatcert.raster.render import BackendError

OLDEST = "0.32"
"""First version of wgpu whose calls are those made here; `pyproject.toml` asks for it too."""
CHOICE = "SPLATCERT_GPU"
"""Environment variable with a part of the name of the GPU to use."""


def require_wgpu() -> Any:
    """The library wgpu, or an error that says what to install."""
    try:
        import wgpu
    except ImportError as error:
        raise BackendError(
            "the back end 'gpu' requires wgpu, which is not installed.\n"
            "  pip install 'splatcert[gpu]', or use the back end 'cpu'."
        ) from error
    if wgpu.version_info[:2] < tuple(map(int, OLDEST.split("."))):
        raise BackendError(
            f"the back end 'gpu' requires wgpu {OLDEST} or newer; "
            f"{wgpu.__version__} is installed.\n"
            "  pip install --upgrade 'splatcert[gpu]', or use the back end 'cpu'."
        )
    return wgpu


@cache
def chosen_adapter() -> Any:
    """The adapter of the back end `gpu`: the user's choice, else the fastest."""
    wgpu = require_wgpu()
    if wanted := os.environ.get(CHOICE):
        return _named(wanted)
    _without_desktop()
    try:
        return wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except Exception as error:
        raise BackendError(
            "the back end 'gpu' requires a GPU with a Vulkan, Metal or DirectX 12 driver, "
            "and wgpu finds none.\n"
            "  Install the driver of your GPU, or use the back end 'cpu'. "
            "To try it without a GPU on Debian: apt install mesa-vulkan-drivers"
        ) from error


def _named(wanted: str) -> Any:
    """The adapter that the user chose."""
    known = _adapters()
    for adapter in known:
        if wanted.lower() in adapter.summary.lower():
            return adapter
    names = ", ".join(dict.fromkeys(adapter.info["device"] for adapter in known)) or "none"
    raise BackendError(
        f"the environment variable {CHOICE} asks for a GPU named {wanted}, and there is none.\n"
        f"  GPUs of this machine: {names}."
    )


def _adapters() -> list[Any]:
    """Every adapter of this machine, those of a modern interface first."""
    _without_desktop()
    found = require_wgpu().gpu.enumerate_adapters_sync()
    return sorted(found, key=lambda adapter: adapter.info["backend_type"] == "OpenGL")


def _without_desktop() -> None:
    """Without a desktop, Mesa's layer that asks it for a device only prints errors."""
    if "XDG_RUNTIME_DIR" not in os.environ:
        os.environ.setdefault("NODEVICE_SELECT", "1")


def adapter_info() -> dict[str, Any]:
    """What WebGPU says of the device: its name, kind (`adapter_type`), driver and interface."""
    return dict(chosen_adapter().info)


def other_adapters() -> list[dict[str, Any]]:
    """The same of this machine's other devices, each once."""
    used = adapter_info()["device"]
    others = {one.info["device"]: dict(one.info) for one in reversed(_adapters())}
    return [info for name, info in others.items() if name != used]


def adapter_name() -> str:
    """Name and interface of the device that the back end `gpu` runs on."""
    info = adapter_info()
    return f"{info['device']} ({info['backend_type']})"
