# SPDX-License-Identifier: Apache-2.0
"""The made scenes: the same everywhere, with the statistics the benchmark relies on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from splatcert.raster.reference import ReferenceView, project
from splatcert.raster.render import render
from splatcert_bench.synthetic.scenes import made_cameras, made_splats, random_splats

TENSORS = ("means", "quats", "log_scales", "logit_opacities", "sh")


@pytest.mark.parametrize("make", [made_splats, lambda n, seed: random_splats(n, seed=seed)])
def test_a_seed_decides_every_value(make):
    one, same, other = make(300, seed=1), make(300, seed=1), make(300, seed=2)
    for name in TENSORS:
        assert torch.equal(getattr(one, name), getattr(same, name))
        assert not torch.equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == torch.float32
    one.check_finite()


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
@pytest.mark.parametrize("degree", [0, 3])
def test_counts_and_degrees(count, degree):
    for splats in (
        made_splats(count, sh_degree=degree),
        random_splats(count, sh_degree=degree),
    ):
        assert len(splats) == count
        assert splats.sh_degree == degree
        splats.check_finite()


def test_cameras_surround_the_courtyard_and_see_it():
    splats = made_splats(2_000).to(torch.float64)
    for camera in made_cameras(4, 32, 21):
        assert (camera.width, camera.height) == (32, 21)
        alpha = render(splats, camera, backend="reference").alpha
        assert alpha.mean() > 0.95
        assert len(ReferenceView(splats, camera).order) > 500


def test_colours_are_those_of_a_photograph():
    rgb = render(made_splats(3_000), made_cameras(1, 64, 42)[0], backend="reference").rgb
    assert 0.25 < rgb.mean() < 0.75 and rgb.std() > 0.12
    assert (rgb > 1).float().mean() < 0.05


def test_benchmark_camera_sees_what_a_real_capture_shows():
    """Gaussians in front and on screen, tile entries, contributors of sampled pixels."""
    splats = made_splats(100_000).to(torch.float64)
    camera = made_cameras(1, 640, 420)[0]
    everything = project(splats, camera)
    assert 80_000 < (everything.depths > 0.01).sum() < 90_000
    drawn = everything.drawn(camera)
    assert 35_000 < drawn.sum() < 46_000

    level = 2 * (255 * everything.opacities[drawn]).log()
    variances = everything.covariances[drawn].diagonal(dim1=1, dim2=2)
    reach = (level[:, None] * variances).sqrt()
    tiles = torch.tensor([40, 27])
    first = ((everything.centres[drawn] - reach) / 16).floor().clamp(min=0)
    last = torch.minimum(((everything.centres[drawn] + reach) / 16).ceil(), tiles)
    entries = (last - first).clamp(min=0).prod(1).sum() / tiles.prod()
    assert 145 < entries < 185

    pixels = np.random.default_rng(0).integers(0, (420, 640), (60, 2))
    listed = ReferenceView(splats, camera).contributors(torch.from_numpy(pixels))
    assert 15 < listed.offsets.diff().double().mean() < 32


def test_number_of_contributors_does_not_grow_with_the_count():
    camera = made_cameras(1, 96, 63)[0]
    pixels = torch.cartesian_prod(torch.arange(2, 63, 6), torch.arange(2, 96, 6))
    means = []
    for count in (4_000, 16_000):
        view = ReferenceView(made_splats(count).to(torch.float64), camera)
        means.append(view.contributors(pixels).offsets.diff().double().mean())
    assert means[1] / means[0] == pytest.approx(1, abs=0.35)


def test_random_splats_span_needles_and_blobs():
    camera = made_cameras(1, 64, 48)[0]
    splats = random_splats(2_000, seed=3, camera=camera)
    anisotropy = splats.log_scales.max(1).values - splats.log_scales.min(1).values
    assert anisotropy.exp().max() > 15 and splats.scales.max() > 0.2 and splats.scales.min() < 5e-4
    assert splats.opacities.min() < 1 / 255 and splats.opacities.max() > 0.99
    found = project(splats.to(torch.float64), camera)
    assert 0.02 < (found.depths < 0.01).double().mean() < 0.2
    assert 0.2 < found.drawn(camera).double().mean() < 0.8
