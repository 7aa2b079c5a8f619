# SPDX-License-Identifier: Apache-2.0
"""A small file cannot make a command take more memory than it may."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from splatcert.camera import Camera
from splatcert.cli import main
from splatcert.raster import native
from splatcert.raster.render import open_view, unavailable
from splatcert.splats.files import save_ply
from splatcert.splats.gaussians import Splats
from splatcert.storage import memory
from splatcert.storage.memory import BYTES_PER_ENTRY, BYTES_PER_PIXEL, MemoryLimitError
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

LIMIT = 1 << 30
SLACK = 256 << 20
"""What reading the model and importing modules may take beside a picture."""


def huge_and_faint(count: int) -> Splats:
    """Gaussians that reach every tile of any picture and hide nothing."""
    generator = torch.Generator().manual_seed(0)
    return Splats(
        means=torch.randn(count, 3, generator=generator) + torch.tensor([0.0, 0.0, 5.0]),
        quats=torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(count, 1),
        log_scales=torch.full((count, 3), 5.0),
        logit_opacities=torch.full((count,), -4.0),
        sh=torch.zeros(count, 1, 3),
    )


def camera(width: int, height: int) -> Camera:
    pose, focal = np.eye(4), float(width)
    return Camera(
        world_to_camera=pose,
        fx=focal,
        fy=focal,
        cx=width / 2,
        cy=height / 2,
        width=width,
        height=height,
    )


def render_in_child(model: Path, cameras: Path, out: Path) -> tuple[int, str, int]:
    """Exit code, complaint and growth of a child that can take no more than the limit."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        os.environ[memory.VARIABLE] = str(LIMIT / memory.GIB)
        sys.stdout = sys.stderr = os.fdopen(there, "w")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + LIMIT + SLACK
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        status = main(["render", str(model), "--cameras", str(cameras), "-o", str(out)])
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"grown {grown}", flush=True)
        os._exit(status)
    os.close(there)
    with os.fdopen(here) as file:
        said = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    message, _, grown = said.rpartition("grown ")
    return status, message, 1024 * int(grown)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("count", "size", "words"),
    [
        (20_000, (11_585, 11_585), "a view of 11585 x 11585 pixels would take up to 8 GiB"),
        (20_000, (3_000, 3_000), "20,000 Gaussians are in up to 706,880,000 tiles"),
        (300_000, (640, 480), "300,000 Gaussians are in up to 360,000,000 tiles"),
    ],
)
def test_huge_gaussians_are_refused_within_the_limit(count, size, words, tmp_path):
    save_ply(huge_and_faint(count), tmp_path / "model.ply")
    one = camera(*size)
    entry = {"id": 0, "img_name": "0", "width": size[0], "height": size[1], "fx": one.fx}
    entry |= {"fy": one.fy, "position": [0, 0, 0], "rotation": np.eye(3).tolist()}
    (tmp_path / "cameras.json").write_text(json.dumps([entry]))
    status, said, grown = render_in_child(
        tmp_path / "model.ply", tmp_path / "cameras.json", tmp_path / "out"
    )
    assert status == 2 and words in said, said
    complaint = said[said.find("splatcert: ") :].splitlines()
    assert len(complaint) <= 5 and "SPLATCERT_MEMORY_GIB" in said and "Traceback" not in said
    assert grown < LIMIT + SLACK


def test_what_fits_is_rendered_and_one_entry_more_is_refused(monkeypatch):
    splats, (view,) = huge_and_faint(50), made_cameras(1, 64, 48)
    entries = 50 * 12
    needed = BYTES_PER_PIXEL * 64 * 48 + BYTES_PER_ENTRY * entries
    monkeypatch.setenv(memory.VARIABLE, repr((needed + 0.5) / memory.GIB))
    prepared = native.NativeView(splats, view)._prepared
    assert prepared.entries == entries
    monkeypatch.setenv(memory.VARIABLE, repr((needed - 0.5) / memory.GIB))
    with pytest.raises(MemoryLimitError, match=f"in up to {entries} tiles"):
        native.NativeView(splats, view)


