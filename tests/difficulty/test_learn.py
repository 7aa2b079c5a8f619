# SPDX-License-Identifier: Apache-2.0
"""Learning on made scenes whose truth is known."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from made_sources import BETA, THETA, made_scene, made_sources

from splatcert.config import LearnConfig
from splatcert.conformal.ranks import rank_correlation
from splatcert.conformal.splits import calibration_size, draw_splits, estimate
from splatcert.difficulty.descriptor import FEATURE_NAMES, SchemaError
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.difficulty.learn import RIDGES
from splatcert.difficulty.predictor import MAGNITUDE, FeatureUnits
from splatcert.difficulty.sources import LearnError
from splatcert.pipeline import learn

CONFIG = LearnConfig(splits=40)


def test_known_weights_are_found_again():
    predictor = learn(made_sources(noise=0.005), CONFIG)
    assert predictor.weights == pytest.approx(THETA, abs=0.02)
    assert predictor.ridge <= 1
    assert predictor.lambda_a == 1 and predictor.lambda_b == Fraction(1, 2)
    assert predictor.beta == BETA
    assert predictor.card["mean_spearman"] > 0.99


def with_difficulty(scene, power):
    """The scene with views as difficult as that power of their mean residual field."""

    def harder(table):
        return replace(
            table,
            oracle=table.oracle * np.exp(power * table.descriptors[:, MAGNITUDE])[:, None, None],
        )

    return replace(scene, training=harder(scene.training), held_out=harder(scene.held_out))


def test_the_fields_magnitude_needs_no_weights():
    """Weights explain what is left; the magnitude keeps its own units in every scene."""
    scenes = [with_difficulty(scene, 1) for scene in made_sources(noise=0.005)]
    predictor = learn(scenes, LearnConfig(splits=40, prior="magnitude", penalty="rank"))
    assert predictor.magnitude == 1 and predictor.card["prior"] == "magnitude"
    assert predictor.weights == pytest.approx(THETA, abs=0.02)
    units = FeatureUnits.from_descriptors(scenes[0].training.descriptors)
    raw = predictor.raw(scenes[0].held_out.descriptors, units)
    oracle = scenes[0].held_out.oracle[:, 0, LAMBDA_GRID.index(predictor.lambda_b)]
    assert np.std(np.log(raw) - np.log(oracle)) < 0.03
    flat = learn(scenes, replace(CONFIG, penalty="rank"))
    assert flat.magnitude == 0 and flat.card["mean_spearman"] < predictor.card["mean_spearman"]


def test_a_brighter_field_is_the_same_prior():
    """A constant factor on a scene's field moves all its log magnitudes alike (lem:gauge)."""
    scenes = [with_difficulty(scene, 1) for scene in made_sources(noise=0.005)]
    shift = np.zeros(24)
    shift[MAGNITUDE] = np.log(7)
    brighter = replace(
        scenes[0],
        training=replace(scenes[0].training, descriptors=scenes[0].training.descriptors + shift),
        held_out=replace(scenes[0].held_out, descriptors=scenes[0].held_out.descriptors + shift),
    )
    config = LearnConfig(splits=40)
    first, again = (learn([s, *scenes[1:]], config) for s in (scenes[0], brighter))
    assert again.weights == pytest.approx(first.weights, abs=1e-9)


def test_the_units_of_a_scene_do_not_matter():
    """Each scene is standardised by its own training views, whatever its scale."""
    scenes = made_sources()
    moved = replace(
        scenes[0],
        training=replace(scenes[0].training, descriptors=scenes[0].training.descriptors * 50 - 9),
        held_out=replace(scenes[0].held_out, descriptors=scenes[0].held_out.descriptors * 50 - 9),
    )
    first = learn(scenes, CONFIG)
    again = learn([moved, *scenes[1:]], CONFIG)
    assert again.weights == pytest.approx(first.weights, abs=1e-9)
    darker = replace(moved, training=replace(moved.training, oracle=7 * moved.training.oracle))
    assert learn([darker, *scenes[1:]], CONFIG).weights == pytest.approx(first.weights, abs=1e-9), (
        "targets are centred within a scene"
    )


def ridge_by_hand(scenes, shape, ridge):
    """One least-squares problem with a column per scene for its intercept."""
    rows, targets = [], []
    for k, scene in enumerate(scenes):
        z = FeatureUnits.from_descriptors(scene.training.descriptors).standardise(
            scene.training.descriptors
        )
        rows.append(np.hstack([z, np.eye(len(scenes))[np.full(len(z), k)]]))
        targets.append(np.log(scene.training.oracle[:, 0, shape]))
    x, y = np.vstack(rows), np.concatenate(targets)
    penalty = np.diag([ridge] * 24 + [0.0] * len(scenes))
    return np.linalg.solve(x.T @ x + penalty, x.T @ y)[:24]


