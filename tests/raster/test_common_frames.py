# SPDX-License-Identifier: Apache-2.0
"""Photographs tell by which turn a converter changed a model's axes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from splat_layouts import moved_along, random_splats
from splatcert.raster.placement import SmallPhoto, rank_frames, require_frame
from splatcert.raster.render import render
from splatcert.splats.formats.frames import axes_to_ply, common_frames
from splatcert.splats.transform import FrameError
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

NAMES = [frame.name for frame in common_frames()]


@pytest.fixture(scope="module")
def photographed() -> tuple:
    splats = made_splats(200, sh_degree=1)
    photos = []
    for camera in made_cameras(3, 60, 40):
        rgb = render(splats, camera).rgb
        photos.append(SmallPhoto(camera, rgb, torch.ones(*rgb.shape[:2], 1)))
    return splats, photos


def test_frames_are_turns_and_the_first_changes_nothing():
    frames = common_frames()
    assert np.array_equal(frames[0].to_model, np.eye(4)) and len(set(NAMES)) == len(frames) == 8
    for frame in frames:
        turn = frame.to_model[:3, :3]
        assert np.array_equal(turn @ turn.T, np.eye(3)) and np.linalg.det(turn) == 1
    half = next(frame for frame in frames if "half turn about x" in frame.name)
    assert np.array_equal(half.to_model, np.diag([1, -1, -1, 1]))


def test_conventions_lead_to_the_axes_of_a_ply():
    """RUB has y up and z back; a point above and behind is at negative y and z of RDF."""
    assert (axes_to_ply("RUB") @ [1, 2, 3, 1]).tolist() == [1, -2, -3, 1]
    assert (axes_to_ply("LUF") @ [1, 2, 3, 1]).tolist() == [-1, -2, 3, 1]
    assert (axes_to_ply("RFU") @ [1, 2, 3, 1]).tolist() == [1, -3, 2, 1]


@pytest.mark.parametrize("name", NAMES)
def test_a_turned_model_is_found_and_turned_back(photographed, name):
    splats, photos = photographed
    frame = next(frame for frame in common_frames() if frame.name == name)
    turned = moved_along(splats, frame.to_model)
    fits = rank_frames(turned, common_frames(), photos)
    require_frame(fits)
    assert fits[0].name == name and fits[0].fit.psnr > fits[1].fit.psnr + 10
    torch.testing.assert_close(fits[0].restore(turned).means, splats.means, atol=1e-5, rtol=0)


def test_a_model_of_another_scene_is_refused(photographed):
    with pytest.raises(FrameError, match="the model does not match"):
        require_frame(rank_frames(random_splats(50, 0), common_frames(), photographed[1]))
