# SPDX-License-Identifier: Apache-2.0
"""Checks of a certificate, with one line of result each."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from splatcert.errors import InputError
from splatcert.storage.schema import to_plain


@dataclass(frozen=True)
class Check:
    """One check and its result."""

    name: str
    passed: bool | None
    """None if it cannot be checked from the given inputs."""
    detail: str
    warning: bool = False
    """Whether it passed with a detail to consider before relying on the boxes."""


@dataclass(frozen=True)
class Verification:
    """All checks in order."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.passed is False)

    @property
    def unchecked(self) -> tuple[Check, ...]:
        """The checks that were not possible with the given inputs."""
        return tuple(check for check in self.checks if check.passed is None)

    @property
    def warnings(self) -> tuple[Check, ...]:
        """The checks that passed with a warning."""
        return tuple(check for check in self.checks if check.warning)


UNUSABLE = (ValueError, LookupError, ArithmeticError)
"""Errors that arithmetic on edited entries raises; `InputError` is a `ValueError`."""


class CheckFailed(Exception):  # noqa: N818 - neither an error of ours nor of the user's
    """The reason why a check failed."""


class NotCheckable(Exception):  # noqa: N818
    """What nobody can check from what was given."""


class Warned(Exception):  # noqa: N818
    """What a reader should weigh, although the check passed."""


def check(condition: bool, why: str) -> None:
    """Fail the check unless the condition holds."""
    if not condition:
        raise CheckFailed(why)


def run_check(name: str, ask: Callable[[], str]) -> Check:
    """Run one check; unusable entries count as a failure."""
    try:
        return Check(name, True, ask())
    except Warned as known:
        return Check(name, True, str(known), warning=True)
    except NotCheckable as unknown:
        return Check(name, None, str(unknown))
    except (CheckFailed, InputError) as failure:
        return Check(name, False, " ".join(str(failure).split()))
    except UNUSABLE as error:
        return Check(name, False, f"entries cannot be used: {' '.join(repr(error).split())}")


LEAST_SPREAD, FEWEST = 1e-9, 3
"""Scores of so many views that differ by less, relatively, were fitted to their labels."""


def check_spread(scores: Collection[float]) -> str:
    """Fail if all scores are alike, as a predictor makes them that has seen the labels."""
    low, high = min(scores), max(scores)
    spread = (high - low) / high if 0 < high < math.inf else math.inf
    check(
        len(scores) < FEWEST or spread >= LEAST_SPREAD,
        f"all {len(scores)} scores are {high:.6g} to within {spread:.0e}: the factors were fitted "
        "to the calibration labels",
    )
    return f"from {low:.3g} to {high:.3g}"


TINY = 1e-12
"""Largest value that rounding may turn a zero into."""


def differences(
    stored: Any, again: Any, tolerance: float, *, apart: Collection[str] = (), where: str = ""
) -> Iterator[str]:
    """Places at which plain values differ, except for the places in `apart`.

    A place is written as in `calibration[003.png].factor`; in `apart`, `calibration[].factor`
    stands for the entries of all views of a list.
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


ROUNDING = 1e-9
"""Relative difference allowed between two ways of computing one number."""


def alike_records(one: Any, other: Any) -> bool:
    """Whether two records have the same entries, numbers up to rounding."""
    left, right = to_plain(one), to_plain(other)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(alike_records(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(alike_records, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return close(left, right)
    return left == right


def close(found: float, expected: float) -> bool:
    """Whether two numbers agree up to rounding."""
    return found == expected or abs(found - expected) <= ROUNDING * max(abs(found), abs(expected))
