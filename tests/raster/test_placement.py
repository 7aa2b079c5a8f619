# SPDX-License-Identifier: Apache-2.0
"""Photographs tell which frame a model is in, or that none is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from splat_layouts import moved_along
from splatcert.raster.placement import (
    SAMPLED_VIEWS,
    fit_photos,
    rank_frames,
    require_frame,
    sample_photos,
)
from splatcert.raster.render import render
from splatcert.scene.scene import Scene, scene_from_tensors
from splatcert.splats.gsplat_frame import FrameCandidate
from splatcert.splats.transform import FrameError
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

TURNS = {"right": (1, 1, 1), "about x": (1, -1, -1), "about y": (-1, 1, -1), "about z": (-1, -1, 1)}


@pytest.fixture(scope="module")
def splats():
    return made_splats(1_500)


@pytest.fixture(scope="module")
def scene(splats) -> Scene:
    cameras = {f"{k}": camera for k, camera in enumerate(made_cameras(7, 96, 63))}
    photos = {name: render(splats, camera).rgb.clamp(0, 1) for name, camera in cameras.items()}
    return scene_from_tensors(cameras, photos)


def candidates(matrix: np.ndarray) -> list[FrameCandidate]:
    """The right frame last, so that its place in the list cannot decide."""
    turned = {name: np.diag([*signs, 1.0]) @ matrix for name, signs in TURNS.items()}
    return [FrameCandidate(name, turned[name], 0.0) for name in reversed(turned)]


def with_photos(scene: Scene, change) -> Scene:
    cameras = dict(zip(scene.training.names, scene.training.cameras, strict=True))
    photos = {view.name: change(view.image()) for view in scene.training}
    return scene_from_tensors(cameras, photos)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_photographs_choose_the_frame(splats, scene, noise):
    """Even a poor model, far from its photographs, is nearer to them than a turned one."""
    generator = torch.Generator().manual_seed(0)
    spoilt = replace(
        splats, sh=splats.sh + noise * torch.randn(splats.sh.shape, generator=generator)
    )
    used = np.diag([0.3, 0.3, 0.3, 1.0])
    used[:3, 3] = (1.0, -2.0, 0.5)
    model = moved_along(spoilt, used)
    fits = rank_frames(model, candidates(used), sample_photos(scene.training))
    best = require_frame(fits)
    assert best.name == "right" and best.fit.photos == SAMPLED_VIEWS
    assert best.fit.psnr > fits[1].fit.psnr + 5
    torch.testing.assert_close(best.restore(model).means, splats.means, rtol=1e-5, atol=1e-5)


def test_a_model_of_another_capture_is_refused_with_the_numbers(splats, scene):
    other = with_photos(scene, lambda photo: photo.flip(0))
    fits = rank_frames(splats, candidates(np.eye(4)), sample_photos(other.training))
    with pytest.raises(FrameError, match=r"right \d+\.\d.*\n.*flat colour .* reaches \d+\.\d"):
        require_frame(fits)


def test_frames_that_look_alike_are_refused_with_the_numbers(splats, scene):
    twice = [FrameCandidate(name, np.eye(4), 0.0) for name in ("one", "two")]
    fits = rank_frames(splats, twice, sample_photos(scene.training))
    with pytest.raises(FrameError, match=r"about equally well.\n  PSNR in dB: one \d+\.\d; two \d"):
        require_frame(fits)


def test_only_pixels_that_count_are_compared(splats, scene):
    """Masked pixels may hold anything; the mask is not smeared by the reduction."""
    half = torch.zeros(63, 96, dtype=torch.bool)
    half[:, 48:] = True
    cameras = dict(zip(scene.training.names, scene.training.cameras, strict=True))
    photos = {v.name: torch.where(half[..., None], v.image(), 0.0) for v in scene.training}
    masked = scene_from_tensors(cameras, photos, masks=dict.fromkeys(photos, half))
    assert fit_photos(splats, sample_photos(masked.training)).psnr > 60
    blind = scene_from_tensors(cameras, photos)
    assert fit_photos(splats, sample_photos(blind.training)).psnr < 20


def test_large_photographs_are_reduced(splats):
    camera = made_cameras(1, 960, 630)[0]
    scene = scene_from_tensors({"a": camera}, {"a": render(splats, camera).rgb.clamp(0, 1)})
    (photo,) = sample_photos(scene.training)
    assert photo.rgb.shape == (262, 400, 3) and photo.camera.width == 400
    assert fit_photos(splats, [photo]).psnr > 30