@pytest.mark.parametrize("backend", ["cpu", "reference", "gpu"])
def test_every_back_end_has_the_limit(backend, monkeypatch):
    if reason := unavailable(backend):
        pytest.skip(reason.splitlines()[0])
    splats, (view,) = made_splats(30), made_cameras(1, 64, 48)
    monkeypatch.setenv(memory.VARIABLE, "1")
    open_view(splats, view, backend)
    monkeypatch.setenv(memory.VARIABLE, repr(1e5 / memory.GIB))
    with pytest.raises(MemoryLimitError, match="a view of 64 x 48 pixels would take"):
        open_view(splats, view, backend)


def test_only_entries_count_not_the_boxes_around_them(monkeypatch):
    """Thin diagonal Gaussians have large boxes of tiles, of which they reach few."""
    splats = huge_and_faint(40)
    splats.log_scales[:] = torch.tensor([2.0, -6.0, -6.0])
    half = np.pi / 8
    splats.quats[:] = torch.tensor([np.cos(half), 0.0, 0.0, np.sin(half)])
    view = camera(640, 640)
    entries = native.NativeView(splats, view)._prepared.entries
    needed = BYTES_PER_PIXEL * 640 * 640 + BYTES_PER_ENTRY * entries
    monkeypatch.setenv(memory.VARIABLE, repr((needed + 0.5) / memory.GIB))
    assert native.NativeView(splats, view)._prepared.entries == entries
    monkeypatch.setenv(memory.VARIABLE, repr((needed - 0.5) / memory.GIB))
    with pytest.raises(MemoryLimitError) as refused:
        native.NativeView(splats, view)
    bound = int(str(refused.value).split("up to ")[2].split(" tiles")[0].replace(",", ""))
    assert bound > 4 * entries


def test_the_limit_changes_no_pixel(monkeypatch):
    splats, (view,) = made_splats(300), made_cameras(1, 96, 64)
    free = open_view(splats, view).composite(torch.ones(300, 1))
    entries = native.NativeView(splats, view)._prepared.entries
    needed = BYTES_PER_PIXEL * 96 * 64 + BYTES_PER_ENTRY * entries
    monkeypatch.setenv(memory.VARIABLE, repr((needed + 0.5) / memory.GIB))
    assert torch.equal(open_view(splats, view).composite(torch.ones(300, 1)), free)


def test_a_photograph_is_counted_before_it_is_decoded(tmp_path, monkeypatch):
    from splatcert.scene.pixels import decode

    Image.new("RGB", (2000, 1500)).save(tmp_path / "photo.png")
    monkeypatch.setenv(memory.VARIABLE, repr(BYTES_PER_PIXEL * 2000 * 1500 / memory.GIB))
    assert decode(tmp_path / "photo.png")[0].shape == (1500, 2000, 3)
    monkeypatch.setenv(memory.VARIABLE, "0.1")
    with pytest.raises(MemoryLimitError, match=r"photo.png \(2000 x 1500 pixels\) would take"):
        decode(tmp_path / "photo.png")


@pytest.mark.parametrize("value", ["", "much", "-1", "0", "nan", "inf"])
def test_a_limit_must_be_a_positive_number(value, monkeypatch):
    monkeypatch.setenv(memory.VARIABLE, value)
    with pytest.raises(MemoryLimitError, match="must be a positive number of GiB"):
        memory.memory_limit()


def test_the_default_is_half_of_the_memory_or_a_number(monkeypatch):
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    assert memory.memory_limit() == memory.physical_memory() // 2 > 0
    monkeypatch.setattr(os, "sysconf", lambda name: -1 if "SIZE" in name else 0)
    assert memory.memory_limit() == memory.UNKNOWN
