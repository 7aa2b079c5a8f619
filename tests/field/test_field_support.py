# SPDX-License-Identifier: Apache-2.0
"""Sums of support, and what is read off them."""

from math import pi

import numpy as np
import pytest
import torch

from splatcert.camera import Camera
from splatcert.field.support import FoldedSupport, Support, folds_of
from splatcert.raster.query_maps import support_angle

CAMERA = Camera(
    world_to_camera=np.eye(4), fx=10, fy=10, cx=5, cy=5, width=10, height=10
)  # at the origin


def support(*rows):
    return Support.from_sums(torch.tensor(rows, dtype=torch.float32))


def test_folds_are_interleaved_in_the_order_of_names():
    assert folds_of(["c", "a", "b", "d"], 3) == [2, 0, 1, 0]


def test_parts_add_up_and_one_can_be_left_out():
    sums = torch.rand(3, 7, 5, generator=torch.Generator().manual_seed(0))
    sums[1, 2], sums[2, 2] = 0, 0  # seen by the first fold only
    folded = FoldedSupport(sums)
    assert torch.allclose(folded.total.exposure, sums[:, :, 0].sum(0))
    assert torch.allclose(folded.total.direction, sums[:, :, 1:4].sum(0))
    assert torch.allclose(folded.total.error, sums[:, :, 4].sum(0))
    assert torch.allclose(folded.without(1).error, sums[[0, 2], :, 4].sum(0))
    assert folded.without(0).exposure[2] == 0
    assert len(folded) == len(folded.folds) == 3
    for fold in (-1, 3):
        with pytest.raises(IndexError, match=f"fold {fold} of 3"):
            folded.without(fold)


def test_spread_is_zero_from_one_side_and_one_from_opposite_sides():
    seen = support([2, 2, 0, 0, 0], [2, 0, 0, 0, 0], [2, 0, 1, 0, 0], [0, 0, 0, 0, 0])
    assert seen.spread().tolist() == [0, 1, 0.5, 0]


def test_angle_is_measured_to_the_mean_direction_seen():
    means = torch.tensor([[0.0, 0.0, 5.0]]).expand(4, 3)
    seen = support([1, 0, 0, -1, 0], [1, 0, 0, 2, 0], [1, 3, 0, 0, 0], [0, 0, 0, 0, 0])
    angles = support_angle(seen.direction, means, CAMERA)
    assert angles.tolist() == pytest.approx([0, pi, pi / 2, pi])


def test_small_angles_keep_their_digits():
    tiny = 1e-4
    seen = support([1, np.sin(tiny), 0, -np.cos(tiny), 0])
    angle = support_angle(seen.direction, torch.tensor([[0.0, 0.0, 5.0]]), CAMERA)
    assert float(angle) == pytest.approx(tiny, rel=1e-3)


def test_summaries_of_what_was_never_seen_are_finite():
    seen = support([4, 0, 0, -4, 1], [0, 0, 0, 0, 0])
    assert seen.residual_summary().tolist() == [0.25, 0]
    assert seen.log_exposure().tolist() == pytest.approx([np.log(5), 0])
