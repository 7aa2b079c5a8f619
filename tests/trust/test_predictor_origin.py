# SPDX-License-Identifier: Apache-2.0
"""A predictor that memorised the calibration labels does not pass as an honest one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from certified_capture import (
    certify_scene,
    made_capture,
    made_model,
    made_photos,
    made_predictor,
    made_truth,
)
from splatcert.deploy import verify
from splatcert.difficulty.predictor import shipped_predictor
from splatcert.verification.checks import CheckFailed, check_spread


@pytest.fixture(scope="module")
def check_of(tmp_path_factory: pytest.TempPathFactory):
    photos = made_photos()

    def check(predictor):
        """The `predictor` line of `verify` for a certificate made with it."""
        folder = tmp_path_factory.mktemp("origin")
        certify_scene(made_capture(photos), made_model(made_truth()), predictor=predictor).save(
            folder
        )
        found = verify(folder)
        return next(one for one in found.checks if one.name == "predictor"), found

    return check


@pytest.mark.parametrize("name", ["default", "strict", "reverse"])
def test_a_shipped_predictor_is_known_by_its_hash(check_of, name):
    shipped = shipped_predictor(name)
    line, found = check_of(shipped)
    assert line.passed and line.detail.startswith(f"{name}, which comes with splatcert")
    assert shipped.sha256[:12] in line.detail and found.passed and not found.unchecked


def test_a_predictor_from_elsewhere_is_of_unknown_origin(check_of):
    line, found = check_of(made_predictor())
    assert line.passed is None and line.detail.startswith("unknown origin")
    assert found.passed and found.unchecked == (line,)


def test_a_copied_card_on_other_weights_fails(check_of):
    shipped = shipped_predictor()
    forged = replace(shipped, weights=shipped.weights * 1.001)
    dated = replace(forged, card={**shipped.card, "date": "2020-01-01"})
    for predictor in (forged, dated):
        line, found = check_of(predictor)
        assert line.passed is False and not found.passed
        assert "card of the default predictor, but other weights" in line.detail


def test_no_predictor_is_fine(check_of):
    line, found = check_of(None)
    assert line.passed and line.detail == "none" and found.passed


def test_scores_that_are_all_alike_fail():
    with pytest.raises(CheckFailed, match=r"all 20 scores are 0\.4"):
        check_spread([0.4 * (1 + k * 1e-14) for k in range(20)])
    with pytest.raises(CheckFailed):
        check_spread([0.4, 0.4, 0.4])


@pytest.mark.parametrize(
    "scores", [[0.4, 0.4], [0.4, 0.4, 0.4001], [0.0, 0.0, 0.0], [1.0, 2.0, float("inf")]]
)
def test_scores_that_differ_or_are_few_pass(scores):
    assert check_spread(scores).startswith("from")
