# SPDX-License-Identifier: Apache-2.0
"""The WebGPU device: how it is found, what runs on it, and what moves to and from it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.raster.render import BackendError

WANTED = ("max-storage-buffer-binding-size", "max-buffer-size")
"""Limits taken as high as the adapter offers them; all others are those of every WebGPU device."""


@dataclass
class Traffic:
    """What has moved between host and device since the counters were last set to zero."""

    uploaded: int = 0
    """Bytes."""
    downloaded: int = 0
    """Bytes."""
    dispatches: int = 0


def _wgpu() -> Any:
    try:
        import wgpu
    except ImportError as error:
        raise BackendError(
            "the back end 'gpu' requires wgpu, which is not installed.\n"
            "  pip install 'splatcert[gpu]', or use the back end 'cpu'."
        ) from error
    return wgpu


@contextmanager
def device_errors(doing: str) -> Iterator[None]:
    """Turn what wgpu raises into a message that says what to do."""
    wgpu = _wgpu()
    try:
        yield
    except wgpu.GPUOutOfMemoryError as error:
        raise BackendError(
            f"the GPU ran out of memory while {doing}.\n"
            "  Close other programs that use it, render fewer pixels, or use the back end 'cpu'."
        ) from error
    except wgpu.GPUError as error:
        lost = "lost" in str(error).lower()
        said = "the GPU was lost" if lost else "the GPU driver reported an error"
        raise BackendError(
            f"{said} while {doing}: {_last_line(str(error))}\n"
            "  Run the same command again, or use the back end 'cpu'. No file was changed."
        ) from error


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no reason")


@cache
def _adapter() -> Any:
    wgpu = _wgpu()
    if "XDG_RUNTIME_DIR" not in os.environ:
        # Without a desktop, Mesa's layer that asks it for a device only prints errors.
        os.environ.setdefault("NODEVICE_SELECT", "1")
    try:
        return wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except Exception as error:
        raise BackendError(
            "the back end 'gpu' requires a GPU with a Vulkan, Metal or DirectX 12 driver, "
            "and wgpu finds none.\n"
            "  Install the driver of your GPU, or use the back end 'cpu'. "
            "To try it without a GPU on Debian: apt install mesa-vulkan-drivers"
        ) from error


def adapter_info() -> dict[str, Any]:
    """What WebGPU says of the device: its name, kind (`adapter_type`), driver and interface."""
    return dict(_adapter().info)


def adapter_name() -> str:
    """Name and interface of the device that the back end `gpu` runs on."""
    info = adapter_info()
    return f"{info['device']} ({info['backend_type']})"


@cache
def open_device() -> Device:
    """The one device of this process, or an error that says what is missing."""
    adapter = _adapter()
    limits = {name: adapter.limits[name] for name in WANTED}
    with device_errors("opening it"):
        return Device(adapter.request_device_sync(required_limits=limits))


class Device:
    """An opened device with its compiled kernels; every transfer and dispatch is counted."""

    def __init__(self, opened: Any) -> None:
        self._wgpu, self._opened = _wgpu(), opened
        self._pipelines: dict[tuple[str, str], Any] = {}
        self.traffic = Traffic()
        self.largest_binding: int = opened.limits["max-storage-buffer-binding-size"]
        self.groups_per_dimension: int = opened.limits["max-compute-workgroups-per-dimension"]

    def empty(self, nbytes: int) -> Any:
        """A buffer of zeros."""
        usage = self._wgpu.BufferUsage
        flags = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        with device_errors(f"allocating {nbytes:,} bytes"):
            return self._opened.create_buffer(size=max(16, -(-nbytes // 4) * 4), usage=flags)

    def upload(self, array: NDArray[Any]) -> Any:
        """A buffer with the contents of an array of 4-byte numbers."""
        buffer = self.empty(array.nbytes)
        if array.nbytes:
            with device_errors(f"uploading {array.nbytes:,} bytes"):
                self._opened.queue.write_buffer(buffer, 0, np.ascontiguousarray(array))
        self.traffic.uploaded += array.nbytes
        return buffer

    def download(self, buffer: Any, shape: Sequence[int], dtype: type = np.float32) -> NDArray[Any]:
        """The first entries of a buffer as an array."""
        nbytes = 4 * prod(shape)
        if not nbytes:
            return np.zeros(shape, dtype)
        with device_errors(f"downloading {nbytes:,} bytes"):
            data = self._opened.queue.read_buffer(buffer, 0, nbytes)
        self.traffic.downloaded += nbytes
        return np.frombuffer(data, dtype).reshape(shape).copy()

    def run(self, shader: str, entry: str, groups: int, *buffers: Any) -> None:
        """Run a kernel with one workgroup per `groups`, its buffers bound in order."""
        if not groups:
            return
        pipeline = self._pipeline(shader, entry)
        rows = -(-groups // self.groups_per_dimension)
        with device_errors(f"running {entry}"):
            binding = self._opened.create_bind_group(
                layout=pipeline.get_bind_group_layout(0),
                entries=[
                    {"binding": k, "resource": {"buffer": buffer}}
                    for k, buffer in enumerate(buffers)
                ],
            )
            encoder = self._opened.create_command_encoder()
            work = encoder.begin_compute_pass()
            work.set_pipeline(pipeline)
            work.set_bind_group(0, binding)
            work.dispatch_workgroups(-(-groups // rows), rows)
            work.end()
            self._opened.queue.submit([encoder.finish()])
        self.traffic.dispatches += 1

    def _pipeline(self, shader: str, entry: str) -> Any:
        key = (shader, entry)
        if key not in self._pipelines:
            source = resources.files("splatcert.raster.gpu") / "shaders" / f"{shader}.wgsl"
            with device_errors(f"compiling {shader}"):
                module = self._opened.create_shader_module(code=source.read_text("utf-8"))
                self._pipelines[key] = self._opened.create_compute_pipeline(
                    layout="auto", compute={"module": module, "entry_point": entry}
                )
        return self._pipelines[key]
