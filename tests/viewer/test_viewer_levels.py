# SPDX-License-Identifier: Apache-2.0
"""Other levels from stored numbers are what a certificate at those levels says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_predictor, made_truth
from splatcert.config import CertifyConfig
from splatcert.conformal.calibrate import shortfall
from splatcert_viewer.levels import Levels


@pytest.fixture(scope="module")
def levels(certificate) -> Levels:
    return Levels.of(certificate)


def test_the_certified_levels_give_the_certificate_itself(certificate, levels):
    promise = levels.at(certificate.alpha, certificate.beta)
    assert promise.is_certified
    assert promise.threshold == certificate.threshold
    assert promise.guarantee == certificate.guarantee


@pytest.mark.parametrize(("alpha", "beta"), [("1/4", "1/20"), ("1/5", "3/10")])
def test_other_levels_give_what_certifying_at_them_gives(photos, levels, alpha, beta):
    config = CertifyConfig(alpha=alpha, beta=beta)
    again = certify(made_capture(photos), made_model(made_truth()), config, made_predictor())
    promise = levels.at(Fraction(alpha), Fraction(beta))
    assert promise.threshold == pytest.approx(again.threshold, rel=1e-6)
    assert promise.guarantee == again.guarantee
    assert not promise.is_certified


def test_too_few_views_give_the_infinite_box_and_say_so(certificate, levels):
    promise = levels.at(0.01, certificate.beta)
    assert promise.threshold == float("inf")
    assert "cannot certify alpha = 1/100" in (shortfall(12, promise.alpha) or "")
    assert promise.guarantee.startswith("none")


def test_levels_snap_to_those_that_are_known(levels):
    assert levels.at(0.1, 0.12).beta == Fraction(1, 10)
    assert levels.at(0.1, 0.13).beta == Fraction(3, 20)
    assert levels.at(0.234, 0.1).alpha == Fraction(23, 100)
    assert levels.at(0.0, 1.0).alpha == Fraction(1, 100)


def test_an_unusual_alpha_is_among_the_levels(certificate):
    promise = replace(certificate.record.guarantee, alpha=Fraction(1, 15))
    unusual = replace(certificate, record=replace(certificate.record, guarantee=promise))
    found = Levels.of(unusual)
    assert found.at(float(Fraction(1, 15)), 0.1).alpha == Fraction(1, 15)


def test_thresholds_fall_as_more_may_miss(levels):
    table = np.array([[levels.at(a, b).threshold for b in levels.betas] for a in levels.alphas])
    assert (table[1:] <= table[:-1]).all() and (table[:, 1:] <= table[:, :-1]).all()
