# SPDX-License-Identifier: Apache-2.0
"""The WebGPU device: what runs on it, and what moves to and from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.raster.gpu.adapter import OLDEST, chosen_adapter, require_wgpu
from splatcert.raster.gpu.shaders import source_of
from splatcert.raster.render import BackendError

WANTED = ("max-storage-buffer-binding-size", "max-buffer-size")
"""Limits taken as high as the adapter offers them; all others are those of every WebGPU device."""
LANES = 256
"""Threads per workgroup, in every kernel."""


@dataclass
class Traffic:
    """What has moved between host and device, and what has run there."""

    uploaded: int = 0
    """Bytes."""
    downloaded: int = 0
    """Bytes."""
    dispatches: int = 0


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory on the device, counted in words of four bytes."""

    raw: Any
    words: int


class DeviceMemoryError(BackendError):
    """The device has no memory left."""


@contextmanager
def device_errors(doing: str) -> Iterator[None]:
    """Turn what wgpu raises into a message that says what to do."""
    wgpu = require_wgpu()
    try:
        yield
    except wgpu.GPUOutOfMemoryError as error:
        raise DeviceMemoryError(
            f"the GPU ran out of memory while {doing}.\n"
            "  Close other programs that use it, render fewer pixels, or use the back end 'cpu'."
        ) from error
    except (wgpu.GPUError, RuntimeError) as error:
        open_device.cache_clear()  # a lost device stays lost: the next view opens another
        lost = "lost" in str(error).lower()
        said = "the GPU was lost" if lost else "the GPU driver reported an error"
        raise BackendError(
            f"{said} while {doing}: {_last_line(str(error))}\n"
            "  Run the same command again, or use the back end 'cpu'."
        ) from error


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no reason")


@cache
def open_device() -> Device:
    """The one device of this process, or an error that says what is missing."""
    adapter = chosen_adapter()
    try:
        limits = {name: adapter.limits[name] for name in WANTED}
        with device_errors("opening it"):
            return Device(adapter.request_device_sync(required_limits=limits))
    except (AttributeError, KeyError, TypeError) as error:
        raise BackendError(
            f"splatcert does not work with wgpu {require_wgpu().__version__}: {error}.\n"
            f"  It is tested with {OLDEST}: pip install 'wgpu=={OLDEST}.*', "
            "or use the back end 'cpu'."
        ) from error


class Device:
    """An opened device with its compiled kernels; every transfer and dispatch is counted.

    Kernels are queued and start when a result is downloaded. Threads may share a device.
    """

    def __init__(self, opened: Any) -> None:
        self._wgpu, self._opened = require_wgpu(), opened
        self._pipelines: dict[str, Any] = {}
        self._queued: tuple[Any, Any] | None = None
        self._lock = Lock()
        self.traffic = Traffic()
        self.largest_binding: int = min(opened.limits[name] for name in WANTED)
        self.most_groups: int = opened.limits["max-compute-workgroups-per-dimension"]

    def empty(self, words: int) -> Buffer:
        """A buffer of zeros."""
        usage = self._wgpu.BufferUsage
        flags = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        with device_errors(f"allocating {4 * words:,} bytes"):
            return Buffer(self._opened.create_buffer(size=4 * max(4, words), usage=flags), words)

    def upload(self, array: NDArray[Any]) -> Buffer:
        """A buffer with the contents of an array of four-byte numbers."""
        buffer = self.empty(array.size)
        if array.size:
            with device_errors(f"uploading {array.nbytes:,} bytes"):
                self._opened.queue.write_buffer(buffer.raw, 0, np.ascontiguousarray(array))
        self.traffic.uploaded += array.nbytes
        return buffer

    def download(
        self, buffer: Buffer, words: slice | None = None, dtype: type = np.float32
    ) -> NDArray[Any]:
        """Some words of a buffer, or all, after everything queued has run."""
        first, last, _ = (words or slice(None)).indices(buffer.words)
        if last <= first:
            return np.zeros(0, dtype)
        size = 4 * (last - first)
        with device_errors(f"downloading {size:,} bytes"):
            self._submit()
            data = self._opened.queue.read_buffer(buffer.raw, 4 * first, size)
        self.traffic.downloaded += size
        return np.frombuffer(data, dtype).copy()

    def run(self, kernel: str, groups: int, *buffers: Buffer, **constants: int | bool) -> None:
        """Queue a kernel with this many workgroups, its buffers bound in order."""
        if groups <= 0:
            return
        rows = -(-groups // self.most_groups)
        with self._lock, device_errors(f"running {kernel}"):
            pipeline = self._pipeline(kernel, constants)
            binding = self._opened.create_bind_group(
                layout=pipeline.get_bind_group_layout(0),
                entries=[_entry(place, buffer) for place, buffer in enumerate(buffers)],
            )
            if self._queued is None:
                encoder = self._opened.create_command_encoder()
                self._queued = encoder, encoder.begin_compute_pass()
            work = self._queued[1]
            work.set_pipeline(pipeline)
            work.set_bind_group(0, binding)
            work.dispatch_workgroups(-(-groups // rows), rows)
        self.traffic.dispatches += 1

    def run_over(self, kernel: str, items: int, *buffers: Buffer, **constants: int | bool) -> None:
        """Queue a kernel with one thread per item."""
        self.run(kernel, -(-items // LANES), *buffers, **constants)

    def _submit(self) -> None:
        with self._lock:
            if self._queued is not None:
                (encoder, work), self._queued = self._queued, None
                work.end()
                self._opened.queue.submit([encoder.finish()])

    def _pipeline(self, kernel: str, constants: dict[str, int | bool]) -> Any:
        source = source_of(kernel, tuple(constants.items()))
        if source not in self._pipelines:
            module = self._opened.create_shader_module(code=source)
            self._pipelines[source] = self._opened.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": "main"}
            )
        return self._pipelines[source]


def _entry(place: int, buffer: Buffer) -> dict[str, Any]:
    """A binding of exactly the words in use, so that kernels see the length of an array."""
    size = 4 * (buffer.words or 4)
    return {"binding": place, "resource": {"buffer": buffer.raw, "offset": 0, "size": size}}
