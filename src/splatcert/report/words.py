# SPDX-License-Identifier: Apache-2.0
"""Numbers as a report writes them."""

from __future__ import annotations

import math


def percent(share: float) -> str:
    """A measured share for people; a dash where there is none."""
    return "-" if math.isnan(share) else f"{100 * share:.1f}%"


def width(value: float) -> str:
    """A half-width in both units: ±29.8 of 255 (0.117)."""
    return f"±{of_255(value)} of 255 ({of_one(value)})"


def of_255(value: float) -> str:
    """A half-width in 8-bit units."""
    return "∞" if math.isinf(value) else f"{255 * value:.1f}"


def of_one(value: float) -> str:
    """A half-width where colours go from 0 to 1."""
    return "∞" if math.isinf(value) else f"{value:.3f}"


def plural(count: int, noun: str) -> str:
    """1 view, 2 views."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
