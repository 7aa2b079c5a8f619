# SPDX-License-Identifier: Apache-2.0
"""Source scenes whose view difficulty is a known function of their descriptors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.difficulty.views_file import SceneViews, ViewTable

BETA = Fraction(1, 10)
THETA = np.zeros(len(FEATURE_NAMES))
THETA[[0, 3, 13, 16, 22]] = [0.2, -0.15, -0.3, 0.25, 0.4]


def made_scene(name: str, seed: int, views: int = 60, noise: float = 0.02, **changes) -> SceneViews:
    """log a* = theta . z in the scene's own units, plus noise that the right shape lessens."""
    rng = np.random.default_rng(seed)
    middle, size = rng.normal(size=24) * 5, rng.uniform(0.1, 10, size=24)
    tables = {}
    for role, count in (("training", views), ("held_out", views // 2)):
        z = rng.normal(size=(count, 24))
        if role == "training":
            z = (z - z.mean(axis=0)) / z.std(axis=0)
        shapes = 1 + 4 * np.abs(np.array([float(v) for v in LAMBDA_GRID]) - 0.5)
        spread = noise * shapes * rng.normal(size=(count, 1, 1))
        log_oracle = (z @ THETA)[:, None, None] + spread + rng.normal() + 0.05 * shapes
        tables[role] = ViewTable(
            names=tuple(f"{role}_{k:03}" for k in range(count)),
            descriptors=middle + size * z,
            oracle=np.exp(log_oracle),
            field_means=np.ones(count),
            pixels=np.full(count, 100),
            psnr=np.full(count, 30.0),
        )
    parts = {
        "scene": name,
        "schema": FEATURE_NAMES,
        "betas": (BETA,),
        "hashes": {"splats": f"{seed:064x}"},
        **tables,
    }
    return SceneViews(**(parts | changes))


def made_sources(count: int = 4, **options) -> list[SceneViews]:
    return [made_scene(f"scene{k}", seed=k, **options) for k in range(count)]
