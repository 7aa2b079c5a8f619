# SPDX-License-Identifier: Apache-2.0
"""Coverage beyond the guarantee: stretches, regions, flags and tenths, on views one can count."""

from fractions import Fraction

import numpy as np

from splatcert.conformal.maps import covered_by_tenth, tenths_of, view_maps
from splatcert.conformal.splits import draw_splits
from splatcert_bench.statistics.compared_scales import Scale
from splatcert_bench.statistics.shift import (
    blocks,
    flagged_coverage,
    leave_region_out,
    shifted_coverage,
    tenth_coverage,
)
from splatcert_bench.studies.counts import count_tenths

TENTH = Fraction(1, 10)


def test_blocks_are_all_stretches():
    assert blocks(4, 2).tolist() == [
        [True, True, False, False],
        [False, True, True, False],
        [False, False, True, True],
    ]


def test_each_view_is_left_out_with_its_region_once():
    centres = np.array([[x + 0.1 * k, y, 0] for x in (0, 9) for y in (0, 9) for k in range(3)])
    apart = leave_region_out(centres)
    assert (~apart).sum(axis=0).tolist() == [1] * 12
    for split in apart:
        assert len({tuple(np.round(c / 9)) for c in centres[~split]}) == 1


def test_a_hard_stretch_is_missed_after_calibration_on_an_easy_one():
    scores = np.where(np.arange(24) < 12, 1.0, 2.0)
    scale = Scale(scores, np.ones(24))
    found = shifted_coverage(scale, TENTH, blocks(24, 12))
    assert found is not None and found.worst == 0 and 0 < found.mean < 1 and found.unbounded == 0


def test_splits_with_unbounded_boxes_do_not_count():
    scale = Scale(np.arange(12.0), np.ones(12))
    assert shifted_coverage(scale, TENTH, blocks(12, 8)) is None  # 8 views give no finite box


def test_a_flag_that_knows_the_hard_views_takes_the_misses():
    scores = np.random.default_rng(0).permutation(40).astype(float)
    splits = draw_splits(40, 20)
    found = flagged_coverage(Scale(scores, np.ones(40)), scores, TENTH, splits)
    assert found.flagged <= found.promised + 0.02
    assert found.of_flagged is not None and found.of_others is not None
    assert found.of_flagged < 0.1
    assert found.of_others > 0.9


def test_tenths_agree_with_counting_pixels():
    rng = np.random.default_rng(1)
    residual, scale = rng.random((6, 8, 9)), rng.lognormal(0, 1, (6, 8, 9))
    views = [view_maps(r, s) for r, s in zip(residual, scale, strict=True)]
    counts = np.array([count_tenths(v.ratios(), tenths_of(v.scale)) for v in views])
    split = np.array([[True, True, False, False, False, False]])
    factors = rng.lognormal(0, 0.2, (1, 6))
    found = tenth_coverage(counts, factors, split)
    exact = sum(covered_by_tenth(views[k], float(factors[0, k])) for k in range(2, 6))
    shares = exact[:, 1] / exact[:, 0]
    assert (found <= shares).all() and np.allclose(found, shares, atol=0.05)


def test_a_constant_scale_has_one_tenth():
    view = view_maps(np.random.default_rng(2).random((5, 6)), np.ones((5, 6)))
    counts = count_tenths(view.ratios(), tenths_of(view.scale))[None]
    found = tenth_coverage(counts, np.full((1, 1), 2.0), np.zeros((1, 1), dtype=bool))
    assert found[0] == 1 and np.isnan(found[1:]).all()
