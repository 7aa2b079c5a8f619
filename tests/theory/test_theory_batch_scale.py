# SPDX-License-Identifier: Apache-2.0
"""prop:equivariance: scales built from the whole unlabelled batch keep the guarantee.

By enumeration of every calibration subset and every test view outside it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from paper_in_fractions import levels, positive

from splatcert.conformal import outer_rank, threshold, view_score
from splatcert.difficulty.factor import LAMBDA_GRID, shape, unit_of, view_factor

QUARTER = Fraction(1, 4)


def batch_scales(raw, fields, lambda_a, lambda_b):
    """Phi: every view's scale from the covariates of all views, no label in sight."""
    unit = unit_of(raw)
    return [
        view_factor(float(value), unit, lambda_a) * shape(field, lambda_b)
        for value, field in zip(raw, fields, strict=True)
    ]


def coverage_over_all_splits(scores, m, alpha) -> Fraction:
    """Probability over a uniform calibration subset and a uniform test view outside it."""
    covered = total = 0
    for calibration in combinations(range(len(scores)), m):
        q = threshold([scores[i] for i in calibration], alpha)
        outside = set(range(len(scores))) - set(calibration)
        covered += sum(scores[i] <= q for i in outside)
        total += len(outside)
    return Fraction(covered, total)


batches = st.integers(0, 2**32 - 1).map(np.random.default_rng)
shrinkages = st.sampled_from(LAMBDA_GRID)


@given(batches, shrinkages, shrinkages, st.permutations(range(7)))
def test_equivariance_of_batch_scales_to_the_last_bit(rng, lambda_a, lambda_b, order):
    """Permuting the views permutes scales and scores, and changes nothing else."""
    raw, fields = rng.lognormal(0, 1, 7), rng.uniform(0.1, 2, (7, 4, 5))
    residuals = rng.random((7, 4, 5))
    plain = batch_scales(raw, fields, lambda_a, lambda_b)
    permuted = batch_scales(raw[order], fields[order], lambda_a, lambda_b)
    for place, view in enumerate(order):
        assert np.array_equal(permuted[place], plain[view])
        scores = [
            view_score(residuals[view], s[i], QUARTER)
            for s, i in ((permuted, place), (plain, view))
        ]
        assert scores[0] == scores[1]


@given(batches, shrinkages, shrinkages, levels, st.integers(1, 5))
def test_equivariance_gives_validity_over_every_split(rng, lambda_a, lambda_b, alpha, m):
    """The batch mode of the paper, 8-bit residuals with ties included."""
    if outer_rank(m, alpha) > m:
        return
    raw, fields = rng.lognormal(0, 1, 6), rng.uniform(0.1, 2, (6, 3, 3))
    residuals = rng.integers(0, 8, (6, 3, 3)) / 255
    scales = batch_scales(raw, fields, lambda_a, lambda_b)
    scores = [view_score(r, s, QUARTER) for r, s in zip(residuals, scales, strict=True)]
    assert coverage_over_all_splits(scores, m, alpha) >= 1 - alpha


@given(st.lists(positive, min_size=3, max_size=8), shrinkages, st.permutations(range(8)))
def test_equivariance_of_the_deployed_mode_is_that_of_a_fixed_function(raw, lambda_a, order):
    """With the training views' unit a view's factor does not depend on the batch at all."""
    unit = unit_of([1.0, 2.5, 0.75])
    alone = [view_factor(float(value), unit, lambda_a) for value in raw]
    together = view_factor(np.array([float(value) for value in raw]), unit, lambda_a)
    assert alone == together.tolist()
    shuffled = [i for i in order if i < len(raw)]
    assert view_factor(np.array(raw, dtype=float)[shuffled], unit, lambda_a).tolist() == [
        alone[i] for i in shuffled
    ]


def test_equivariance_is_needed_separate_units_break_the_guarantee():
    """Normalising calibration and test views apart: perfect predictions, coverage lost."""
    alpha, oracle = QUARTER, [1.0, 1.0, 1.0, 1.0, 8.0, 9.0]
    covered = total = 0
    for calibration in combinations(range(6), 5):
        chosen = [oracle[i] for i in calibration]
        scores = [a / view_factor(a, unit_of(chosen), 1) for a in chosen]
        for i in set(range(6)) - set(calibration):
            alone = view_factor(oracle[i], unit_of([oracle[i]]), 1)
            covered += oracle[i] / alone <= threshold(scores, alpha)
            total += 1
    assert Fraction(covered, total) < 1 - alpha
    together = [a / view_factor(a, unit_of(oracle), 1) for a in oracle]
    assert coverage_over_all_splits(together, 5, alpha) >= 1 - alpha
