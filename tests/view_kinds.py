# SPDX-License-Identifier: Apache-2.0
"""The fast back ends, for tests of what they have in common."""

from __future__ import annotations

import pytest

from splatcert.camera import Camera
from splatcert.raster.native import NativeView
from splatcert.raster.render import Backend, open_view, unavailable
from splatcert.raster.view import View
from splatcert.splats.gaussians import Splats


def ready(backend: Backend) -> Backend:
    """This back end; where it cannot run, the test is skipped."""
    if reason := unavailable(backend):
        pytest.skip(reason)
    return backend


def gpu_view(splats: Splats, camera: Camera) -> View:
    """A view of the back end `gpu`."""
    return open_view(splats, camera, ready("gpu"))


fast_backends = pytest.mark.parametrize("backend", ["cpu", "gpu"])


fast_views = pytest.mark.parametrize(
    "kind", [pytest.param(NativeView, id="cpu"), pytest.param(gpu_view, id="gpu")]
)
