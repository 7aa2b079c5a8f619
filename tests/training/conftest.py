# SPDX-License-Identifier: Apache-2.0
"""The small made capture, rendered once."""

import pytest
from small_capture import made_scene

from splatcert.scene.scene import Scene


@pytest.fixture(scope="session")
def scene() -> Scene:
    return made_scene()
