# SPDX-License-Identifier: Apache-2.0
"""Settings every test may change and none may leave changed."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from splatcert.raster import native

# Examples are the same on every run, and a slow machine is not a failure.
settings.register_profile("splatcert", derandomize=True, deadline=None)
settings.load_profile("splatcert")

# Ray starts its workers with the lowest priority but four; on a busy machine they would starve.
os.environ.setdefault("RAY_worker_niceness", "0")

# A shell's background job ignores Ctrl-C, and so would every command that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def state_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the ledger of calibrated photos of all tests away from the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPLATCERT_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger of its own for each test, whatever the others have certified."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("SPLATCERT_STATE", str(folder))
    return folder


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Set the number of threads of the native kernels for one test."""
    yield native.set_threads
    native.set_threads(0)


@pytest.fixture
def chosen_isa() -> Iterator[Callable[[str], None]]:
    """Choose the instruction set of the native kernels for one test."""
    before = native.isa()
    yield native.set_isa
    native.set_isa(before)
