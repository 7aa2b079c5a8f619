# SPDX-License-Identifier: Apache-2.0
"""Pixel pooling and native readings, for comparison."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from splatcert.conformal import CalibrationTooSmall, native_multiplier, pooled_threshold
from splatcert.conformal.maps import MapError


@pytest.mark.parametrize("beta", ["0.01", "1/10", "1/3", "0.5"])
def test_pooling_is_the_order_statistic_of_all_pixels_together(beta):
    rng = np.random.default_rng(4)
    residuals = [rng.integers(0, 256, (5, n)) / 255 for n in (3, 8, 20)]
    scales = [rng.uniform(0.1, 2, r.shape).astype(np.float32) for r in residuals]
    masks = [None, rng.random((5, 8)) < 0.5, None]
    kept = [
        np.ones(r.shape, bool) if m is None else m for r, m in zip(residuals, masks, strict=True)
    ]
    ratios = [(r / s)[m] for r, s, m in zip(residuals, scales, kept, strict=True)]
    pooled = np.sort(np.concatenate(ratios))
    rank = math.ceil((pooled.size + 1) * (1 - Fraction(beta)))
    assert pooled_threshold(residuals, scales, beta, masks) == pooled[rank - 1]


def test_pooling_reads_every_view_four_times_and_keeps_none():
    reads = []

    class Lazy(list):
        def __iter__(self):
            for index in range(3):
                reads.append(index)
                yield np.full((2, 2), index / 10)

    assert pooled_threshold(Lazy(), [1.0] * 3, "1/4") == 0.2
    assert reads == [0, 1, 2] * 4


def test_pooling_refuses_what_can_be_read_only_once():
    with pytest.raises(MapError, match="pass sequences, not iterators"):
        pooled_threshold(iter([np.ones((2, 2))]), [1.0], 0.1)  # type: ignore[arg-type]


def test_pooling_too_few_pixels_is_unbounded_and_says_so():
    with pytest.warns(CalibrationTooSmall, match="4 pixels are too few to pool at beta = 1/10"):
        assert pooled_threshold([np.ones((2, 2))], [1.0], 0.1) == np.inf


def test_native_readings_take_a_map_at_its_word():
    assert native_multiplier("gaussian", "1/10") == pytest.approx(1.6448536269514722)
    assert native_multiplier("residual", "1/10") == 1
    with pytest.raises(MapError, match="'gaussian' or as 'residual', not as 'laplace'"):
        native_multiplier("laplace", "1/10")  # type: ignore[arg-type]
