# SPDX-License-Identifier: Apache-2.0
"""The predictor as a function and as a file."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatcert.difficulty.descriptor import FEATURE_NAMES, SchemaError
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.difficulty.predictor import (
    LOG_BOUND,
    FeatureUnits,
    PredictorError,
    Shipped,
    ViewPredictor,
    load_predictor,
    predictor_from_json,
    shipped_predictor,
)

RNG = np.random.default_rng(0)
UNITS = FeatureUnits.from_descriptors(RNG.normal(size=(40, 24)) * 3 + 1)


def made_predictor(**changes) -> ViewPredictor:
    parts = {
        "weights": RNG.normal(size=24) / 10,
        "intercept": 1 / 3,
        "lambda_a": Fraction(1),
        "lambda_b": Fraction(1, 2),
        "ridge": 100.0,
        "beta": Fraction(1, 10),
        "card": {
            "scenes": [{"scene": "truck", "saving": {"full": 0.1 + 0.2}}],
            "date": "2026-01-01",
        },
    }
    return ViewPredictor(**(parts | changes))


def test_the_prediction_is_the_papers_formula():
    predictor = made_predictor()
    z = RNG.normal(size=(7, 24))
    raw = predictor.raw(z, UNITS)
    for row, found in zip(z, raw, strict=True):
        terms = [
            w * (x - m) / s
            for w, x, m, s in zip(predictor.weights, row, UNITS.mean, UNITS.std, strict=True)
        ]
        assert found == pytest.approx(np.exp(sum(terms) + 1 / 3), rel=1e-12)
        assert predictor.raw(row, UNITS) == pytest.approx(found, rel=1e-14)


def test_units_are_mean_and_deviation_of_the_training_views():
    table = RNG.normal(size=(30, 24)) * np.arange(1, 25) + 7
    table[:, 5] = 4.25
    units = FeatureUnits.from_descriptors(table)
    standard = units.standardise(table)
    assert np.abs(standard.mean(axis=0)).max() < 1e-12
    assert np.delete(standard.std(axis=0), 5) == pytest.approx(1)
    assert units.std[5] == 1 and (standard[:, 5] == 0).all()


def test_a_camera_from_another_world_still_gets_a_positive_number():
    predictor = made_predictor()
    far = np.stack([np.full(24, 1e9), np.full(24, -1e9)])
    raw = predictor.raw(far, UNITS)
    assert (raw > 0).all() and np.isfinite(raw).all()
    assert np.abs(np.log(raw)).max() <= LOG_BOUND + 1e-9


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(numbers, min_size=24, max_size=24), numbers, st.sampled_from(LAMBDA_GRID))
def test_json_round_trip_is_exact(weights, intercept, shrinkage):
    predictor = made_predictor(
        weights=np.array(weights), intercept=intercept, lambda_a=shrinkage, lambda_b=1 - shrinkage
    )
    again = predictor_from_json(json.loads(json.dumps(predictor.to_json())), "memory")
    assert (again.weights == predictor.weights).all()
    assert again.intercept == predictor.intercept
    assert (again.lambda_a, again.lambda_b) == (predictor.lambda_a, predictor.lambda_b)
    assert again.to_json() == predictor.to_json() and again.sha256 == predictor.sha256


def test_a_file_holds_the_same_predictor(tmp_path):
    predictor = made_predictor()
    predictor.save(tmp_path / "predictor.json")
    again = load_predictor(tmp_path / "predictor.json")
    z = RNG.normal(size=(5, 24))
    assert (again.raw(z, UNITS) == predictor.raw(z, UNITS)).all()
    assert again.card == predictor.card
    assert [path.name for path in tmp_path.iterdir()] == ["predictor.json"]


def test_the_identity_knows_every_number_but_not_the_day():
    predictor = made_predictor()
    later = replace(predictor, card=dict(predictor.card) | {"date": "2031-12-31"})
    assert later.sha256 == predictor.sha256
    moved = predictor.weights.copy()
    moved[3] = np.nextafter(moved[3], 1)
    assert replace(predictor, weights=moved).sha256 != predictor.sha256
    assert replace(predictor, lambda_b=Fraction(3, 4)).sha256 != predictor.sha256


SWAPPED = [FEATURE_NAMES[1], FEATURE_NAMES[0], *FEATURE_NAMES[2:]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "splatcert views"}, "is not a view predictor"),
        ({"version": 1}, "has version 1, this program reads 2"),
        ({"version": None}, "has version None"),
        ({"weights": [0.0] * 23}, "24 features require as many weights"),
        ({"weights": [0.0] * 23 + [None]}, r"weights\[23\] must be a number, got None"),
        ({"weights": [0.0] * 23 + [True]}, r"weights\[23\] must be a number, got True"),
        ({"weights": [0.0] * 23 + [float("nan")]}, "not valid JSON: NaN is not a JSON number"),
        ({"weights": [0.0] * 23 + [10**400]}, r"weights\[23\] is beyond the largest number"),
        ({"weights": "many"}, "weights must be a list"),
        ({"intercept": float("inf")}, "Infinity is not a JSON number"),
        ({"intercept": "inf"}, "weights, intercept and magnitude must be finite"),
        ({"intercept": "0"}, "intercept must be a number"),
        ({"magnitude": None}, "magnitude must be a number"),
        ({"ridge": -1.0}, "ridge penalty must be positive"),
        ({"lambda_a": "5/4"}, "lambda_a must be one of 0, 1/4, 1/2, 3/4, 1, got '5/4'"),
        ({"lambda_b": "1/3"}, "lambda_b must be one of 0, 1/4, 1/2, 3/4, 1, got '1/3'"),
        ({"lambda_a": "1/0"}, "lambda_a must be one of"),
        ({"lambda_b": "-1/2"}, "lambda_b must be one of"),
        ({"lambda_b": 0.5}, "lambda_b must be one of 0, 1/4, 1/2, 3/4, 1, got 0.5"),
        ({"beta": "2"}, "beta must lie strictly between 0 and 1"),
        ({"beta": "one"}, "beta is not a number"),
        ({"card": []}, "card must be an object"),
        ({"card": {"scenes": 5}}, "card.scenes must be a list, got 5"),
        ({"card": {"scenes": {"truck": 1}}}, "card.scenes must be a list"),
        ({"card": {"scenes": ["truck"]}}, r"card.scenes\[0\] must be an object, got 'truck'"),
        (
            {"card": {"scenes": [{}, {"hashes": ["ab"]}]}},
            r"scenes\[1\].hashes must map names",
        ),
        (
            {"card": {"scenes": [{"hashes": {"a": 1}}]}},
            r"scenes\[0\].hashes must map names",
        ),
        ({"card": {"x": float("nan")}}, "NaN is not a JSON number"),
        ({"features": [1] * 24}, r"features\[0\] must be text, got 1"),
    ],
)
def test_altered_files_are_refused(tmp_path, changes, message):
    path = tmp_path / "predictor.json"
    path.write_text(json.dumps(made_predictor().to_json() | changes))
    with pytest.raises(PredictorError, match=message) as caught:
        load_predictor(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("entry", sorted(made_predictor().to_json().keys() - {"format", "version"}))
def test_a_missing_entry_is_named(entry):
    content = made_predictor().to_json()
    del content[entry]
    with pytest.raises(PredictorError, match=f"memory: {entry} is missing"):
        predictor_from_json(content, "memory")


def test_what_is_read_from_memory_has_no_nan_either():
    """A certificate holds its predictor as parsed values."""
    for changes in ({"card": {"x": float("nan")}}, {"intercept": float("nan")}):
        with pytest.raises(PredictorError, match=r"NaN|finite"):
            predictor_from_json(made_predictor().to_json() | changes, "memory")


@pytest.mark.parametrize("features", [SWAPPED, FEATURE_NAMES[:-1]])
def test_another_schema_is_refused(tmp_path, features):
    path = tmp_path / "predictor.json"
    path.write_text(json.dumps(made_predictor().to_json() | {"features": list(features)}))
    with pytest.raises(SchemaError, match=r"predictor\.json: "):
        load_predictor(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000, '{"format": 1}'])
def test_what_is_no_predictor_is_refused(tmp_path, text):
    path = tmp_path / "predictor.json"
    path.write_text(text)
    with pytest.raises(PredictorError, match=r"predictor\.json"):
        load_predictor(path)


def test_a_missing_file_is_the_users_error(tmp_path):
    with pytest.raises(PredictorError, match="cannot read the view predictor"):
        load_predictor(tmp_path / "none.json")


@pytest.mark.parametrize("bad", [np.zeros(23), np.zeros((2, 2, 24)), np.full(24, np.nan)])
def test_descriptors_of_another_shape_are_refused(bad):
    with pytest.raises(PredictorError, match="descriptor"):
        made_predictor().raw(bad, UNITS)


def test_predictors_in_the_package_say_where_they_come_from():
    names = {}
    for shipped in get_args(Shipped):
        predictor = shipped_predictor(shipped)
        names[shipped] = {scene["scene"] for scene in predictor.card["scenes"]}
        assert predictor.magnitude == 0
        assert predictor.beta == Fraction(1, 10)
        assert predictor.card["views"] == "held-out"
        assert predictor.card["mean_saving"]["full"] > 0.1
    assert names["strict"] == {"truck", "train", "drjohnson", "playroom"} < names["default"]
    assert names["reverse"] == names["default"] - names["strict"]


def test_the_page_shows_the_card_of_the_predictor_in_the_package():
    page = Path(__file__).parents[2] / "docs" / "view-difficulty.md"
    for row in shipped_predictor().card["scenes"]:
        savings = " | ".join(
            f"{100 * row['saving'][k]:.1f} %" for k in ("full", "a", "b", "oracle")
        )
        assert f"| {row['scene']} | {savings} | {row['spearman']:.2f} |" in page.read_text()
