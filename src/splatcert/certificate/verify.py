# SPDX-License-Identifier: Apache-2.0
"""Does a certificate hold together, and does it follow from the data it names?

Nothing is taken on trust: what can be derived from other entries is derived again, the
threshold by two roads that share no code. `verify_folder` needs the certificate alone;
`compare` holds it against one computed afresh from photographs and splats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from splatcert.certificate.seal import seal_of
from splatcert.certificate.store import read_content, read_parts
from splatcert.errors import InputError

TOLERANCE = 1e-4
"""Relative difference of recomputed scores that another machine's rounding may explain."""


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


def verify_folder(path: Path) -> Verification:
    """Every check that needs nothing but the certificate's own files."""
    return Verification(tuple(_folder_checks(path)))


def _folder_checks(path: Path) -> Iterator[Check]:
    try:
        content, record = read_content(path)
    except InputError as error:
        yield Check("format", False, str(error).split("\n")[0])
        return
    yield Check("format", True, f"schema {record.schema}, written by splatcert {record.splatcert}")
    sealed = seal_of(content) == record.seal
    yield Check("seal", sealed, "unbroken" if sealed else "entries were changed after sealing")
    yield from _own_checks(record)
    yield (files := _check_files(path, record))
    if not files.passed:
        return
    try:
        fit, views = read_parts(path, record)
    except InputError as error:
        yield Check("contents", False, str(error).split("\n")[0])
        return
    for check in (_check_views, _check_scores, _check_scale, _check_diagnostics):
        yield check(record, views)
