# SPDX-License-Identifier: Apache-2.0
"""Scores of a batch by hand, masks, a smaller centre, and facts that need no label."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from certified_capture import HELD_OUT, made_capture, made_fitted, made_photos
from splatcert.conformal.calibrate import view_score
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.scene.scene import scene_from_tensors
from splatcert_bench.baselines.baseline import Fitted
from splatcert_bench.baselines.ensemble import Ensemble
from splatcert_bench.baselines.named import BaselineError
from splatcert_bench.studies import checks
from splatcert_bench.studies.batch import around_ensemble_mean, query_batch, shrunk, timed_cameras
from splatcert_bench.studies.checks import measure_latency, packing, visibility_facts
from splatcert_bench.studies.counts import count_ratios
from splatcert_bench.studies.scores import score_batch

BETAS = (Fraction(1, 10), Fraction(1, 2))


class Ramp:
    """A map that grows from left to right, and from view to view."""

    reading = "gaussian"

    def __init__(self) -> None:
        self.asked = 0

    def map(self, camera):
        self.asked += 1
        return self.asked * (1 + torch.arange(camera.width).float()).expand(camera.height, -1)


@pytest.fixture(scope="module")
def photos():
    return made_photos()


@pytest.fixture(scope="module")
def fitted(photos) -> Fitted:
    return made_fitted(photos, steps=3, long_side=30)


def test_scores_are_those_of_the_maps_written_out(photos, fitted):
    cameras, pictures = photos
    masks = {name: torch.rand(40, 60, generator=torch.Generator().manual_seed(0)) > 0.3
             for name in HELD_OUT[:2]}  # fmt: skip
    scene = scene_from_tensors(cameras, pictures, held_out=HELD_OUT[:4], masks=masks)
    batch = query_batch(scene, fitted, {"ramp": Ramp()})
    labelled = scene.held_out.reveal("evaluation", by="test")
    scored = score_batch(batch, labelled, BETAS)

    ramps = [(k + 1) * np.tile(np.arange(1.0, 61.0), (40, 1)) for k in range(4)]
    unit = np.mean([ramp.mean() for ramp in ramps])
    assert scored.maps["ramp"].unit == pytest.approx(unit) and scored.maps["ramp-pv"].unit == 1
    for row, view in enumerate(labelled):
        mask = view.mask().numpy() if view.has_mask else np.ones((40, 60), dtype=bool)
        residual = np.abs(
            view.image().numpy().astype(np.float64) - batch.views[view.name].centre.numpy()
        ).max(axis=-1)
        assert scored.pixels[row] == mask.sum()
        for name, own in (("ramp", unit), ("ramp-pv", ramps[row].mean())):
            found = scored.maps[name]
            assert found.means[row] == pytest.approx(ramps[row][mask].mean() / own, rel=1e-6)
            for at, weight in enumerate(LAMBDA_GRID):
                scale = 1 - float(weight) + float(weight) * ramps[row] / own
                by_hand = [view_score(residual, scale, beta, mask) for beta in BETAS]
                assert found.scores[row, :, at] == pytest.approx(by_hand, rel=1e-5)
        covered = (residual[mask] <= 1.6448536 * ramps[row][mask]).sum()
        assert scored.maps["ramp"].native[row, 0] == covered
        flat = count_ratios(residual[mask])
        assert np.array_equal(scored.counts["gsu"][row, 0], flat)
    assert scored.maps["ramp-pv"].reading == "" and scored.maps["ramp"].reading == "gaussian"
    assert np.array_equal(scored.maps["ramp"].ause, scored.maps["ramp-pv"].ause)


def test_around_the_ensemble_mean_everything_has_the_members_size(photos, fitted):
    scene = made_capture(photos)
    ensemble = Ensemble(fitted)
    batch = around_ensemble_mean(
        scene, query_batch(scene, fitted, {"ensemble": ensemble}), ensemble
    )
    shown = next(iter(batch.views.values()))
    assert tuple(shown.centre.shape) == (20, 30, 3)
    assert {tuple(m.shape) for m in shown.maps.values()} == {(20, 30)}
    labelled = scene.held_out.reveal("evaluation", by="test")
    scored = score_batch(batch, labelled, BETAS)
    assert set(scored.pixels) == {600} and np.isfinite(scored.psnr).all()
    assert set(scored.maps) == {"gsu", "gsu-pv", "ensemble", "ensemble-pv"}


def test_averaging_down_keeps_the_mean():
    image = torch.rand(8, 6, 3, generator=torch.Generator().manual_seed(1))
    small = shrunk(image, (4, 3))
    by_hand = image.reshape(4, 2, 3, 2, 3).mean(dim=(1, 3))
    assert torch.allclose(small, by_hand, atol=1e-6)
    assert shrunk(image, (8, 6)) is image


def test_a_map_that_is_no_scale_is_refused_by_name(photos, fitted):
    class Signed:
        reading = None

        def map(self, camera):
            return torch.linspace(-1, 1, camera.width).expand(camera.height, -1)

    with pytest.raises(BaselineError, match=r"'mine'.*not positive"):
        query_batch(made_capture(photos), fitted, {"mine": Signed()})


def test_training_directions_are_more_visible_than_others(photos, fitted):
    facts = visibility_facts(made_capture(photos), fitted)
    assert all(0 <= value <= 1 for value in facts.values())
    for kappa in (4, 16, 64):
        assert facts[f"visibility.{kappa}.training"] > facts[f"visibility.{kappa}.random"]


def test_one_pass_and_four_are_the_same_and_are_timed(photos, fitted):
    cameras = timed_cameras(made_capture(photos), 2)
    found = packing(fitted, cameras)  # what is deployed: native code, against plain passes
    assert set(found) == {"packing.maps", "packing.features"} and max(found.values()) < 1e-4
    found = measure_latency(fitted, cameras, 1)
    assert found["latency.megapixels"] == pytest.approx(0.0024)
    assert all(found[f"latency.{way}"] > 0 for way in ("one_pass", "four_passes"))


def test_the_latency_of_an_ensemble_is_that_of_its_own_members(photos, fitted, monkeypatch):
    rendered = []
    monkeypatch.setattr(
        checks, "_colour", lambda splats, camera, fitted: rendered.append((splats, camera.width))
    )
    small = replace(fitted.members, long_side=30)
    full = replace(small, long_side=None)
    both = replace(fitted, members=small, full_members=full)
    cameras = timed_cameras(made_capture(photos), 1)
    found = measure_latency(both, cameras, 1)
    for name, width in (("ensemble", 30), ("ensemble-full", 60)):
        assert found[f"latency.{name}"] > 0
        assert found[f"latency.members.{name}"] == len(small.splats)
        shown = [splats for splats, side in rendered if side == width]
        assert all(any(one is member for one in shown) for member in small.splats)
