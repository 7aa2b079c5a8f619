# SPDX-License-Identifier: Apache-2.0
"""Gaussians neither beside a camera nor too large for their distance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from splatcert.config import TrainConfig
from splatcert.training.initial import initial_splats
from splatcert.training.limits import FREE_DEPTH, LARGEST, Limits
from splatcert.training.optimise import CLEAR_EVERY, Trainer
from splatcert.training.table import GaussianTable


def table_of(scene, positions, scale):
    splats, _ = initial_splats(scene, TrainConfig(sh_degree=0))
    table = GaussianTable(splats)
    keep = torch.zeros(len(table), dtype=torch.bool)
    keep[: len(positions)] = True
    table.keep(keep)
    table.values["means"][:] = torch.as_tensor(np.asarray(positions)).float()
    table.values["log_scales"].fill_(float(np.log(scale)))
    return table


def test_free_space_ends_well_before_the_nearest_points(scene):
    limits = Limits(scene)
    camera = scene.training.cameras[0]
    beside, away = camera.centre + 1e-3, np.asarray(scene.points.xyz)[0]
    assert limits.allowed(table_of(scene, [beside, away], 0.01)).tolist() == [False, True]
    assert limits.free.max() < FREE_DEPTH * 2 * scene.extent
    bare = Limits(replace(scene, points=None))
    assert bare.allowed(table_of(scene, [beside, away], 0.01)).all()


def test_far_gaussians_may_be_as_large_as_their_distance_allows(scene):
    limits = Limits(scene)
    middle, far = limits.middle.numpy(), np.array([50 * scene.extent, 0, 0])
    table = table_of(scene, [middle, middle + far, middle + far], 40 * scene.extent)
    table.values["log_scales"][2, 1:] = 0
    limits.shrink(table)
    scales = table.values["log_scales"].exp() / scene.extent
    expected = LARGEST * torch.tensor([[1.0, 1, 1], [50, 50, 50]])
    assert torch.allclose(scales[:2], expected, rtol=1e-4)
    assert torch.equal(table.values["log_scales"][2, 1:], torch.zeros(2))


def test_training_keeps_the_limits_with_the_fast_recipe_only(scene):
    for recipe in ("fast", "published"):
        config = TrainConfig(
            iterations=CLEAR_EVERY + 5, recipe=recipe, sh_degree=0, max_gaussians=2_000
        )
        trainer = Trainer(scene, config)
        near, far = scene.training.cameras[0].centre, np.array([0, 0, 30 * scene.extent])
        trainer.table.values["means"][:2] = torch.as_tensor(np.stack([near, far])).float()
        trainer.table.values["log_scales"][1] = float(np.log(100 * scene.extent))
        while trainer.steps_done < config.iterations:
            trainer.step()
        limits = Limits(scene)
        before = trainer.table.values["log_scales"].clone()
        limits.shrink(trainer.table)
        kept = limits.allowed(trainer.table).all() and torch.equal(
            before, trainer.table.values["log_scales"]
        )
        assert bool(kept) == (recipe == "fast")
