# SPDX-License-Identifier: Apache-2.0
"""Scales by name, and choices that no label of the target can move."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from made_studies import BETAS, MadeScene

from splatcert.conformal.calibrate import view_scores
from splatcert.difficulty.factor import shape
from splatcert_bench.statistics.choices import MissingError, Protocol, choose, evaluate
from splatcert_bench.statistics.compared_scales import Scale, batch_factors
from splatcert_bench.statistics.evidence import At
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.tables.factors import ablation

SCENES = ("truck", "train", "playroom")
TENTH = Fraction(1, 10)


@pytest.fixture(scope="module")
def made():
    return {scene: MadeScene(scene) for scene in SCENES}


@pytest.fixture(scope="module")
def bench(made):
    return BenchStudies(tuple(scene.study() for scene in made.values()))


def test_width_and_coverage_of_a_split_by_hand():
    """Twelve views, eleven calibrate, the threshold is their largest score."""
    scale = Scale(scores=np.arange(1.0, 13), means=np.full(12, 2.0))
    found = evaluate(scale, Protocol(splits=500), TENTH, 11)
    assert set(found.thresholds) == {11.0, 12.0}
    assert set(found.widths) == {22.0, 24.0}
    np.testing.assert_array_equal(found.coverages == 0, found.thresholds == 11)
    assert found.coverage == pytest.approx(11 / 12, abs=0.04)


def test_full_scale_is_factor_times_shape(made, bench):
    """The scores that follow from a* and a are those of the maps themselves."""
    main, scene = bench.main, made["truck"]
    study = main.sources["truck"]
    prediction = study.prediction("pool")
    factors = prediction.factors
    assert batch_factors(prediction).mean() == pytest.approx(1)
    direct = np.array(
        [
            view_scores(r, a * shape(u, prediction.lambda_b), BETAS)[1]
            for r, a, u in zip(scene.residual, factors, scene.raw["gsu"], strict=True)
        ]
    )
    found = main.scale("full", study)
    np.testing.assert_allclose(found.scores, direct, rtol=1e-12)
    np.testing.assert_allclose(found.means, factors, rtol=1e-12)


def test_oracle_gives_every_view_the_score_one(bench):
    found = bench.main.scale("oracle", bench.main.studies[0])
    np.testing.assert_allclose(found.scores, 1, rtol=1e-15)


def test_saving_of_the_constant_scale_is_nothing(bench):
    np.testing.assert_array_equal(bench.main.savings("constant"), 0)


def test_a_better_factor_saves_more(bench):
    saved = {m: bench.main.savings(m).mean() for m in ("shape", "full", "oracle")}
    assert saved["shape"] < saved["full"] < saved["oracle"]


def test_choice_is_the_least_mean_width_of_the_pool():
    studies = [MadeScene(scene).study() for scene in ("bicycle", "garden")]
    chosen = choose(studies, ["gsu"], Protocol())
    from splatcert.difficulty.factor import LAMBDA_GRID
    from splatcert_bench.statistics.choices import pool_width

    widths = [pool_width(studies, "gsu", weight, Protocol()) for weight in LAMBDA_GRID]
    assert widths[0] == 1.0
    assert (chosen.weight, chosen.width) == (LAMBDA_GRID[int(np.argmin(widths))], min(widths))


def test_no_label_of_the_target_moves_a_choice(made):
    """Other scores of the target, the same choices for it."""
    studies = [scene.study() for scene in made.values()]
    target = studies[0]
    spoilt = {
        name: dataclasses.replace(stored, scores=stored.scores[::-1] ** 3)
        for name, stored in target.maps.items()
    }
    other = dataclasses.replace(target, maps=spoilt)
    for method in ("gsu", "gavis", "ensemble-pv", "magnitude"):
        before = BenchStudies(tuple(studies)).main.choice(method, target)
        after = BenchStudies((other, *studies[1:])).main.choice(method, other)
        assert before == after


def test_variants_of_a_method_are_told_from_others(bench):
    main = bench.main
    study = main.studies[0]
    assert main.choice("gavis", study).map in ("gavis-1", "gavis-64")
    assert main.choice("gavis-pv", study).map in ("gavis-1-pv", "gavis-64-pv")
    with pytest.raises(MissingError, match="no map 'fisher'"):
        main.scale("fisher", study)


def test_scenes_without_a_scale_are_left_out_aloud(made):
    studies = [scene.study() for scene in made.values()]
    poor = {n: m for n, m in studies[1].maps.items() if not n.startswith("ensemble")}
    studies[1] = dataclasses.replace(studies[1], maps=poor)
    main = BenchStudies(tuple(studies)).main
    assert "train" not in main.having("ensemble").scenes
    assert main.somewhere("ensemble", "fisher") == ["ensemble"]
    with pytest.raises(MissingError, match="no scene has all of: fisher"):
        main.having("fisher")


def test_too_few_calibration_views_are_no_result(bench):
    with pytest.raises(MissingError, match="no finite threshold"):
        bench.main.outcome("full", bench.main.studies[0], At(alpha=Fraction(1, 20)))


def test_a_scene_alone_has_no_one_to_choose_for_it():
    alone = BenchStudies((MadeScene("truck").study(),)).main
    assert alone.can("full", alone.studies[0])
    with pytest.raises(MissingError, match="no source scene has gsu"):
        alone.scale("gsu", alone.studies[0])


def test_wide_holes_have_a_row_in_the_ablation_where_their_map_is(made, bench):
    """On the same map as the paper's form, both rows say the same; without it there is one."""
    assert not any("wide holes" in row.label for row in ablation(bench).rows)
    studies = tuple(
        dataclasses.replace(one, maps={**one.maps, "holes-pv": one.maps["gsu-pv"]})
        for one in bench.studies
    )
    rows = {row.label: row.cells[0] for row in ablation(BenchStudies(studies)).rows}
    assert rows["Ours with wide holes, a × b̃"].ours == rows["Ours, a × b̃"].ours


def test_ridge_and_form_are_chosen_where_the_target_has_no_part(made):
    """Other scores of the target, the same choice; a narrower predictor on sources is taken."""
    studies = [scene.study() for scene in made.values()]
    target = studies[0]
    chosen = BenchStudies(tuple(studies)).main.form(target)
    spoilt = {
        name: dataclasses.replace(stored, scores=stored.scores[::-1] ** 3)
        for name, stored in target.maps.items()
    }
    other = dataclasses.replace(target, maps=spoilt)
    assert BenchStudies((other, *studies[1:])).main.form(other) == chosen
    learned = dataclasses.replace(target.predictions["pool@0.01"], width=0.1)
    other = dataclasses.replace(target, predictions={**target.predictions, "pool@0.01": learned})
    main = BenchStudies((other, *studies[1:])).main
    form = main.form(other)
    assert (form.field, form.product, form.width) == ("gsu@0.01", None, 0.1)
    expected = other.map("gsu@0.01-pv").scores[:, 1, 2] / learned.factors
    np.testing.assert_array_equal(main.scale("nested", other).scores, expected)


def test_the_field_of_any_ridge_is_chosen_on_sources(bench):
    study = bench.main.studies[0]
    assert bench.main.choice("gsu-any-ridge", study).map in ("gsu", "gsu@0.01")
    plain = dataclasses.replace(study, maps={name: study.maps[name] for name in ("gsu", "gsu-pv")})
    assert not bench.main.can("gsu-any-ridge", plain) and not bench.main.can("nested", plain)
