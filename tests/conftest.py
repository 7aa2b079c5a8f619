# SPDX-License-Identifier: Apache-2.0
"""Settings every test may change and none may leave changed."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from splatcert.raster import native

# Examples are the same on every run, and a slow machine is no failure.
settings.register_profile("splatcert", derandomize=True, deadline=None)
settings.load_profile("splatcert")


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