@pytest.mark.parametrize("penalty", ["width", "rank"])
def test_left_out_scenes_score_ridge_and_shrinkages(penalty):
    """Everything of the card again, by hand, with estimators written out."""
    scenes = made_sources(3, noise=0.3, views=40)
    predictor = learn(scenes, replace(CONFIG, penalty=penalty))
    card = predictor.card
    units = [FeatureUnits.from_descriptors(s.training.descriptors) for s in scenes]
    z = [u.standardise(s.training.descriptors) for u, s in zip(units, scenes, strict=True)]
    others = [[s for s in scenes if s is not scene] for scene in scenes]
    oracles = [scene.training.oracle[:, 0] for scene in scenes]

    def relative_widths(logs, b):
        rows = []
        for log, oracle in zip(logs, oracles, strict=True):
            n = len(oracle)
            splits = draw_splits(n, calibration_size(n), 40, 0)
            raw = np.exp(log) / np.exp(log).mean()
            factors = [1 - float(value) + float(value) * raw for value in LAMBDA_GRID]
            full = [estimate(oracle[:, b], f, "1/10", splits).mean_width for f in factors]
            rows.append(
                np.array(full) / estimate(oracle[:, 0], 1 + 0 * raw, "1/10", splits).mean_width
            )
        return np.mean(rows, axis=0)

    best, widths = {}, np.zeros((5, 5))
    for b in range(5):
        tried = {}
        for ridge in RIDGES:
            logs = [z[k] @ ridge_by_hand(others[k], b, ridge) for k in range(3)]
            rank = np.mean([rank_correlation(logs[k], oracles[k][:, b]) for k in range(3)])
            tried[ridge] = relative_widths(logs, b), rank
        if penalty == "rank":
            best[b] = max(tried, key=lambda ridge: tried[ridge][1])
        else:
            least = min(width.min() for width, _ in tried.values())
            best[b] = max(r for r, (width, _) in tried.items() if width.min() <= least + 0.005)
        widths[b] = tried[best[b]][0]
    b, a = np.unravel_index(widths.argmin(), widths.shape)
    assert (predictor.lambda_b, predictor.lambda_a) == (LAMBDA_GRID[b], LAMBDA_GRID[a])
    assert predictor.ridge == best[b]
    found = np.array(list(card["relative_width"].values()))
    assert found == pytest.approx(widths, rel=1e-9)
    assert card["penalty"] == penalty
    assert card["ridge_widths"][str(predictor.ridge)] == pytest.approx(widths[b, a], rel=1e-9)
    assert 1 - card["mean_saving"]["full"] == pytest.approx(widths[b, a], rel=1e-9)
    assert predictor.weights == pytest.approx(ridge_by_hand(scenes, b, best[b]), abs=1e-9)


def test_where_penalties_do_equally_well_the_firmest_is_taken():
    """Views that are all alike give nothing to choose by."""
    scenes = [
        replace(scene, training=replace(scene.training, oracle=np.ones_like(scene.training.oracle)))
        for scene in made_sources(3)
    ]
    predictor = learn(scenes, CONFIG)
    assert predictor.ridge == max(RIDGES)
    assert set(predictor.card["ridge_widths"].values()) == {1.0}


def test_pure_noise_is_not_believed():
    """Nothing to learn: the chosen scale is no wider than the constant one."""
    scenes = []
    for k, scene in enumerate(made_sources(4)):
        rng = np.random.default_rng(k + 100)
        noise = np.exp(0.3 * rng.normal(size=scene.training.oracle.shape))
        scenes.append(replace(scene, training=replace(scene.training, oracle=noise)))
    predictor = learn(scenes, CONFIG)
    assert np.abs(predictor.weights).max() < 0.15
    assert predictor.card["mean_saving"]["full"] >= 0
    assert abs(predictor.card["mean_spearman"]) < 0.3


def test_savings_are_those_of_each_factor():
    card = learn(made_sources(noise=0.05), CONFIG).card
    saved = card["mean_saving"]
    assert saved["oracle"] >= saved["full"] >= max(saved["a"], saved["b"]) > 0
    assert [row["scene"] for row in card["scenes"]] == ["scene0", "scene1", "scene2", "scene3"]
    assert card["scenes"][2]["hashes"]["splats"].endswith("2")
    assert {row["views"] for row in card["scenes"]} == {60}


