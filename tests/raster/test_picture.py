# SPDX-License-Identifier: Apache-2.0
"""`render` in one native sweep, and many views at once: the same bits as view by view."""

from __future__ import annotations

import threading

import pytest
import torch

from splatcert.raster import native
from splatcert.raster.abreast import abreast
from splatcert.raster.native import NativeView
from splatcert.raster.render import open_view, render
from splatcert.raster.view import View
from splatcert_bench.synthetic.scenes import made_cameras, made_splats


@pytest.fixture(autouse=True)
def threads_restored():
    isa = native.isa()
    yield
    native.set_threads(0)
    native.set_isa(isa)


@pytest.mark.parametrize("isa", [name for name in native.available_isas() if name != "scalar"])
@pytest.mark.parametrize("size", [(45, 31), (64, 48)])
def test_a_picture_is_what_the_operator_composites(isa, size):
    native.set_isa(isa)
    splats, camera = made_splats(2_000), made_cameras(1, *size)[0]
    view = NativeView(splats, camera)
    for ours, theirs in zip(
        view.picture((0.0, 0.0, 0.0)), View.picture(view, (0.0, 0.0, 0.0)), strict=True
    ):
        assert torch.equal(ours, theirs)
    background = (0.3, 0.6, 0.9)  # one rounding less than in torch
    ours, theirs = view.picture(background)[0], View.picture(view, background)[0]
    assert (ours - theirs).abs().max() <= 2**-23


def test_a_large_picture_written_past_the_caches_is_the_same():
    splats, camera = made_splats(500), made_cameras(1, 1312, 800)[0]
    view = NativeView(splats, camera)
    for ours, theirs in zip(
        view.picture((0.0, 0.0, 0.0)), View.picture(view, (0.0, 0.0, 0.0)), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_views_abreast_have_the_bits_of_one_view_after_another():
    splats, cameras = made_splats(2_000), made_cameras(5, 64, 48)
    one_by_one = [render(splats, camera) for camera in cameras]
    native.set_threads(3)
    workers: set[str] = set()

    def work(camera):
        workers.add(threading.current_thread().name)
        assert native.threads() == 1  # kernels stay on the worker's core
        return render(splats, camera)

    together = abreast(work, cameras, cameras)
    assert all(name != threading.current_thread().name for name in workers)
    for ours, theirs in zip(together, one_by_one, strict=True):
        assert torch.equal(ours.rgb, theirs.rgb) and torch.equal(ours.depth, theirs.depth)
    assert native.threads() == 3


def test_an_error_in_one_of_the_views_ends_the_others():
    cameras, begun = made_cameras(40, 16, 16), []

    def work(at):
        begun.append(at)
        if at == 1:
            raise ValueError("view 1")
        open_view(made_splats(200), cameras[at])

    native.set_threads(2)
    with pytest.raises(ValueError, match="view 1"):
        abreast(work, range(40), cameras)
    assert len(begun) < 40 or begun[-1] == 39


def test_as_many_views_are_at_work_as_memory_allows(monkeypatch):
    cameras = made_cameras(4, 64, 48)
    monkeypatch.setenv("SPLATCERT_MEMORY_GIB", str(2 * 256 * 64 * 48 / 2**30))
    native.set_threads(4)
    workers = set()
    abreast(lambda _: workers.add(threading.current_thread().name), cameras, cameras)
    assert 1 <= len(workers) <= 2
