# SPDX-License-Identifier: Apache-2.0
"""Where two records differ: text and counts exactly, numbers beyond a tolerance."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from splatcert.evaluate.views import NUMBERS, SceneViews

TINY = 1e-12
"""What rounding may leave of a zero."""


def differences(
    stored: Any, again: Any, tolerance: float, *, apart: Collection[str] = (), where: str = ""
) -> Iterator[str]:
    """Places at which plain values differ, entries at the places `apart` left out.

    A place is written as in `calibration[003.png].factor`; in `apart` and for the entries of
    any view of a list it is `calibration[].factor`.
    """
    if isinstance(stored, dict) and isinstance(again, dict):
        for key in sorted({*stored, *again}):
            place = f"{where}.{key}" if where else str(key)
            if _general(place) in apart:
                continue
            if key not in stored or key not in again:
                yield place
                continue
            yield from differences(stored[key], again[key], tolerance, apart=apart, where=place)
    elif isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        for index, (one, other) in enumerate(zip(stored, again, strict=True)):
            name = one.get("name", index) if isinstance(one, dict) else index
            yield from differences(one, other, tolerance, apart=apart, where=f"{where}[{name}]")
    elif not alike(stored, again, tolerance):
        yield where


def alike(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two plain values are the same; floats up to a relative tolerance."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=TINY)
    return one == other


def _general(place: str) -> str:
    before, bracket, rest = place.partition("[")
    return f"{before}[]{rest.rpartition(']')[2]}" if bracket else place


def different_arrays(stored: SceneViews, again: SceneViews, tolerance: float) -> Iterator[str]:
    """Names of the per-view arrays that differ.

    Entries of a column are compared on the column's own scale: a feature that is zero up to
    rounding has no relative error.
    """
    for entry in ("schema", "betas", "hashes"):
        if getattr(stored, entry) != getattr(again, entry):
            yield entry
    for role in ("training", "held-out"):
        one, other = stored.views(role), again.views(role)
        if one.names != other.names:
            yield f"{role} names"
            continue
        for name in NUMBERS:
            left, right = getattr(one, name), getattr(other, name)
            if left.shape != right.shape:
                yield f"{role} {name}"
                continue
            size = np.nan_to_num(np.abs(right)).max(axis=0, initial=0.0)
            near = np.abs(left - right) <= tolerance * size
            if not (near | (left == right) | (np.isnan(left) & np.isnan(right))).all():
                yield f"{role} {name}"
