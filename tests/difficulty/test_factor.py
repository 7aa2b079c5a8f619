# SPDX-License-Identifier: Apache-2.0
"""The scale s = a b~: shrinkage and units, the same for arrays, tensors and numbers."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch

from splatcert.difficulty.factor import LAMBDA_GRID, ScaleError, shape, shrink, unit_of, view_factor

FIELD = np.random.default_rng(14).uniform(1e-3, 0.5, (40, 60)).astype(np.float32)


def test_the_grid_is_that_of_the_paper():
    assert LAMBDA_GRID == (0, 0.25, 0.5, 0.75, 1)
    assert all(isinstance(value, Fraction) for value in LAMBDA_GRID)


@pytest.mark.parametrize("weight", LAMBDA_GRID, ids=str)
def test_a_shape_has_mean_one(weight):
    found = shape(FIELD, weight)
    assert found.mean(dtype=np.float64) == pytest.approx(1, rel=1e-6)
    assert (found > 0).all() and found.dtype == np.float32


@pytest.mark.parametrize("weight", LAMBDA_GRID, ids=str)
def test_arrays_and_tensors_give_the_same_shape(weight):
    tensor = shape(torch.from_numpy(FIELD), weight)
    assert tensor.dtype == torch.float32
    assert tensor.numpy() == pytest.approx(shape(FIELD, weight), rel=1e-6)


def test_the_ends_of_the_grid_are_exact():
    assert (shape(FIELD, 0) == 1).all()
    assert np.array_equal(shape(FIELD, 1), FIELD / FIELD.mean())


def test_a_shape_has_no_unit():
    assert shape(8 * FIELD, 0.5) == pytest.approx(shape(FIELD, 0.5), rel=1e-6)


def test_a_view_factor_is_one_at_the_unit_and_shrinks_towards_it():
    assert view_factor(3.0, 3.0, Fraction(3, 4)) == 1
    assert view_factor(np.array([1.0, 6.0]), 2.0, Fraction(1, 2)).tolist() == [0.75, 2.0]
    assert view_factor(torch.tensor([1.0, 6.0]), 2.0, 0.5).tolist() == [0.75, 2.0]
    assert view_factor(123.0, 2.0, 0) == 1


def test_the_unit_does_not_depend_on_the_order_of_views():
    """A plain sum would: floating-point addition is not associative."""
    raw = np.array([1e16, 1.0, 1.0, 3.0, 1e-3])
    units = {unit_of(np.random.default_rng(seed).permutation(raw)) for seed in range(50)}
    assert len(units) == 1
    assert unit_of([1, 2, 6]) == 3


def test_other_methods_maps_keep_what_they_say_across_views():
    """eq:baseline-normalization: one constant for the scene, not one for each view."""
    maps = [np.full((2, 2), 1.0), np.full((2, 2), 3.0)]
    unit = unit_of(map(np.mean, maps))
    assert [shrink(values, unit, 0.5)[0, 0] for values in maps] == [0.75, 1.25]


@pytest.mark.parametrize("weight", [-0.1, 1.5, float("nan")])
def test_a_shrinkage_outside_its_range_is_refused(weight):
    with pytest.raises(ScaleError, match=r"must lie in \[0, 1\]"):
        shape(FIELD, weight)


@pytest.mark.parametrize("unit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_unit_that_is_none_is_refused(unit):
    with pytest.raises(ScaleError, match="unit of a scale must be positive and finite"):
        view_factor(1.0, unit, 0.5)


@pytest.mark.parametrize("raw", [[], [1.0, 0.0], [1.0, float("nan")], [float("inf")]], ids=str)
def test_raw_predictions_must_be_positive(raw):
    with pytest.raises(ScaleError, match="raw view predictions must be positive and finite"):
        unit_of(raw)


def test_a_field_of_nothing_has_no_shape():
    with pytest.raises(ScaleError, match="positive and finite, got 0"):
        shape(np.zeros((2, 2)), 0.5)


def test_the_scale_needs_no_torch():
    code = "import splatcert.difficulty.factor, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
