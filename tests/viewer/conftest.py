# SPDX-License-Identifier: Apache-2.0
"""One small certificate with its capture, as a viewer shows it."""

from __future__ import annotations

import pytest

from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_photos, made_predictor, made_truth
from splatcert.certificate.certificate import Certificate


@pytest.fixture(scope="session")
def photos():
    return made_photos()


@pytest.fixture(scope="session")
def certificate(photos) -> Certificate:
    return certify(made_capture(photos), made_model(made_truth()), predictor=made_predictor())
