# SPDX-License-Identifier: Apache-2.0
"""The seal: one hash over all that a certificate says.

Anybody can compute it, so it finds accidents and careless edits, not forgery. A forger is
found by recomputing the scores from the photographs: `splatcert verify --data --model`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

UNSEALED = ("created", "seal")
"""Entries the seal leaves out: the time, so that two runs agree, and itself."""


def canonical(content: Mapping[str, Any]) -> str:
    """The one JSON text of these values: keys sorted, no spaces, ASCII."""
    return json.dumps(
        content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def seal_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text of a certificate's plain values."""
    sealed = {key: value for key, value in content.items() if key not in UNSEALED}
    return hashlib.sha256(canonical(sealed).encode()).hexdigest()
