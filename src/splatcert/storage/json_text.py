# SPDX-License-Identifier: Apache-2.0
"""JSON text that means one thing: no entry twice, no number that JSON does not have."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any


def parse_json(text: str, parse: Callable[[str], float] | None = None) -> Any:
    """The value of a JSON text, in which no object may name an entry twice.

    Of two entries Python keeps the last and other programs the first: what one of them shows
    is not what the other one checks.
    """
    return json.loads(text, parse_constant=parse, parse_float=parse, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = next(name for name, count in names.items() if count > 1)
        raise ValueError(f"an object has two entries named {twice[:60]!r}")
    return found


def finite_number(text: str) -> float:
    """A number in JSON, which has no NaN and no infinity."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a JSON number")
    return value
