# SPDX-License-Identifier: Apache-2.0
"""Witnesses: what is kept of a photograph, who is asked, and what becomes of the answers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from splatcert import _native
from splatcert.camera import Camera
from splatcert.difficulty.guided.guide import Guide, Unit
from splatcert.raster.gpu.device import DeviceMemoryError, Traffic, open_device
from splatcert.raster.gpu.query import PLANES, DeviceMaps
from splatcert.raster.gpu.witnesses import upload_photos
from splatcert.raster.query_maps import QueryMaps
from splatcert.raster.render import BackendError
from splatcert.scales.guided_features import guided_map
from splatcert.witnesses.album import ASKED, Album
from splatcert.witnesses.maps import (
    Witness,
    WitnessMaps,
    ask,
    ask_device,
    ask_reference,
    ask_scale,
)
from splatcert.witnesses.pack import BYTES, PADDING, in_words, pack, unpack
from splatcert_bench.synthetic.scenes import made_cameras
from view_kinds import ready

SIZE = (47, 61)
FLIPS = 2e-3
"""Share of pixels whose witnesses may differ: they lie on an edge of a photograph or surface."""


def noise(seed: int, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def witness(camera: Camera, seed: int) -> Witness:
    pixels = (camera.height, camera.width)
    photo = noise(seed, *pixels, 3)
    render = (photo + 0.2 * (noise(seed + 1, *pixels, 3) - 0.5)).clamp(0, 1)
    return Witness(camera, pack(photo, render, 2.0 + 1.5 * noise(seed + 2, *pixels)))


def scene(count: int = 9) -> tuple[Camera, torch.Tensor, torch.Tensor, list[Witness]]:
    """A query with a bumpy surface, and witnesses around it, some of a different size."""
    height, width = SIZE
    query, others = made_cameras(1, width, height)[0], []
    for k in range(count):
        moved = np.array(query.world_to_camera)
        moved[:3, 3] += 0.4 * noise(k, 3).numpy() - 0.2
        others.append(replace(query, world_to_camera=moved))
    others[1] = others[1].resized(width + 13, height - 5)
    others[2] = replace(others[2], cx=others[2].cx + 4.3)
    picture, depth = noise(1, height, width, 3), 2.5 + 0.6 * noise(2, height, width)
    return query, picture, depth, [witness(c, 10 * k) for k, c in enumerate(others, 1)]


def test_a_packed_view_keeps_colours_to_a_step_and_depth_to_one_percent():
    photo, render, depth = noise(0, 9, 7, 3), noise(1, 9, 7, 3), 50 * noise(2, 9, 7) + 1
    packed = pack(photo, render, depth)
    assert packed.pixels.shape == (9, BYTES * 7 + PADDING) and packed.pixels.dtype == torch.uint8
    colour, _, kept = unpack(packed)
    assert (colour - photo).abs().max() <= 0.5 / 255 + 1e-6
    assert ((kept - depth).abs() <= 0.01 * depth).all()


def test_residuals_are_kept_to_a_step_and_a_ninth_and_small_ones_to_half_a_step():
    residual = torch.linspace(-0.5, 0.5, 4001)[None, :, None].repeat(1, 1, 3)
    found = unpack(pack(residual + 0.5, torch.full_like(residual, 0.5), residual[..., 0] + 1))[1]
    apart, size = (found - residual).abs(), residual.abs()
    assert (apart[size <= 1 / 255] <= 0.55 / 255).all()
    assert (apart[..., 1] <= 0.5 / 255 + 0.06 * size[..., 1]).all()
    assert (apart <= 1 / 255 + 0.11 * size).all()
    assert torch.equal(found, -found.flip(1)), "neither sign is favoured"


def test_pixels_that_show_nothing_hide_nothing_and_are_no_witnesses():
    photo, depth = noise(0, 5, 4, 3), 2 + noise(1, 5, 4)
    depth[1] = 0
    assert torch.equal(unpack(pack(photo, photo, depth))[2] == 0, depth == 0)
    assert not unpack(pack(photo, photo, torch.zeros(5, 4)))[2].any()
    flat = unpack(pack(photo, photo, torch.full((5, 4), 3.0)))[2]
    assert torch.allclose(flat, torch.full_like(flat, 3.0))


def on_device(query: Camera, picture: torch.Tensor, depth: torch.Tensor) -> DeviceMaps:
    """A picture and its depth as if a query had rendered them on the device."""
    ready("gpu")
    device, pixels = open_device(), query.width * query.height
    planes = np.zeros((PLANES, pixels), np.float32)
    planes[:3] = picture.reshape(3, pixels)
    planes[9] = depth.ravel()
    head = np.array([0, 0, 0, 0, query.width, pixels, 0, 0], np.uint32)
    return DeviceMaps(device, device.upload(head), device.upload(planes), query, [0.0] * 19)


def ask_gpu(
    query: Camera, picture: torch.Tensor, depth: torch.Tensor, witnesses: Sequence[Witness]
) -> WitnessMaps:
    maps = on_device(query, picture, depth)
    photos = upload_photos(maps.device, [in_words(witness.packed) for witness in witnesses])
    return ask_device(maps, witnesses, photos)


every_way = pytest.mark.parametrize("by", [ask, ask_gpu, ask_reference])
fast_ways = pytest.mark.parametrize("by", [ask, ask_gpu])


def assert_agrees(found: WitnessMaps, truth: WitnessMaps) -> None:
    assert truth.count.max() >= 3, "the scene must have points that several witnesses see"
    same = found.count == truth.count
    assert float((~same).float().mean()) <= FLIPS
    apart = (found.planes - truth.planes).abs().amax(0)[same]
    assert float(apart.max()) <= 2e-3 and float(apart.mean()) <= 2e-5


@pytest.mark.parametrize("isa", _native.available_isas())
def test_the_kernel_agrees_with_the_reference(isa, monkeypatch):
    before = _native.isa()
    query, picture, depth, witnesses = scene()
    truth = ask_reference(query, picture, depth, witnesses)
    try:
        _native.set_isa(isa)
        found = ask(query, picture, depth, witnesses)
    finally:
        _native.set_isa(before)
    assert_agrees(found, truth)


def test_the_device_agrees_with_the_reference_in_the_same_bits_every_time():
    asked = scene()
    found = ask_gpu(*asked)
    assert_agrees(found, ask_reference(*asked))
    for _ in range(3):
        assert torch.equal(ask_gpu(*asked).planes, found.planes)


def test_a_small_binding_changes_no_map(monkeypatch):
    """Pixels are asked about in several runs where their sums exceed a binding."""
    asked = scene()
    whole = ask_gpu(*asked)
    monkeypatch.setattr(open_device(), "largest_binding", 64_000)
    assert torch.equal(ask_gpu(*asked).planes, whole.planes)


def rendered(picture: torch.Tensor, depth: torch.Tensor) -> QueryMaps:
    field = 0.1 * noise(3, *depth.shape)
    return QueryMaps(picture, field, torch.zeros(5, *depth.shape), depth, [], [])


def made_guide() -> Guide:
    weights = (0.3, 0.2, 0.25, -0.1, 0.15, 0.05, -0.2, 0.1, 0.4, 0.3, -0.2)
    gate = (4.0, -1.0, -3.0)
    bent = Unit(weights=tuple(reversed(weights)), bias=0.4, share=0.7)
    steep = Unit(weights=tuple(8 * w for w in weights), bias=-1.0, share=-1.2)
    return Guide(
        weights=weights,
        units=(bent, steep),
        intercept=-0.5,
        floor=0.01,
        power=1.0,
        gate=gate,
        beta="1/10",
    )


@pytest.mark.parametrize("isa", _native.available_isas())
def test_the_scale_is_made_as_the_reference_makes_it_from_the_maps(isa):
    before = _native.isa()
    query, picture, depth, witnesses = scene(3)
    depth[:5, :9] = 0  # nothing is seen there
    found, guide = rendered(picture, depth), made_guide()
    try:
        _native.set_isa(isa)
        maps = ask(query, picture, depth, witnesses)
        made = ask_scale(query, found, witnesses, guide, correct=True)
    finally:
        _native.set_isa(before)
    truth = guided_map(found.field, maps, guide)
    assert torch.allclose(made.scale, truth.scale, rtol=2e-5)
    assert abs(made.mean - truth.mean) <= 1e-5 * made.mean
    assert made.correction is not None and truth.correction is not None
    assert torch.allclose(made.correction, truth.correction, rtol=2e-5, atol=1e-9)
    assert 0 < made.told == truth.told < depth.numel()


def test_the_same_bits_for_any_number_of_threads():
    query, picture, depth, witnesses = scene()
    threads, found = _native.threads(), rendered(picture, depth)
    try:
        _native.set_threads(1)
        first = ask(query, picture, depth, witnesses).planes
        scale = ask_scale(query, found, witnesses, made_guide())
        for count in (2, 5):
            _native.set_threads(count)
            assert torch.equal(ask(query, picture, depth, witnesses).planes, first)
            again = ask_scale(query, found, witnesses, made_guide())
            assert torch.equal(again.scale, scale.scale) and again.mean == scale.mean
    finally:
        _native.set_threads(threads)


@every_way
def test_a_witness_at_the_query_itself_shows_the_photograph(by):
    query, picture, depth, _ = scene()
    photo = noise(5, *SIZE, 3)
    maps = by(query, picture, depth, [Witness(query, pack(photo, photo - 0.25, depth))])
    assert (maps.count == 1).all()
    assert maps.distance.max() < 1e-3
    clash = (photo - picture).abs().amax(-1)
    assert torch.allclose(maps.clash.float(), clash, atol=4e-3)
    assert torch.allclose(maps.clash, maps.least_clash, atol=1e-5)
    assert torch.allclose(maps.drift, torch.full_like(maps.drift, 0.25), atol=0.025)
    assert maps.scatter.max() < 3e-3


@every_way
def test_points_behind_a_surface_or_outside_the_picture_have_no_witness(by):
    query, picture, depth, _ = scene()
    wall = Witness(query, pack(picture, picture, 0.5 * depth))
    away = np.diag([-1.0, 1.0, -1.0, 1.0]) @ query.world_to_camera
    behind = Witness(replace(query, world_to_camera=away), pack(picture, picture, depth))
    for others in ([wall], [behind], []):
        assert not by(query, picture, depth, others).planes.any()
    assert not by(query, picture, torch.zeros_like(depth), [wall]).planes.any()


@fast_ways
def test_close_witnesses_weigh_more_than_distant_ones(by):
    query, picture, depth, _ = scene()
    aside = np.array(query.world_to_camera)
    aside[0, 3] += 0.6
    near = Witness(query, pack(picture, picture - 0.2, depth))
    far = Witness(replace(query, world_to_camera=aside), pack(picture, picture + 0.2, depth))
    maps = by(query, picture, depth, [near, far])
    both = maps.count == 2
    assert both.any()
    assert (maps.drift[:, both] > 0.1).all()
    assert (maps.distance[both] < 1e-3).all()


def test_arrays_of_a_wrong_shape_are_refused():
    query, picture, depth, witnesses = scene()
    with pytest.raises(ValueError, match="picture has shape"):
        ask(query, picture[1:], depth, witnesses)
    first = witnesses[0].packed
    short = first._replace(pixels=first.pixels[:, 1:].contiguous())
    with pytest.raises(ValueError, match="pixels has rows of"):
        ask(query, picture, depth, [Witness(query, short)])


def test_the_album_goes_up_once_and_a_query_moves_cameras_and_maps():
    """Photographs move for the first picture only; later ones cost the same for any album."""
    height, width = SIZE
    moved = []
    for count in (9, 30):
        query, picture, depth, witnesses = scene(count)
        album, maps = Album(tuple(witnesses)), on_device(query, picture, depth)
        maps.depth  # noqa: B018  brought down before bytes are counted
        for _ in range(2):
            maps.device.traffic = Traffic()
            found = album.ask(query, maps)
            moved.append(maps.device.traffic)
        places = album.nearest(query, float(depth.median()))
        native = ask(query, picture, depth, [album.witnesses[k] for k in places])
        assert_agrees(found, native)
        first, second = moved[-2:]
        assert first.uploaded - second.uploaded == sum(in_words(w.packed).nbytes for w in witnesses)
        # 28 words per witness and the place of the first pixel up, eleven maps down.
        assert second.uploaded == 4 * (28 * ASKED + 1)
        assert second.downloaded == 4 * 11 * height * width
        assert first.dispatches == second.dispatches == ASKED + 1


def test_photographs_that_the_device_cannot_hold_are_refused(monkeypatch):
    query, picture, depth, witnesses = scene()
    device = on_device(query, picture, depth).device
    pixels = [in_words(witness.packed) for witness in witnesses]
    monkeypatch.setattr(device, "largest_binding", 20_000)
    with pytest.raises(BackendError, match="a training photo takes 24,864 bytes"):
        upload_photos(device, pixels)
    monkeypatch.undo()

    def full(_: object) -> None:
        raise DeviceMemoryError("the GPU ran out of memory while allocating 3 bytes.")

    monkeypatch.setattr(device, "upload", full)
    with pytest.raises(DeviceMemoryError, match=r"for 9 training photos(.|\n)*back end 'cpu'"):
        upload_photos(device, pixels)
