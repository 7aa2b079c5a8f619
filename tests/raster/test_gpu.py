# SPDX-License-Identifier: Apache-2.0
"""The `gpu` back end on whatever WebGPU device there is; CI has one in software."""

from __future__ import annotations

import sys

import pytest
import torch

from splatcert.raster.render import BACKENDS, BackendError, open_view, render, unavailable
from splatcert_bench.synthetic.scenes import made_cameras, random_splats

device = pytest.mark.skipif(unavailable("gpu") is not None, reason=str(unavailable("gpu")))


@device
def test_a_picture_is_that_of_the_reference():
    camera = made_cameras(1, 61, 45)[0]
    splats = random_splats(200, seed=1, camera=camera)
    ours = render(splats, camera, backend="gpu").rgb
    truth = render(splats.to(torch.float64), camera, backend="reference").rgb
    assert (ours - truth).abs().max() <= 2e-5


def test_the_extra_is_named_where_wgpu_is_missing(monkeypatch):
    from splatcert.raster.gpu import device

    monkeypatch.setitem(sys.modules, "wgpu", None)
    device.open_device.cache_clear()
    device._adapter.cache_clear()
    camera = made_cameras(1, 8, 8)[0]
    with pytest.raises(BackendError, match=r"pip install 'splatcert\[gpu\]'"):
        open_view(random_splats(3, camera=camera), camera, "gpu")
    assert "gpu" in BACKENDS and "not installed" in str(unavailable("gpu"))
