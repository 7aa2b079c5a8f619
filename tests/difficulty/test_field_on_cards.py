# SPDX-License-Identifier: Apache-2.0
"""A card says on which residual fields a predictor was learned; others are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from made_sources import made_sources

from certified_capture import certify_scene, made_capture, made_model, made_photos, made_truth
from splatcert.commands.captures.learn import common_field
from splatcert.config import CertifyConfig, FieldConfig, LearnConfig
from splatcert.difficulty.card import field_card
from splatcert.difficulty.guided.guide import ShippedGuide, shipped_guide
from splatcert.difficulty.predictor import PredictorError, Shipped, shipped_predictor, undated
from splatcert.difficulty.rule import FactorRule
from splatcert.errors import OptionError
from splatcert.pipeline import learn
from splatcert.refusals import OtherFieldError, refuse_other_field
from splatcert.scales.guided import GuidedScale
from splatcert.scales.paper import PaperScale

FIRM = FieldConfig(ridge=3.0)
SHIPPED = [shipped_predictor(name) for name in get_args(Shipped)]
SHIPPED += [shipped_guide(name) for name in get_args(ShippedGuide)]


@pytest.mark.parametrize("shipped", SHIPPED)
def test_what_comes_with_the_package_was_learned_on_the_usual_field(shipped):
    assert shipped.card["field"] == field_card(FieldConfig())


@pytest.mark.parametrize("shipped", SHIPPED)
def test_a_card_of_before_has_the_same_identity(shipped):
    assert replace(shipped, card=undated(shipped.card)).sha256 == shipped.sha256


def test_a_certificate_says_it_once():
    """In its own settings; its stored predictor has the card that it always had."""
    zeros = np.zeros((3, 24))
    rule = FactorRule.freeze(shipped_predictor(), zeros, zeros, "deployed")
    stored = rule.parameters()["predictor"]["card"]
    assert "field" not in stored and "date" in stored


def test_learning_enters_the_field(tmp_path):
    config = LearnConfig(splits=40)
    assert learn(made_sources(), config, FIRM).card["field"] == {"ridge": 3.0, "degree": 2}
    assert "field" not in learn(made_sources(), config).card


@pytest.mark.parametrize("scale", [PaperScale(shipped_predictor()), GuidedScale()])
def test_a_scale_learned_on_other_fields_is_refused(scale):
    refuse_other_field(scale, FieldConfig(max_steps=3))
    for other in (FIRM, FieldConfig(degree=1)):
        with pytest.raises(OtherFieldError, match=r"ridge 1\.0, degree 2") as refused:
            refuse_other_field(scale, other)
        assert str(refused.value).count("\n") < 5


def test_cards_that_do_not_say_are_accepted():
    shipped = shipped_predictor()
    silent = PaperScale(replace(shipped, card=undated(shipped.card)))
    refuse_other_field(silent, FIRM)
    with pytest.raises(PredictorError, match=r"card\.field must be an object"):
        replace(shipped, card={**shipped.card, "field": 3})


def test_certify_refuses_before_any_work_and_learn_wants_fields_fitted_alike(tmp_path):
    photos = made_photos()
    scene, model = made_capture(photos), made_model(made_truth())
    with pytest.raises(OtherFieldError):
        certify_scene(scene, model, CertifyConfig(field=FIRM))
    folders = []
    for ridge in (1.0, 3.0):
        config = CertifyConfig(field=FieldConfig(ridge=ridge, max_steps=2))
        folders.append(tmp_path / f"{ridge:g}.cert")
        certify_scene(made_capture(photos), model, config, predictor=None).save(folders[-1])
    assert common_field(folders[:1]).ridge == 1.0
    assert common_field([folders[0] / "views.npz"]) is None
    with pytest.raises(OptionError, match="ridge 3 and degree 2"):
        common_field(folders)
