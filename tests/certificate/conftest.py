# SPDX-License-Identifier: Apache-2.0
"""One capture, one model, two certificates, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_photos, made_predictor, made_truth
from splatcert.certificate.certificate import Certificate
from splatcert.splats.gaussians import Splats


@pytest.fixture(scope="session")
def photos():
    return made_photos()


@pytest.fixture(scope="session")
def model() -> Splats:
    return made_model(made_truth())


@pytest.fixture(scope="session")
def certificate(photos, model) -> Certificate:
    return certify(made_capture(photos), model, predictor=made_predictor())


@pytest.fixture(scope="session")
def stored(certificate, tmp_path_factory) -> Path:
    """The certificate's folder, not to be changed."""
    return certificate.save(tmp_path_factory.mktemp("stored") / "cert")


@pytest.fixture
def folder(stored, tmp_path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(stored, tmp_path / "cert"))
