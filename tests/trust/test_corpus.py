# SPDX-License-Identifier: Apache-2.0
"""Malformed inputs end in success or one clear message, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import CASES, COMMANDS, Case
from trial import Ending, run_cases
from valid_files import write_valid_files

Endings = dict[str, list[Ending]]


@pytest.fixture(scope="session")
def valid_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_valid_files(tmp_path_factory.mktemp("corpus") / "valid")


@pytest.fixture(scope="session")
def endings(valid_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Endings:
    return run_cases(CASES, valid_files, tmp_path_factory.mktemp("cases"))


def test_the_corpus_is_large_and_every_kind_of_input_is_in_it():
    assert len(CASES) >= 150 and len({case.name for case in CASES}) == len(CASES)
    assert {case.kind for case in CASES} == set(COMMANDS)


def test_what_is_not_damaged_is_accepted(valid_files: Path, tmp_path: Path):
    """Otherwise a refusal would prove nothing."""
    whole = [Case(kind, kind, lambda it: None) for kind in COMMANDS]
    found = run_cases(whole, valid_files, tmp_path)
    refused = {
        (kind, one.command): (one.status, one.said)
        for kind, endings in found.items()
        for one in endings
        if one.status != "0" or one.fault()
    }
    # A run that is not finished is refused by all commands but the one that goes on with it.
    assert all(kind == "half_run" and "train " not in line for kind, line in refused), refused


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_a_malformed_input_hurts_nobody(name: str, endings: Endings):
    faults = {one.command: (one.fault(), one.said) for one in endings[name] if one.fault()}
    assert not faults
