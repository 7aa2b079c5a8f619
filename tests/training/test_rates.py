# SPDX-License-Identifier: Apache-2.0
"""Learning rates: as published, or matched to a short run."""

import json
from dataclasses import replace

import pytest

from splatcert.config import TrainConfig
from splatcert.training.losses import measure, summarise
from splatcert.training.optimise import train
from splatcert.training.rates import harmonics_every, rates_at
from splatcert.training.run import RunError, TrainingRun
from splatcert_bench.run.profiles import PROFILES

EXTENT = 2.0


@pytest.mark.parametrize("iterations", [150, 3_000, 7_000, 30_000])
def test_the_published_recipe_keeps_the_rates_of_the_original_trainer(iterations):
    config = TrainConfig(iterations=iterations, recipe="published")
    for step in (1, iterations // 2, iterations):
        rates = rates_at(step, config, EXTENT)
        done = (step - 1) / (iterations - 1)
        assert rates.means == EXTENT * 1.6e-4 * (1.6e-6 / 1.6e-4) ** done
        assert rates.geometry == {"quats": 1e-3, "log_scales": 5e-3, "logit_opacities": 2.5e-2}
        assert (rates.colour, rates.harmonics) == (2.5e-3, 5e-3 / 20)
    vanilla = replace(config, density="vanilla")
    assert rates_at(1, vanilla, EXTENT).harmonics == 2.5e-3 / 20


def test_the_fast_recipe_takes_larger_steps_in_shorter_runs_and_small_ones_at_the_end():
    published = rates_at(1, TrainConfig(recipe="published"), EXTENT).colour
    gains = [
        rates_at(1, TrainConfig(iterations=n), EXTENT).colour / published
        for n in (100, 1_875, 7_500, 30_000, 60_000)
    ]
    assert gains == pytest.approx([4, 4, 2, 1, 1])
    config = TrainConfig(iterations=7_500)
    first, middle, last = (rates_at(step, config, EXTENT) for step in (1, 3_750, 7_500))
    assert middle.geometry == first.geometry and middle.means < first.means
    assert last.colour == pytest.approx(0.1 * first.colour)
    assert last.means == pytest.approx(EXTENT * 1.6e-6)
    assert rates_at(1, TrainConfig(iterations=1), EXTENT).means > 0


def test_harmonics_are_updated_at_most_every_16_steps_and_often_in_short_runs():
    every = [harmonics_every(TrainConfig(iterations=n)) for n in (100, 3_000, 7_000, 30_000)]
    assert every == [1, 4, 4, 16]
    assert harmonics_every(TrainConfig(iterations=30_000, density="vanilla")) == 1


@pytest.mark.parametrize("density", ["fastgs", "vanilla"])
def test_the_fast_recipe_gets_further_in_the_same_number_of_steps(scene, density):
    psnr = {}
    for recipe in ("published", "fast"):
        config = TrainConfig(
            iterations=200, recipe=recipe, density=density, sh_degree=1, max_gaussians=2_000
        )
        views = scene.held_out.reveal("evaluation", by="test")
        psnr[recipe] = summarise(measure(train(scene, config), views))["psnr"]
    assert psnr["fast"] > psnr["published"] + 0.3, psnr


def test_a_run_of_an_earlier_version_is_one_of_the_published_recipe(scene, tmp_path):
    config = TrainConfig(iterations=6, sh_degree=0, recipe="published")
    run = TrainingRun(tmp_path, scene, config)
    with run.opened():
        run.train()
    record = json.loads((tmp_path / "train.json").read_text())
    del record["request"]["config"]["recipe"]
    (tmp_path / "train.json").write_text(json.dumps(record))
    with TrainingRun(tmp_path, scene, config).opened():
        pass
    other = TrainingRun(tmp_path, scene, replace(config, recipe="fast"))
    with pytest.raises(RunError, match="different settings: recipe"), other.opened():
        pass


def test_the_bench_trains_as_the_product_does_and_the_paper_as_published():
    assert PROFILES["cpu"].train == TrainConfig()
    assert PROFILES["paper"].train.recipe == "published"
    assert PROFILES["paper"].train.iterations == 30_000
