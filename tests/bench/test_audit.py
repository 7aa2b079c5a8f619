# SPDX-License-Identifier: Apache-2.0
"""The audit confirms the identities where they hold and notices where they do not."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from made_studies import MadeScene

from splatcert_bench.statistics.audit import audit, low_order_statistic, low_rank
from splatcert_bench.statistics.choices import MissingError
from splatcert_bench.studies.collection import BenchStudies


@pytest.fixture(scope="module")
def study():
    return MadeScene("truck").study()


def audited(study):
    return audit(BenchStudies((study,)).main, study)


def test_identities_hold_to_rounding(study):
    found = audited(study)
    assert max(found.threshold, found.widths, found.aggregate, found.gain) < 1e-13
    assert found.rank == 1
    assert found.tail > 1
    assert found.ratio == pytest.approx(found.test_side * found.tail, rel=0.02)


@pytest.mark.parametrize(("entry", "noticed"), [("scores", "threshold"), ("means", "widths")])
def test_maps_that_are_not_the_product_are_noticed(study, entry, noticed):
    prediction = study.predictions["pool"]
    wrong = dataclasses.replace(prediction, **{entry: getattr(prediction, entry) * 1.001})
    found = audited(dataclasses.replace(study, predictions={"pool": wrong}))
    assert getattr(found, noticed) == pytest.approx(1e-3, rel=0.01)


def test_low_rank_is_the_floor_of_the_paper():
    """The last step of prop:decomposition: m - ceil((m+1)(1-alpha)) + 1 = floor((m+1) alpha)."""
    for alpha in (Fraction(1, 10), Fraction(1, 5), Fraction(1, 20), Fraction(4, 5)):
        for views in range(1, 60):
            assert low_rank(views, alpha) == ((views + 1) * alpha).__floor__()


def test_low_order_statistic_by_hand():
    values = np.arange(20.0)
    splits = np.zeros((1, 20), dtype=bool)
    splits[0, 1:20] = True
    assert low_order_statistic(values, Fraction(1, 10), splits) == [2.0]


def test_unmeasured_maps_are_named(study):
    bare = dataclasses.replace(study.predictions["pool"], scores=np.empty((0, 0)))
    with pytest.raises(MissingError, match="truck: the deployed scale itself was not measured"):
        audited(dataclasses.replace(study, predictions={"pool": bare}))
