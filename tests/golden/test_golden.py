# SPDX-License-Identifier: Apache-2.0
"""The same capture and model give the same certificate as ever, bit for bit."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from golden_numbers import STORED, environment, golden_numbers

import splatcert as sc

CLOSE = 1e-4
"""Relative, where another machine rounds differently; hashes of rounded numbers differ there.

Between AMD and Intel, 2e-5 was seen.
"""
OURS = "cpu"
"""Cases of this back end have the same bits on processors of every maker."""


def unlike(stored: Any, found: Any, *, exact: bool) -> bool:
    if isinstance(stored, dict):
        return stored.keys() != found.keys() or any(
            unlike(stored[key], found[key], exact=exact) for key in stored
        )
    if isinstance(stored, list):
        return len(stored) != len(found) or any(
            unlike(one, other, exact=exact) for one, other in zip(stored, found, strict=True)
        )
    if isinstance(stored, float) and isinstance(found, float):
        if math.isnan(stored) or math.isnan(found):
            return math.isnan(stored) != math.isnan(found)
        return not (
            stored == found if exact else math.isclose(stored, found, rel_tol=CLOSE, abs_tol=CLOSE)
        )
    return exact and stored != found


def test_certificates_have_the_numbers_they_always_had():
    content = json.loads(STORED.read_text())
    here = environment()
    same = content["environment"] == here
    alike = content["environment"] == here | {"processor": content["environment"]["processor"]}
    found = dict(golden_numbers())
    assert found.keys() == content["numbers"].keys()
    wrong = [
        f"{case}: {entry}"
        for case, numbers in content["numbers"].items()
        for entry, stored in numbers.items()
        if unlike(stored, found[case][entry], exact=same or (alike and case.startswith(OURS)))
    ]
    assert not wrong


OLDER = {2: 0.03327475743597851, 3: 0.04905922857964048}
"""Thresholds of the kept certificates of each older schema."""


@pytest.mark.parametrize("schema", OLDER)
def test_a_certificate_of_an_older_schema_still_verifies_and_predicts(schema: int):
    """Every schema ever released stays readable."""
    folder = STORED.with_name(f"schema-{schema}")
    assert sc.verify(folder / "certificate").passed
    certificate = sc.load_certificate(folder / "certificate", sc.load_splats(folder / "splats.ply"))
    assert certificate.threshold == OLDER[schema]
    view = certificate.record.calibration[0]
    boxes = certificate.predict(view.camera)
    assert abs(boxes.half_width.mean() - certificate.threshold * view.factor) < 1e-4
