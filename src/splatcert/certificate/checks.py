# SPDX-License-Identifier: Apache-2.0
"""Questions to a certificate, and their answers in one line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from splatcert.errors import InputError


@dataclass(frozen=True)
class Check:
    """One question and its answer."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """All checks in order."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check was."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that were not."""
        return tuple(check for check in self.checks if not check.passed)


UNUSABLE = (ValueError, LookupError, ArithmeticError)
"""What arithmetic on edited entries raises; `InputError` is a `ValueError`."""


class Doubt(Exception):  # noqa: N818 - it is no error of ours or the user's
    """Why a check fails."""


def require(condition: bool, why: str) -> None:
    """Doubt it unless the condition holds."""
    if not condition:
        raise Doubt(why)


def answer(name: str, ask: Callable[[], str]) -> Check:
    """Ask one question; a doubt, or input that cannot be used, is a failure in words."""
    try:
        return Check(name, True, ask())
    except (Doubt, InputError) as doubt:
        return Check(name, False, " ".join(str(doubt).split()))
    except UNUSABLE as error:
        return Check(name, False, f"entries cannot be used: {' '.join(repr(error).split())}")
