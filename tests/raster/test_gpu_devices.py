# SPDX-License-Identifier: Apache-2.0
"""Devices that tests do not have: which one is used, what is told, what every one must offer."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from splatcert.raster.gpu import adapter as adapters
from splatcert.raster.gpu import device as devices
from splatcert.raster.gpu import shaders
from splatcert.raster.gpu import view as views
from splatcert.raster.gpu.device import LANES
from splatcert.raster.gpu.shaders import source_of
from splatcert.raster.render import BackendError, open_view, unavailable
from splatcert_bench.synthetic.scenes import made_cameras, random_splats

SHADERS = sorted(Path(shaders.__file__).parent.glob("*.wgsl"))


@pytest.fixture
def not_yet_opened(monkeypatch) -> None:
    """A process that has not looked for a device."""
    monkeypatch.setattr(adapters, "chosen_adapter", cache(adapters.chosen_adapter.__wrapped__))
    monkeypatch.setattr(devices, "chosen_adapter", adapters.chosen_adapter)
    monkeypatch.setattr(devices, "open_device", cache(devices.open_device.__wrapped__))
    monkeypatch.setattr(views, "open_device", devices.open_device)


def test_the_extra_is_named_where_wgpu_is_missing(not_yet_opened, monkeypatch):
    monkeypatch.setitem(sys.modules, "wgpu", None)
    camera = made_cameras(1, 8, 8)[0]
    with pytest.raises(BackendError, match=r"pip install 'splatcert\[gpu\]'"):
        open_view(random_splats(3, camera=camera), camera, "gpu")
    assert "not installed" in str(unavailable("gpu"))


def test_a_machine_without_a_driver_is_told_so(not_yet_opened, monkeypatch):
    wgpu = pytest.importorskip("wgpu", reason="wgpu is not installed: pip install splatcert[gpu]")

    def none(**_: object) -> None:
        raise RuntimeError("no adapter")

    monkeypatch.setattr(wgpu.gpu, "request_adapter_sync", none)
    assert "wgpu finds none" in str(unavailable("gpu"))


def test_an_older_wgpu_is_told_which_version_to_install(not_yet_opened, monkeypatch):
    wgpu = pytest.importorskip("wgpu", reason="wgpu is not installed: pip install splatcert[gpu]")
    monkeypatch.setattr(wgpu, "version_info", (0, 25, 1))
    monkeypatch.setattr(wgpu, "__version__", "0.25.1")
    reason = str(unavailable("gpu"))
    assert f"requires wgpu {adapters.OLDEST} or newer; 0.25.1 is installed" in reason
    assert "--upgrade 'splatcert[gpu]'" in reason


def test_the_oldest_wgpu_is_the_one_that_the_extra_asks_for():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert text.count(f'"wgpu>={adapters.OLDEST}"') == 2


class FakeAdapter:
    """An adapter as wgpu describes it."""

    def __init__(self, device: str, kind: str, interface: str = "Vulkan") -> None:
        self.info = {
            "device": device,
            "adapter_type": kind,
            "backend_type": interface,
            "description": "a driver",
        }
        self.summary, self.limits = f"{device} ({kind}) via {interface}", {}

    def request_device_sync(self, required_limits: dict) -> None:
        raise RuntimeError(f"Limits not available: {required_limits}")


@pytest.fixture
def two_adapters(not_yet_opened, monkeypatch) -> list[FakeAdapter]:
    """A laptop: a card, which wgpu prefers, a chip beside it, and the card by an old interface."""
    wgpu = pytest.importorskip("wgpu", reason="wgpu is not installed: pip install splatcert[gpu]")
    card, chip = FakeAdapter("A Card 9", "DiscreteGPU"), FakeAdapter("A Chip 3", "IntegratedGPU")
    old = FakeAdapter("A Card 9", "DiscreteGPU", "OpenGL")
    monkeypatch.setattr(wgpu.gpu, "request_adapter_sync", lambda **_: card)
    monkeypatch.setattr(wgpu.gpu, "enumerate_adapters_sync", lambda: [old, card, chip])
    monkeypatch.delenv(adapters.CHOICE, raising=False)
    return [card, chip]


def test_the_faster_of_two_adapters_is_used_and_the_other_told(two_adapters):
    assert adapters.adapter_name() == "A Card 9 (Vulkan)"
    assert [one["device"] for one in adapters.other_adapters()] == ["A Chip 3"]


@pytest.mark.parametrize(("wanted", "place"), [("chip", 1), ("A Card", 0), ("integrated", 1)])
def test_an_adapter_is_chosen_by_a_part_of_its_name(two_adapters, monkeypatch, wanted, place):
    monkeypatch.setenv(adapters.CHOICE, wanted)
    assert adapters.chosen_adapter() is two_adapters[place]


def test_a_name_that_no_adapter_has_is_refused_with_those_there_are(two_adapters, monkeypatch):
    monkeypatch.setenv(adapters.CHOICE, "titan")
    reason = str(unavailable("gpu"))
    assert "asks for a GPU named titan" in reason and "A Card 9, A Chip 3." in reason


def test_a_wgpu_that_calls_its_limits_otherwise_is_reported(two_adapters):
    reason = str(unavailable("gpu"))
    assert (
        "splatcert does not work with wgpu" in reason
        and "max-storage-buffer-binding-size" in reason
    )
    assert f"pip install 'wgpu=={adapters.OLDEST}.*'" in reason


def test_a_device_below_the_limits_of_webgpu_is_reported(two_adapters):
    two_adapters[0].limits = dict.fromkeys(devices.WANTED, 1 << 20)
    assert "the GPU driver reported an error while opening it" in str(unavailable("gpu"))


@pytest.mark.parametrize("kernel", [path.stem for path in SHADERS], ids=str)
def test_no_kernel_counts_on_subnormal_numbers(kernel):
    """A GPU may take numbers below 2^-126 for zero, so none may keep a division from failing."""
    text = re.sub(r"//.*", "", source_of(kernel))
    numbers = re.findall(r"(?<![\w.])\d+\.?\d*(?:e[-+]?\d+)?(?![\w.])", text)
    assert all(float(n) == 0 or float(n) >= np.finfo(np.float32).tiny for n in numbers)


@pytest.mark.parametrize("kernel", [path.stem for path in SHADERS], ids=str)
def test_kernels_stay_within_the_limits_of_every_webgpu_device(kernel):
    """Eight storage buffers, 256 threads, and 16 KiB of workgroup memory."""
    text = source_of(kernel)
    bindings = [int(n) for n in re.findall(r"@binding\((\d+)\)", text)]
    assert sorted(bindings) == list(range(len(bindings))) and len(bindings) <= 8
    assert all(n == str(LANES) for n in re.findall(r"@workgroup_size\((\d+)\)", text))
    words = {"u32": 1, "f32": 1, "vec2<f32>": 2, "vec4<f32>": 4, "atomic<u32>": 1}
    shared = re.findall(r"var<workgroup> \w+: (?:array<(.+), (\d+)>|(\S+));", text)
    used = sum(4 * words[of or alone] * int(count or 1) for of, count, alone in shared)
    assert used <= 16_384 and len(shared) == text.count("var<workgroup>")