def test_raw_predictions_have_mean_one_over_the_pool():
    scenes = made_sources()
    predictor = learn(scenes, CONFIG)
    raw = [
        predictor.raw(s.training.descriptors, FeatureUnits.from_descriptors(s.training.descriptors))
        for s in scenes
    ]
    assert np.concatenate(raw).mean() == pytest.approx(1, rel=1e-12)


def test_a_single_scene_falls_back_to_its_own_folds_and_says_so():
    predictor = learn([made_scene("alone", 3, noise=0.005)], CONFIG)
    assert predictor.weights == pytest.approx(THETA, abs=0.05)
    assert "folds" in predictor.card["left_out"]
    assert learn(made_sources(2), CONFIG).card["left_out"] == "one scene at a time"


def test_held_out_views_are_learned_from_in_units_of_the_training_views():
    config = LearnConfig(views="held-out", splits=40)
    scenes = made_sources(noise=0.005)
    predictor = learn(scenes, config)
    assert predictor.weights == pytest.approx(THETA, abs=0.03)
    assert predictor.card["views"] == "held-out"
    assert predictor.card["scenes"][0]["views"] == len(scenes[0].held_out)
    assert learn(scenes, CONFIG).card["views"] == "training"


def test_learning_twice_gives_the_same_predictor():
    assert learn(made_sources(), CONFIG).sha256 == learn(made_sources(), CONFIG).sha256


def unlabelled(scene):
    oracle = np.full_like(scene.held_out.oracle, np.nan)
    return replace(scene, held_out=replace(scene.held_out, oracle=oracle))


def perfect_view(scene):
    oracle = scene.training.oracle.copy()
    oracle[4] = 0
    return replace(scene, training=replace(scene.training, oracle=oracle))


def photographed(name: str, seed: int, photo: str):
    """Splats of its own, and one photo."""
    marks = {"splats": f"{seed:064x}", "training 00.png": f"{photo} {seed}"}
    return made_scene(name, seed, hashes=marks)


def nameless(name: str, seed: int):
    return made_scene(name, seed, hashes={})


HELD_OUT = LearnConfig(views="held-out")


def test_a_view_without_a_target_is_dropped_and_counted():
    scenes = made_sources()
    spoiled = perfect_view(scenes[0])
    rows = np.delete(np.arange(60), 4)
    table = {
        name: getattr(spoiled.training, name)[rows]
        for name in ("descriptors", "oracle", "field_means", "pixels", "psnr")
    }
    sources = learn([spoiled, *scenes[1:]], CONFIG).card["scenes"]
    assert [row["dropped"] for row in sources] == [1, 0, 0, 0]
    assert [row["views"] for row in sources] == [59, 60, 60, 60]
    # The units are those of all training views, so only the number of views must agree.
    names = tuple(spoiled.training.names[k] for k in rows)
    without = replace(spoiled, training=replace(spoiled.training, names=names, **table))
    found = learn([spoiled, *scenes[1:]], CONFIG).weights
    assert found == pytest.approx(learn([without, *scenes[1:]], CONFIG).weights, abs=0.01)


def test_captures_may_share_the_name_of_their_folder():
    sources = [photographed("undistorted", 1, "ab"), photographed("undistorted", 2, "cd")]
    card = learn(sources, CONFIG).card
    assert [row["scene"] for row in card["scenes"]] == ["undistorted", "undistorted"]


@pytest.mark.parametrize(
    ("scenes", "config", "message"),
    [
        ([], CONFIG, "at least one source scene"),
        ([made_scene("x", 1), made_scene("x", 1)], CONFIG, "scene x was given twice:"),
        (
            [made_scene("x", 1), made_scene("y", 1)],
            CONFIG,
            r"scene x was given twice \(as x and y\)",
        ),
        ([photographed("x", 1, "ab"), photographed("y", 2, "ab")], CONFIG, "was given twice"),
        ([nameless("x", 1), nameless("x", 2)], CONFIG, "scene x was given twice"),
        ([made_scene("x", 1, views=11)], CONFIG, "has 11 training views"),
        ([unlabelled(made_scene("x", 1))], HELD_OUT, "0 held-out views with a target and 30 w"),
    ],
)
def test_unusable_sources_are_refused(scenes, config, message):
    with pytest.raises(LearnError, match=message):
        learn(scenes, config)


def test_a_scene_with_another_schema_is_refused_by_name():
    other = ("g_nothing", *FEATURE_NAMES[1:])
    with pytest.raises(SchemaError, match="views of scene odd: feature 1 is 'g_nothing'"):
        learn([made_scene("odd", 1, schema=other)], CONFIG)
