# SPDX-License-Identifier: Apache-2.0
"""What the `gpu` back end promises on its own, on whatever device there is; CI has one in software.

`test_native.py` and `test_view_protocol.py` compare it with the reference.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import splatcert as sc
from discontinuities import near_discontinuity
from splatcert.raster.gpu import device as devices
from splatcert.raster.gpu import view as views
from splatcert.raster.gpu.device import Device, Traffic
from splatcert.raster.gpu.sort import scan, sorted_order
from splatcert.raster.query_maps import Traits
from splatcert.raster.reference import ReferenceView
from splatcert.raster.render import BackendError, open_view, render
from splatcert.storage.memory import MemoryLimitError
from splatcert_bench.synthetic.scenes import made_cameras, made_splats, random_splats
from view_kinds import ready

TRAINED = Path(__file__).parents[1] / "golden" / "schema-3" / "splats.ply"


@pytest.fixture
def device() -> Device:
    ready("gpu")
    return devices.open_device()


@pytest.fixture
def another(device, monkeypatch) -> Device:
    """A device that the views of this test use alone."""
    fresh = devices.open_device.__wrapped__()
    monkeypatch.setattr(views, "open_device", lambda: fresh)
    return fresh


def draw(*shape: int, seed=0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def traits_of(count: int) -> Traits:
    columns = [draw(count, seed=k) for k in range(3)]
    return Traits(*columns, draw(count, 3, seed=3) - 0.5, draw(count, 9, seed=4) - 0.5)


def everything(splats, camera) -> list[torch.Tensor]:
    """All that a view computes on the device."""
    view = open_view(splats, camera, "gpu")
    values, image = draw(len(splats), 5), draw(camera.height, camera.width, 5)
    query = view.query(traits_of(len(splats)), (0.1, 0.4, 0.8), 1e-3)
    return [
        view.composite(values), view.scatter(image), view.normal(values), view.footprint(),
        view.colours(), view.depths(), view.count(image[..., 0] > 0.5),
        query.center, query.field, query.maps, query.depth,
        torch.tensor([*query.moments, *query.statistics]),
    ]  # fmt: skip


def test_same_bits_over_20_runs(device):
    splats, camera = made_splats(1_500), made_cameras(1, 83, 51)[0]
    first = everything(splats, camera)
    for _ in range(19):
        again = everything(splats, camera)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_threads_share_a_device(device):
    splats, cameras = made_splats(500), made_cameras(4, 48, 32)
    alone = [render(splats, camera, backend="gpu").rgb for camera in cameras]
    with ThreadPoolExecutor(4) as pool:
        draw_one = partial(render, splats, backend="gpu")
        for _ in range(5):
            together = list(pool.map(draw_one, cameras))
            assert all(torch.equal(a, b.rgb) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("model", ["made", "trained"])
def test_larger_scenes_agree_with_the_reference(device, model):
    splats = made_splats(1_500) if model == "made" else sc.load_splats(TRAINED)
    camera = made_cameras(1, 64, 48)[0]
    exact, view = ReferenceView(splats.to(torch.float64), camera), open_view(splats, camera, "gpu")
    keep = ~near_discontinuity(exact, 1e-4)
    values, image = draw(len(splats), 3), draw(48, 64, 3) * keep[..., None]
    error = (view.composite(values) - exact.composite(values.double())).abs()[keep]
    assert float(error.median()) < 1e-6 and float(error.max()) < 2e-5
    truth = exact.scatter(image.double())
    assert (view.scatter(image) - truth).norm() <= 2e-6 * truth.norm()
    assert exact.composite(values.double()).mean() > 0.1


def test_a_query_moves_the_camera_up_and_picture_and_numbers_down(device):
    """Nothing per Gaussian moves once splats and traits are there."""
    moved = []
    for count in (500, 4_000):
        splats, traits = made_splats(count), traits_of(count)
        cameras = made_cameras(3, 64, 48)
        for camera in cameras:
            device.traffic = Traffic()
            found = open_view(splats, camera, "gpu").query(traits, (0.0, 0.0, 0.0), 1e-3)
            found.hardly_shown(0.5, 0.1, 1.0)
            moved.append(device.traffic)
    rows = 4 * 500 * (12 + splats.sh.shape[1] * 3 + 15)  # geometry, harmonics, traits
    assert moved[0].uploaded == 4 + rows + moved[1].uploaded
    for traffic in (*moved[1:3], *moved[4:]):
        # 52 words of camera, 8 of picture, 20 of ranks, 3 limits.
        assert traffic.uploaded == 4 * (52 + 8 + 20 + 3)
        # Colours and field, 19 numbers, two totals, 3 counts.
        assert traffic.downloaded == 4 * (4 * 64 * 48 + 19 + 2 + 3)
        assert traffic.dispatches <= 64
    assert moved[0].dispatches == moved[1].dispatches == moved[2].dispatches


def test_splats_are_uploaded_again_after_a_change_in_place(device):
    splats, camera = made_splats(300), made_cameras(1, 40, 30)[0]
    before = render(splats, camera, backend="gpu").rgb
    splats.sh.mul_(0.5)
    after = render(splats, camera, backend="gpu").rgb
    assert not torch.equal(before, after)
    assert torch.equal(after, render(splats[:], camera, backend="gpu").rgb)


def test_small_limits_change_no_picture(device, another):
    """Pages of Gaussians, bands of rows and dispatches in two dimensions, as for millions."""
    splats, camera = made_splats(3_000), made_cameras(1, 100, 90)[0]
    another.largest_binding, another.most_groups = 90_000, 5
    view = views.GpuView(splats, camera)
    assert len(view._bands) >= 3 and len(view._model.pages) >= 3
    small = everything_of(view)
    another.largest_binding, another.most_groups = 1 << 27, 65_535
    whole = views.GpuView(splats[:], camera)
    assert len(whole._bands) == len(whole._model.pages) == 1
    for k, (ours, theirs) in enumerate(zip(small, everything_of(whole), strict=True)):
        same = torch.equal(ours, theirs) if k < 4 else torch.allclose(ours, theirs, 1e-5, 1e-6)
        assert same, k


def everything_of(view) -> list[torch.Tensor]:
    """Pictures, which no limit may change, then sums over pixels, which it may reorder."""
    pixels = torch.tensor([[0, 0], [89, 99], [45, 50], [16, 31], [80, 2]])
    found = view.contributors(pixels)
    query = view.query(traits_of(3_000), (0.1, 0.4, 0.8), 1e-3)
    values, image = draw(3_000, 13), draw(90, 100, 5)
    pictures = [view.composite(values), found.offsets, found.gaussians, found.weights]
    summed = [view.scatter(image), view.normal(values), view.colours(), view.depths()]
    return [*pictures, *summed, query.center, query.maps, torch.tensor(query.statistics)]


def test_what_fits_no_buffer_is_refused(device, another, monkeypatch):
    splats, camera = made_splats(3_000), made_cameras(1, 40, 30)[0]
    another.largest_binding = 4_000
    with pytest.raises(BackendError, match="too many Gaussians in rows 0 to 15"):
        views.GpuView(splats, camera)
    monkeypatch.setenv("SPLATCERT_MEMORY_GIB", "0.0001")
    another.largest_binding = 1 << 27
    with pytest.raises(MemoryLimitError, match="3,000 Gaussians are in"):
        views.GpuView(splats, camera)


@pytest.mark.parametrize("count", [1, 255, 4_097, 70_000])
def test_numbers_are_summed_and_sorted_as_numpy_does(device, count):
    rng = np.random.default_rng(count)
    numbers = rng.integers(0, 2**12, (count, 2)).astype(np.uint32)
    sums = device.upload(numbers[:, 0])
    scan(device, sums)
    assert np.array_equal(
        device.download(sums, dtype=np.uint32), np.cumsum(numbers[:, 0]) - numbers[:, 0]
    )
    digits = [(0, 0), (0, 8), (1, 0), (1, 8)]
    order = sorted_order(device, device.upload(numbers), count, digits, words=2)
    keys = (numbers[:, 1].astype(np.int64) << 32) + numbers[:, 0]
    assert np.array_equal(device.download(order, dtype=np.uint32), keys.argsort(kind="stable"))


def test_a_sum_beyond_32_bits_stays_the_largest(device):
    sums = device.upload(np.full(3_000, 2**31, np.uint32))
    scan(device, sums)
    assert device.download(sums, dtype=np.uint32)[[0, 1, 2, 2_999]].tolist() == [
        0, 2**31, 2**32 - 1, 2**32 - 1,
    ]  # fmt: skip


def test_gradients_reach_the_values_and_are_refused_to_the_splats(device):
    camera = made_cameras(1, 45, 31)[0]
    splats = random_splats(60, seed=3, camera=camera)
    view, values, pull = (
        open_view(splats, camera, "gpu"),
        draw(60, 2).requires_grad_(),
        draw(31, 45, 2),
    )
    (view.composite(values) * pull).sum().backward()
    assert values.grad is not None and torch.equal(values.grad, view.scatter(pull))
    splats.means.requires_grad_()
    with pytest.raises(BackendError, match="no gradients to the splats"):
        render(splats, camera, backend="gpu")
    with torch.no_grad():
        assert render(splats, camera, backend="gpu").rgb.isfinite().all()


def test_a_lost_device_is_reported_and_the_next_view_opens_another(device, another):
    splats, camera = made_splats(200), made_cameras(1, 32, 24)[0]
    view = views.GpuView(splats, camera)
    another._opened.destroy()
    with pytest.raises(BackendError, match=r"the GPU was lost while .*\n.*'cpu'"):
        view.composite(torch.ones(200, 1))
    assert devices.open_device() is not another and open_view(splats, camera, "reference")


def test_a_device_without_memory_is_reported(device, another, monkeypatch):
    import wgpu

    def refuse(**_: object) -> None:
        raise wgpu.GPUOutOfMemoryError("Not enough memory left")

    monkeypatch.setattr(another._opened, "create_buffer", refuse)
    with pytest.raises(BackendError, match=r"ran out of memory while .*\n.*'cpu'"):
        views.GpuView(made_splats(200), made_cameras(1, 32, 24)[0])
