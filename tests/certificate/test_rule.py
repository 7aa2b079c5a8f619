# SPDX-License-Identifier: Apache-2.0
"""The frozen scale construction: prop:equivariance and lem:gauge, to the bit where they are."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from certified_capture import made_predictor
from splatcert.difficulty.rule import FactorRule

rng = np.random.default_rng(3)
TRAINING, BATCH = rng.standard_normal((30, 24)), rng.standard_normal((17, 24))


@pytest.mark.parametrize("unit", ["deployed", "batch"])
def test_permuted_views_have_permuted_factors(unit):
    order = rng.permutation(len(BATCH))
    factors = FactorRule.freeze(made_predictor(), TRAINING, BATCH, unit).factors(BATCH)
    permuted = FactorRule.freeze(made_predictor(), TRAINING, BATCH[order], unit)
    np.testing.assert_array_equal(permuted.factors(BATCH[order]), factors[order])


def test_a_factor_does_not_depend_on_the_company_it_is_computed_in():
    rule = FactorRule.freeze(made_predictor(), TRAINING, BATCH, "deployed")
    other = FactorRule.freeze(made_predictor(), TRAINING, BATCH[:3], "deployed")
    assert [rule.factor(row) for row in BATCH] == other.factors(BATCH).tolist()


def test_units_differ_by_one_constant_without_shrinkage():
    predictor = made_predictor(lambda_a=Fraction(1))
    deployed, batch = (
        FactorRule.freeze(predictor, TRAINING, BATCH, unit).factors(BATCH)
        for unit in ("deployed", "batch")
    )
    ratio = deployed / batch
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-14)
    assert batch.mean() == pytest.approx(1.0, rel=1e-14)


def test_without_a_predictor_every_factor_is_one():
    rule = FactorRule.freeze(None, TRAINING, BATCH, "deployed")
    assert (rule.factors(BATCH) == 1).all()
    assert (rule.lambda_a, rule.lambda_b) == (0, Fraction(1, 2))


@pytest.mark.parametrize("predictor", [None, made_predictor()], ids=["none", "some"])
def test_a_rule_survives_its_record(predictor):
    rule = FactorRule.freeze(predictor, TRAINING, BATCH, "batch")
    again = FactorRule.of(json.loads(json.dumps(rule.parameters())))
    np.testing.assert_array_equal(again.factors(BATCH), rule.factors(BATCH))
