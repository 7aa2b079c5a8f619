# SPDX-License-Identifier: Apache-2.0
"""field.safetensors: what goes in comes out, and what is wrong is named."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tiny_capture import tiny_capture

from splatcert.config import FieldConfig
from splatcert.field.fit import fit_field
from splatcert.field.normal_equations import FieldError
from splatcert.field.store import load_field, save_field


@pytest.fixture(scope="module")
def fit():
    capture = tiny_capture(count=40, views=3)
    return fit_field(capture.splats, capture.training, FieldConfig(max_steps=3, folds=2))


@pytest.fixture
def stored(fit, tmp_path):
    path = tmp_path / "field.safetensors"
    save_field(path, fit, inputs={"splats": "ab" * 32})
    return path


def rewrite(path, facts=None, **tensors):
    """The file with some of its facts or tensors exchanged; None leaves one out."""
    with safe_open(path, framework="pt") as file:
        known = json.loads(file.metadata()["splatcert"])
        kept = {name: file.get_tensor(name) for name in file.keys()}
    kept = {name: t for name, t in (kept | tensors).items() if t is not None}
    known = {name: fact for name, fact in (known | (facts or {})).items() if fact is not None}
    save_file(kept, path, metadata={"splatcert": json.dumps(known)})


def test_a_fit_comes_back_as_it_was(fit, stored):
    again = load_field(stored, gaussians=40, inputs={"splats": "ab" * 32})
    assert torch.equal(again.field.coefficients, fit.field.coefficients)
    assert torch.equal(again.support.sums, fit.support.sums)
    assert np.array_equal(again.psnr, fit.psnr, equal_nan=True)
    assert again.field.trace == fit.field.trace
    for name in ("degree", "prior", "ridge"):
        assert getattr(again.field, name) == getattr(fit.field, name)


def test_the_same_fit_gives_the_same_bytes(fit, stored, tmp_path):
    save_field(tmp_path / "again.safetensors", fit, inputs={"splats": "ab" * 32})
    assert stored.read_bytes() == (tmp_path / "again.safetensors").read_bytes()


def test_psnr_may_be_undefined(fit, stored):
    rewrite(stored, psnr=torch.tensor([np.nan, np.inf, 20.0], dtype=torch.float64))
    assert np.isnan(load_field(stored).psnr[0])


@pytest.mark.parametrize(
    ("facts", "tensors", "message"),
    [
        ({"schema": 2}, {}, "has schema 2, but this version reads 1"),
        ({"schema": None}, {}, "has schema None"),
        ({"degree": 1}, {}, "degree 1 does not match 9 coefficients"),
        ({"prior": None}, {}, "lacks a valid 'prior'"),
        ({"ridge": "NaN"}, {}, "lacks a valid ridge"),
        ({"reason": "boredom"}, {}, "its trace is inconsistent"),
        ({}, {"coefficients": None}, "it has no coefficients"),
        ({}, {"coefficients": torch.full((40, 9), torch.nan)}, "360 entries of coefficients"),
        ({}, {"coefficients": torch.zeros(40, 9).double()}, "expected float32 with 2 axes"),
        ({}, {"coefficients": torch.zeros(39, 9)}, r"expected \[2, 39, 5\]"),
        ({}, {"support": torch.zeros(2, 40, 4)}, r"support has shape \[2, 40, 4\]"),
        ({}, {"support": torch.full((2, 40, 5), torch.inf)}, "400 entries of support"),
        ({}, {"objective": torch.zeros(1).double()}, "its trace is inconsistent"),
    ],
)
def test_what_is_wrong_is_named(stored, facts, tensors, message):
    rewrite(stored, facts, **tensors)
    with pytest.raises(FieldError, match=message):
        load_field(stored)


def test_a_field_of_another_model_is_refused(stored):
    with pytest.raises(FieldError, match="field of 40 Gaussians, but the splats have 41"):
        load_field(stored, gaussians=41)
    with pytest.raises(FieldError, match="was fitted to different splats"):
        load_field(stored, inputs={"splats": "cd" * 32})


def test_files_that_are_no_fields_are_refused(tmp_path):
    missing, text, other = (tmp_path / name for name in ("none", "text", "other"))
    with pytest.raises(FieldError, match="no file at"):
        load_field(missing)
    text.write_text("hello")
    with pytest.raises(FieldError, match="it is not a safetensors file"):
        load_field(text)
    save_file({"x": torch.zeros(1)}, other)
    with pytest.raises(FieldError, match="not written by splatcert"):
        load_field(other)
