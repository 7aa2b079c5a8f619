# SPDX-License-Identifier: Apache-2.0
"""How a guide is learned, on made pixels whose errors are known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from splatcert.camera import Camera
from splatcert.difficulty.guided.guide import FEATURES
from splatcert.scales.guide_learning import (
    GATED,
    POWERS,
    UNITS,
    fit_gate,
    fit_guide,
    fit_scale,
    learn_guide,
    left_out,
    measure,
)
from splatcert.scales.guide_sources import GuideSource, GuideViews
from splatcert.scales.guided_features import raw_scale

VIEWS, PIXELS = 12, 400
CLASH, COUNT, SPREAD = (FEATURES.index(name) for name in ("clash", "count", "spread"))
CAMERA = Camera(world_to_camera=np.eye(4), fx=50.0, fy=50.0, cx=25.0, cy=15.0, width=50, height=30)


def made_views(seed: int, *, drift_is_right: bool = True) -> GuideViews:
    """Errors grow with one map; the witnesses' residual is right where many see the point."""
    draw = torch.Generator().manual_seed(seed)
    maps = torch.randn(VIEWS, PIXELS, len(FEATURES), generator=draw)
    maps[..., COUNT] = torch.rand(VIEWS, PIXELS, generator=draw)
    maps[..., CLASH] += 0.5 * torch.randn(VIEWS, 1, generator=draw)  # some views are harder
    size = 0.05 * torch.exp(0.7 * maps[..., CLASH])[..., None]
    difference = size * torch.randn(VIEWS, PIXELS, 3, generator=draw)
    noise = size * torch.randn(VIEWS, PIXELS, 3, generator=draw)
    known = (maps[..., COUNT] > 0.5)[..., None] & torch.tensor(drift_is_right)
    drift = torch.where(known, difference, noise)
    means = 0.05 * maps[..., CLASH].exp().mean(1).double().numpy()
    return GuideViews((CAMERA,) * VIEWS, maps, difference, drift, 0 * maps[..., 0], means)


@pytest.fixture(scope="module")
def sources() -> list[GuideSource]:
    return [GuideSource(f"scene {k}", "held-out", made_views(k), {}) for k in range(3)]


def test_the_scale_follows_the_map_that_predicts_errors(sources):
    guide = fit_scale([source.views for source in sources])
    maps = torch.zeros(2 * len(FEATURES), len(FEATURES))
    maps[0::2], maps[1::2] = -torch.eye(len(FEATURES)), torch.eye(len(FEATURES))
    logs = raw_scale(maps, guide).log().reshape(-1, 2)
    slopes = ((logs[:, 1] - logs[:, 0]) / 2).numpy()
    assert slopes[CLASH] == pytest.approx(0.7, abs=0.15)
    assert np.abs(np.delete(slopes, CLASH)).max() < 0.15
    assert guide.floor < math.exp(guide.intercept)


def test_units_learn_what_no_weight_can_say(sources):
    """Errors that are large where a map departs from its middle, to either side."""
    views = [source.views for source in sources]
    bent = [
        replace(
            one,
            difference=torch.sign(one.difference)
            * 0.02
            * torch.exp(1.5 * one.maps[..., SPREAD].abs())[..., None]
            * torch.rand(one.difference.shape, generator=torch.Generator().manual_seed(1)),
        )
        for one in views
    ]
    guide = fit_scale(bent)
    maps = torch.zeros(3, len(FEATURES))
    maps[:, SPREAD] = torch.tensor([-2.0, 0.0, 2.0])
    left, middle, right = raw_scale(maps, guide).tolist()
    assert left > 3 * middle and right > 3 * middle and len(guide.units) == UNITS


def test_a_hole_is_measured_as_it_is_certified(sources):
    views = replace(sources[0].views, hole=torch.full(sources[0].views.hole.shape, 0.25))
    guide = fit_guide(sources)
    needed, means = measure(views, guide)
    plain = measure(sources[0].views, guide)
    assert np.allclose(means, plain[1] + 0.25) and (needed < plain[0]).mean() != 1.0


def test_the_gate_trusts_witnesses_where_they_are_right(sources):
    count, distance, always = fit_gate([source.views for source in sources])
    trust = 1 / (1 + np.exp(-(always + count * np.array([0.05, 0.95]))))
    assert trust[0] < 0.2 and trust[1] > 0.8 and abs(distance) < 0.5
    wrong = [made_views(k, drift_is_right=False) for k in range(3)]
    count, _, always = fit_gate(wrong)
    assert 1 / (1 + np.exp(-(always + 0.5 * count))) < 0.1
    assert GATED[0] == COUNT


def test_a_guide_has_the_level_of_the_field_and_says_what_it_saves(sources):
    guide = fit_guide(sources)
    ratios = [measure(source.views, guide)[1] / source.views.field_means for source in sources]
    assert np.mean([np.log(ratio).mean() for ratio in ratios]) == pytest.approx(0, abs=1e-3)
    learned = learn_guide(sources)
    assert learned.power in POWERS and learned.card["views"] == "held-out"
    assert all(row["saving"] > 0.1 for row in learned.card["scenes"])


def test_the_power_is_chosen_on_sources_left_out(sources):
    """The guide of a source left out does not depend on it."""
    first = left_out(sources, fit_guide)[0]
    others = [GuideSource("another", "held-out", made_views(9), {}), *sources[1:]]
    assert left_out(others, fit_guide)[0].guide == first.guide
    assert min(first.width(power) for power in POWERS) < first.width(0.0)
