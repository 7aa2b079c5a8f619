# SPDX-License-Identifier: Apache-2.0
"""Values that no trainer should write: a clean picture, or a refusal that says where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from splatcert.camera import Camera, CameraError
from splatcert.raster import native
from splatcert.raster.render import render
from splatcert.splats.gaussians import Splats, SplatsError
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

NAN, INF = float("nan"), float("inf")
REFUSED = [
    ("means", NAN), ("means", INF), ("quats", NAN), ("quats", 0.0), ("log_scales", NAN),
    ("log_scales", INF), ("log_scales", -INF), ("logit_opacities", NAN), ("sh", NAN), ("sh", -INF),
]  # fmt: skip
DRAWN = [
    ("means", 1e8), ("means", 1e30), ("means", -1e38), ("quats", 1e-18), ("quats", 1e18),
    ("log_scales", -80.0), ("log_scales", 40.0), ("log_scales", 80.0), ("log_scales", 1e30),
    ("log_scales", -1e30), ("logit_opacities", INF), ("logit_opacities", -INF), ("sh", 1e6),
]  # fmt: skip
BACKENDS = ("cpu", "reference")


def poisoned(name: str, value: float, rows: slice = slice(3, 6)) -> Splats:
    splats = made_splats(60, sh_degree=1)
    tensor = getattr(splats, name).clone()
    tensor[rows] = value
    return replace(splats, **{name: tensor})


def camera(width: int = 24, height: int = 16) -> Camera:
    return made_cameras(12, width, height, turn=60)[0]


def assert_finite(splats: Splats, view: Camera, backend: str) -> None:
    picture = render(splats, view, backend=backend)
    for name in ("rgb", "alpha", "depth"):
        assert getattr(picture, name).isfinite().all(), (backend, name)


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_a_refusal_names_the_tensor_how_many_and_the_first(name, value):
    with pytest.raises(SplatsError, match=rf"^{name}: 3 of 60 .* first at index 3\.\n"):
        poisoned(name, value).check_finite()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("antialiased", [False, True])
@pytest.mark.parametrize(("name", "value"), DRAWN)
def test_extreme_values_that_are_accepted_give_a_finite_picture(name, value, antialiased, backend):
    splats = replace(poisoned(name, value), antialiased=antialiased)
    splats.check_finite()
    assert_finite(splats, camera(), backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("offset", [(0, 0, 0), (0, 0, -1), (0, 0, 0.01), (0, 0, 1e8), (1e8, 0, 1)])
def test_a_gaussian_anywhere_from_the_camera_gives_a_finite_picture(offset, backend):
    view, splats = camera(), made_splats(60, sh_degree=1)
    means = splats.means.clone()
    means[0] = torch.tensor(view.centre + view.world_to_camera[:3, :3].T @ np.array(offset))
    assert_finite(replace(splats, means=means), view, backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("size", [(1, 1), (24, 16)])
def test_one_gaussian_or_none_on_any_picture(count, size, backend):
    assert_finite(made_splats(60, sh_degree=1)[:count], camera(*size), backend)


def test_a_picture_of_48_megapixels():
    view = native.NativeView(made_splats(60, sh_degree=1), camera(8000, 6000))
    alpha = view.composite(torch.ones(60, 1))
    assert alpha.shape == (6000, 8000, 1) and 0 <= alpha.min() < alpha.max() <= 1


@pytest.mark.parametrize(("width", "height"), [(10**6, 10**6), (1 << 17, 1), (10**12, 10**12)])
def test_a_picture_beyond_the_limit_is_refused_and_the_limit_named(width, height):
    with pytest.raises(
        CameraError, match=r"the limit is 134217728 pixels \(splatcert.camera.MAX_PIXELS\)"
    ):
        camera(24, 16).resized(width, height)


def test_a_negative_focal_length_is_refused():
    with pytest.raises(CameraError, match="focal lengths must be positive"):
        replace(camera(), fx=-20.0)


@pytest.mark.parametrize("name", ["means", "quats", "log_scales", "logit_opacities", "sh"])
@pytest.mark.parametrize("poison", [("log_scales", 80.0), ("means", 1e30), ("quats", 1e18)])
def test_gradients_stay_finite(name, poison):
    splats = poisoned(*poison)
    tensors = {name: getattr(splats, name).clone().requires_grad_()}
    native.render_differentiable(replace(splats, **tensors), camera()).sum().backward()
    assert tensors[name].grad.isfinite().all()


def test_the_thread_pool_survives_an_exception(threads):
    threads(2)
    splats, view = made_splats(2000, sh_degree=1), camera(200, 150)
    expected = render(splats, view).rgb
    prepared = native.NativeView(splats, view)
    for _ in range(3):
        with pytest.raises(ValueError, match="shape"):
            prepared.composite(torch.zeros(7, 3))
    assert torch.equal(render(splats, view).rgb, expected)
