# SPDX-License-Identifier: Apache-2.0
"""The reference renderer against hand computation, its own adjoint, and its symmetries."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from discontinuities import near_discontinuity
from splatcert.camera import Camera
from splatcert.raster import reference
from splatcert.raster.reference import (
    ALPHA_CAP,
    ReferenceView,
    project,
    renderer_identity,
)
from splatcert.raster.render import open_view, render
from splatcert.raster.view import View
from splatcert.splats.gaussians import Splats
from splatcert_bench.synthetic.scenes import made_cameras, made_splats, random_splats

DOUBLE = torch.float64
SH_CONSTANT = 0.28209479177387814


def straight_camera(width: int = 11, height: int = 9, focal: float = 100.0) -> Camera:
    """At the origin along +z; the axis passes through the centre of pixel (row 4, column 5)."""
    return Camera(
        world_to_camera=np.eye(4),
        fx=focal,
        fy=focal,
        cx=5.5,
        cy=4.5,
        width=width,
        height=height,
    )


def blobs(
    positions: list[tuple[float, float, float]],
    scale: float,
    opacities: list[float],
    colours: list[tuple[float, float, float]] | None = None,
) -> Splats:
    """Round Gaussians of one size."""
    count = len(positions)
    rgb = torch.tensor(colours or [(1.0, 1.0, 1.0)] * count, dtype=DOUBLE)
    return Splats(
        means=torch.tensor(positions, dtype=DOUBLE),
        quats=torch.tensor([[1.0, 0, 0, 0]] * count, dtype=DOUBLE),
        log_scales=torch.full((count, 3), log(scale), dtype=DOUBLE),
        logit_opacities=torch.tensor(opacities, dtype=DOUBLE).logit(),
        sh=((rgb - 0.5) / SH_CONSTANT)[:, None],
    )


def weights_at(splats: Splats, row: int = 4, column: int = 5) -> Tensor:
    """Weight of each Gaussian at one pixel of the straight camera, [N]."""
    image = torch.zeros(9, 11, 1, dtype=DOUBLE)
    image[row, column] = 1
    return ReferenceView(splats, straight_camera()).scatter(image)[:, 0]


SCENES = {
    "random": lambda: random_splats(120, seed=3, camera=made_cameras(1, 40, 30)[0]),
    "thin": lambda: made_splats(400, seed=5),
    "antialiased": lambda: replace(made_splats(300, seed=6), antialiased=True),
    "behind": lambda: random_splats(60, seed=8),
    "empty": lambda: random_splats(0, seed=0),
}


@pytest.fixture(params=SCENES)
def view(request: pytest.FixtureRequest) -> ReferenceView:
    return ReferenceView(SCENES[request.param]().to(DOUBLE), made_cameras(1, 40, 30)[0])


def random_pair(view: ReferenceView, channels: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(len(view.splats), channels, dtype=DOUBLE, generator=generator)
    shape = (view.camera.height, view.camera.width, channels)
    return values, torch.randn(shape, dtype=DOUBLE, generator=generator)


def test_scatter_is_the_adjoint_of_composite(view):
    values, image = random_pair(view, channels=4)
    left, right = view.composite(values) * image, values * view.scatter(image)
    assert (left.sum() - right.sum()).abs() <= 1e-12 * left.abs().sum()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(0, 60), antialiased=st.booleans())
def test_adjoint_holds_for_any_scene(seed, count, antialiased):
    camera = made_cameras(3, 23, 17)[seed % 3]
    splats = replace(random_splats(count, seed=seed, camera=camera), antialiased=antialiased)
    view = ReferenceView(splats.to(DOUBLE), camera)
    values, image = random_pair(view, channels=2, seed=seed)
    left, right = view.composite(values) * image, values * view.scatter(image)
    assert (left.sum() - right.sum()).abs() <= 1e-12 * left.abs().sum()


def test_normal_is_scatter_after_composite(view):
    values, _ = random_pair(view, channels=3)
    torch.testing.assert_close(
        view.normal(values), view.scatter(view.composite(values)), rtol=1e-12, atol=1e-12
    )


def test_weights_lie_between_zero_and_one_and_add_to_at_most_one(view):
    weights = view.footprints.weights(view.pixels())
    assert (weights >= 0).all() and (weights <= 1).all()
    assert (weights.sum(1) <= 1 - reference.STOP_TRANSMITTANCE).all()


def test_view_satisfies_the_protocol(view):
    assert isinstance(view, View)
    assert isinstance(open_view(view.splats, view.camera, "reference"), ReferenceView)


def test_two_gaussians_by_hand():
    splats = blobs([(0, 0, 2), (0.02, 0, 4)], 0.01, [0.6, 0.8], [(1.0, 0.5, 0), (0, 0.25, 1.0)])
    # Depth 2: 0.01 m is 0.5 px; depth 4: 0.25 px, and 0.02 m aside is 0.5 px.
    near = 0.6
    # The second is tilted against its ray: xx = (f/z)^2 s^2 (1 + (x/z)^2), yy likewise with y.
    xx = 0.25**2 * (1 + 0.005**2) + 0.3
    far = 0.8 * exp(-0.5 * 0.5**2 / xx)
    expected = [near, far * (1 - near)]
    assert weights_at(splats).tolist() == pytest.approx(expected, rel=1e-13)

    picture = render(splats, straight_camera(), background=(0, 0, 1), backend="reference")
    left = (1 - near) * (1 - far)
    assert picture.alpha[4, 5].item() == pytest.approx(1 - left, rel=1e-13)
    rgb = [expected[0], 0.5 * expected[0] + 0.25 * expected[1], expected[1] + left]
    assert picture.rgb[4, 5].tolist() == pytest.approx(rgb, rel=1e-13)
    depth = (2 * expected[0] + 4 * expected[1]) / (1 - left)
    assert picture.depth[4, 5].item() == pytest.approx(depth, rel=1e-13)


def test_alpha_below_its_floor_is_skipped():
    one_column_aside = exp(-0.5 / 0.55)  # a 0.5 px Gaussian after the low-pass filter
    for factor, shown in ((1 + 1e-9, True), (1 - 1e-9, False)):
        opacity = factor / 255 / one_column_aside
        weights = weights_at(blobs([(0, 0, 2)], 0.01, [opacity]), column=6)
        assert bool(weights[0] > 0) is shown


def test_opacity_below_the_floor_is_not_drawn():
    view = ReferenceView(blobs([(0, 0, 2), (0, 0, 3)], 0.01, [0.0039, 0.004]), straight_camera())
    assert view.depths().tolist() == [0, 3]


def test_pixel_stops_before_the_gaussian_that_reaches_the_threshold():
    stack = blobs([(0, 0, z) for z in (2, 3, 4, 5)], 0.01, [0.9, 0.9, 0.989, 0.9])
    # T after them: 0.1, 0.01, 1.1e-4, and 1.1e-5, which is too little.
    expected = [0.9, 0.09, 0.00989, 0]
    assert weights_at(stack).tolist() == pytest.approx(expected, rel=1e-12)
    stack = blobs([(0, 0, z) for z in (2, 3, 4, 5)], 0.01, [0.9, 0.9, 0.9901, 0.1])
    assert weights_at(stack)[2:].tolist() == [0, 0]  # the faint last one is not reached


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_second_capped_gaussian_ends_a_pixel_in_every_precision(dtype):
    solid = blobs([(0, 0, 2), (0, 0, 3)], 0.01, [0.999, 0.999]).to(dtype)
    image = torch.zeros(9, 11, 1, dtype=dtype)
    image[4, 5] = 1
    weights = ReferenceView(solid, straight_camera()).scatter(image)[:, 0]
    assert weights.tolist() == pytest.approx([ALPHA_CAP, 0], rel=1e-7)


def test_gradient_through_the_alpha_cap_is_zero():
    splats = blobs([(0, 0, 2)], 0.01, [0.995])
    splats.logit_opacities.requires_grad_()
    weights = ReferenceView(splats, straight_camera()).composite(torch.ones(1, 1, dtype=DOUBLE))
    (gradient,) = torch.autograd.grad(weights[4, 5, 0], splats.logit_opacities, retain_graph=True)
    assert gradient.item() == 0
    (gradient,) = torch.autograd.grad(weights[4, 6, 0], splats.logit_opacities)
    assert gradient.item() > 0


def test_depth_orders_and_index_breaks_ties():
    splats = blobs([(0, 0, 3), (0, 0, 2), (0, 0, 3), (0, 0, 2)], 0.01, [0.5] * 4)
    assert ReferenceView(splats, straight_camera()).order.tolist() == [1, 3, 0, 2]
    assert weights_at(splats).tolist() == pytest.approx([0.125, 0.5, 0.0625, 0.25])


def test_what_cannot_be_projected_is_not_drawn_and_poisons_nothing():
    splats = blobs([(0, 0, z) for z in (2, 0.01, 0, -1, 2, 2, 2)], 0.01, [0.5] * 7)
    splats.quats[4] = 0
    splats.log_scales[5] = 800
    splats.means[6] = torch.nan
    for name in ("means", "quats", "log_scales", "logit_opacities", "sh"):
        getattr(splats, name).requires_grad_()
    view = ReferenceView(splats, straight_camera())
    assert view.order.tolist() == [0]
    view.composite(view.colours() + view.depths()[:, None]).square().sum().backward()
    for name in ("means", "quats", "log_scales", "logit_opacities", "sh"):
        gradient = getattr(splats, name).grad
        assert gradient.isfinite().all(), name
        assert (gradient[1:] == 0).all(), name


def test_rows_of_gaussians_that_are_not_drawn_are_zero(view):
    hidden = torch.ones(len(view.splats), dtype=torch.bool)
    hidden[view.order] = False
    _, image = random_pair(view, channels=2)
    for rows in (view.colours(), view.depths()[:, None], view.scatter(image)):
        assert (rows[hidden] == 0).all()
    assert (view.depths()[view.order] > reference.NEAR_PLANE).all()


def test_leaving_gaussians_out_changes_no_pixel(view):
    everything = project(view.splats, view.camera)
    ahead = (everything.depths > reference.NEAR_PLANE).nonzero()[:, 0]
    ahead = ahead[everything.depths[ahead].argsort(stable=True)]
    dense = project(view.splats[ahead], view.camera).weights(view.pixels())
    alpha = view.composite(torch.ones(len(view.splats), 1, dtype=DOUBLE))
    torch.testing.assert_close(dense.sum(1), alpha.flatten(), rtol=1e-12, atol=1e-15)


def test_antialiasing_keeps_the_light_of_small_gaussians():
    splats = blobs([(0, 0, 2)], 0.002, [0.9])
    variance = (50 * 0.002) ** 2
    for antialiased, factor in ((False, 1.0), (True, variance / (variance + 0.3))):
        weights = weights_at(replace(splats, antialiased=antialiased))
        assert weights.tolist() == pytest.approx([0.9 * factor], rel=1e-12)
    speck = replace(blobs([(0, 0, 2)], 1e-6, [0.9]), antialiased=True)
    assert weights_at(speck).tolist() == pytest.approx([0.9 * sqrt(2.5e-5)], rel=1e-12)


def smooth_scene() -> dict[str, Tensor]:
    """Three broad tilted Gaussians: every pixel is far from every kink and step."""
    generator = torch.Generator().manual_seed(1)
    return {
        "means": torch.tensor(
            [[0.02, -0.01, 1.9], [-0.03, 0.02, 2.4], [0.01, 0.03, 3.1]], dtype=DOUBLE
        ),
        "quats": torch.randn(3, 4, dtype=DOUBLE, generator=generator),
        "log_scales": torch.tensor(
            [[0.15, 0.08, 0.11], [0.2, 0.12, 0.1], [0.3, 0.18, 0.24]], dtype=DOUBLE
        ).log(),
        "logit_opacities": torch.tensor([-0.4, 0.3, 0.9], dtype=DOUBLE),
        "sh": 0.1 * torch.randn(3, 4, 3, dtype=DOUBLE, generator=generator),
    }


@pytest.mark.parametrize("antialiased", [False, True])
def test_gradients_of_every_parameter_pass_gradcheck(antialiased):
    camera = replace(straight_camera(4, 3, focal=20), cx=2.2, cy=1.4)
    parameters = smooth_scene()

    def picture(values: Tensor, *tensors: Tensor) -> Tensor:
        splats = Splats(**dict(zip(parameters, tensors, strict=True)), antialiased=antialiased)
        view = ReferenceView(splats, camera)
        columns = [view.colours(), view.depths()[:, None], values]
        return view.composite(torch.cat(columns, dim=1))

    view = ReferenceView(Splats(**parameters, antialiased=antialiased), camera)
    alphas = view.footprints.alphas(view.pixels())
    assert alphas.min() > 0.01 and alphas.max() < 0.95 and (view.colours() > 0.1).all()
    values = torch.linspace(-1, 1, 3, dtype=DOUBLE)[:, None]
    inputs = [tensor.clone().requires_grad_() for tensor in (values, *parameters.values())]
    assert torch.autograd.gradcheck(picture, inputs, eps=1e-6, atol=1e-7, rtol=1e-6)


def test_gradients_of_scatter_and_normal_pass_gradcheck():
    camera = replace(straight_camera(4, 3, focal=20), cx=2.2, cy=1.4)
    parameters = smooth_scene()
    image = torch.linspace(-1, 1, 12, dtype=DOUBLE).reshape(3, 4, 1)

    def pulled(image: Tensor, means: Tensor) -> Tensor:
        view = ReferenceView(Splats(**{**parameters, "means": means}), camera)
        rows = view.scatter(image)
        return rows + view.normal(rows)

    inputs = [image.requires_grad_(), parameters["means"].clone().requires_grad_()]
    assert torch.autograd.gradcheck(pulled, inputs, eps=1e-6, atol=1e-7, rtol=1e-6)


def test_finite_differences_on_a_made_scene_away_from_the_steps():
    """A step of the picture would show as a difference of order 1/255 over the step size."""
    camera = made_cameras(1, 24, 16)[0]
    splats = made_splats(200, seed=2).to(DOUBLE)
    generator = torch.Generator().manual_seed(4)
    direction = 1e-7 * torch.randn(splats.means.shape, dtype=DOUBLE, generator=generator)
    keep = ~near_discontinuity(ReferenceView(splats, camera), 1e-4)
    target = torch.randn(16, 24, 3, dtype=DOUBLE, generator=generator) * keep[..., None]
    assert keep.double().mean() > 0.95

    def loss(means: Tensor) -> Tensor:
        view = ReferenceView(replace(splats, means=means), camera)
        return (view.composite(view.colours()) * target).sum()

    means = splats.means.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(means), means)
    slope = (loss(splats.means + direction) - loss(splats.means - direction)) / 2
    assert (gradient * direction).sum().item() == pytest.approx(slope.item(), rel=1e-5)


def test_moving_world_and_camera_together_changes_nothing():
    camera = made_cameras(1, 30, 20)[0]
    splats = random_splats(80, seed=11, camera=camera, sh_degree=0).to(DOUBLE)
    half = 0.4
    turn = torch.tensor([np.cos(half), 0.6 * np.sin(half), 0, 0.8 * np.sin(half)], dtype=DOUBLE)
    rotation = reference.rotations(turn[None])[0]
    shift = torch.tensor([3.0, -1.0, 2.0], dtype=DOUBLE)
    w, v = turn[0], turn[1:]
    a, b = splats.quats[:, :1], splats.quats[:, 1:]
    product = [w * a - b @ v[:, None], w * b + a * v + torch.linalg.cross(v.expand_as(b), b)]
    moved = replace(
        splats, means=splats.means @ rotation.T + shift, quats=torch.cat(product, dim=1)
    )
    motion = np.eye(4)
    motion[:3, :3], motion[:3, 3] = rotation.numpy(), shift.numpy()
    elsewhere = replace(camera, world_to_camera=camera.world_to_camera @ np.linalg.inv(motion))

    before = render(splats, camera, backend="reference")
    after = render(moved, elsewhere, backend="reference")
    for name in ("rgb", "alpha", "depth"):
        torch.testing.assert_close(
            getattr(before, name), getattr(after, name), rtol=1e-9, atol=1e-9
        )


def test_quaternion_length_does_not_matter():
    splats = random_splats(40, seed=1, camera=straight_camera()).to(DOUBLE)
    longer = replace(splats, quats=7 * splats.quats)
    torch.testing.assert_close(
        render(splats, straight_camera(), backend="reference").rgb,
        render(longer, straight_camera(), backend="reference").rgb,
        rtol=1e-12,
        atol=1e-12,
    )


def test_cropping_is_a_shift_of_the_principal_point():
    camera = straight_camera()
    splats = blobs([(0, 0, 2), (0.03, 0.02, 3), (-0.02, 0.01, 2.5)], 0.02, [0.5, 0.7, 0.9])
    crop = replace(camera, cx=camera.cx - 3, cy=camera.cy - 2, width=6, height=5)
    whole, part = (render(splats, c, backend="reference").rgb for c in (camera, crop))
    torch.testing.assert_close(whole[2:7, 3:9], part, rtol=1e-12, atol=1e-12)


def test_a_finer_grid_shows_the_same_scene():
    """Averaged back, twice the pixels give the same picture up to the low-pass filter."""
    camera = made_cameras(1, 24, 16)[0]
    splats = made_splats(150, seed=3).to(DOUBLE)
    coarse = render(splats, camera, backend="reference").rgb
    fine = render(splats, camera.resized(48, 32), backend="reference").rgb
    pooled = fine.reshape(16, 2, 24, 2, 3).mean(dim=(1, 3))
    assert (coarse - pooled).abs().mean() < 0.02


def test_order_of_the_file_does_not_matter():
    camera = made_cameras(1, 20, 16)[0]
    splats = random_splats(70, seed=4, camera=camera).to(DOUBLE)
    order = torch.randperm(70, generator=torch.Generator().manual_seed(0))
    image = torch.ones(16, 20, 1, dtype=DOUBLE)
    torch.testing.assert_close(
        ReferenceView(splats, camera).scatter(image)[order],
        ReferenceView(splats[order], camera).scatter(image),
        rtol=1e-12,
        atol=1e-12,
    )


def test_contributors_are_the_rows_of_the_operator(view):
    height, width = view.camera.height, view.camera.width
    pixels = torch.cartesian_prod(torch.arange(height), torch.arange(width))
    listed = view.contributors(pixels)
    values, _ = random_pair(view, channels=2)
    pixel_of = torch.repeat_interleave(torch.arange(len(pixels)), listed.offsets.diff())
    image = torch.zeros(len(pixels), 2, dtype=DOUBLE)
    image.index_add_(0, pixel_of, listed.weights[:, None] * values[listed.gaussians])
    torch.testing.assert_close(image.reshape(height, width, 2), view.composite(values))
    depth = view.depths()[listed.gaussians]
    same = pixel_of[1:] == pixel_of[:-1]
    assert (depth.diff()[same] >= 0).all()
    assert (listed.weights > 0).all()


def test_contributors_of_chosen_pixels_keep_the_order_of_the_request():
    splats = blobs([(0, 0, 2), (0.02, 0, 4)], 0.01, [0.6, 0.8])
    view = ReferenceView(splats, straight_camera())
    listed = view.contributors(torch.tensor([[4, 5], [0, 0], [4, 5]]))
    assert listed.offsets.tolist() == [0, 2, 2, 4]
    assert listed.gaussians.tolist() == [0, 1, 0, 1]
    for wrong in ([[9, 0]], [[0, 11]], [[-1, 0]]):
        with pytest.raises(ValueError, match="inside"):
            view.contributors(torch.tensor(wrong))


def test_wrong_shapes_are_refused():
    view = ReferenceView(blobs([(0, 0, 2)], 0.01, [0.5]), straight_camera())
    with pytest.raises(ValueError, match="expected shape"):
        view.composite(torch.ones(2, 3, dtype=DOUBLE))
    with pytest.raises(ValueError, match="expected shape"):
        view.scatter(torch.ones(11, 9, 3, dtype=DOUBLE))


def test_chunks_change_nothing(monkeypatch):
    camera = made_cameras(1, 20, 16)[0]
    view = ReferenceView(made_splats(100).to(DOUBLE), camera)
    values, image = random_pair(view, channels=3)
    whole = view.composite(values), view.scatter(image), near_discontinuity(view, 1e-2)
    monkeypatch.setattr(reference, "CHUNK", 700)
    assert len(view.chunks()) > 5
    parts = view.composite(values), view.scatter(image), near_discontinuity(view, 1e-2)
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-13)


def test_pixels_near_a_step_are_found():
    camera = straight_camera()
    one_column_aside = exp(-0.5 / 0.55)
    faint = blobs([(0, 0, 2)], 0.01, [(1 + 1e-6) / 255 / one_column_aside])
    band = near_discontinuity(ReferenceView(faint, camera), 1e-5)
    assert band.nonzero().tolist() == [[3, 5], [4, 4], [4, 6], [5, 5]]
    assert not near_discontinuity(ReferenceView(faint, camera), 1e-7).any()

    last = blobs([(0, 0, z) for z in (2, 3, 4)], 0.01, [0.9, 0.9, 0.99 - 1e-8])
    band = near_discontinuity(ReferenceView(last, camera), 1e-5)
    assert band.nonzero().tolist() == [[4, 5]]

    tied = blobs([(0, 0, 2), (0, 0, 2 + 1e-9)], 0.01, [0.5, 0.5])
    assert near_discontinuity(ReferenceView(tied, camera), 1e-9)[4, 5]
    assert not near_discontinuity(ReferenceView(tied, camera), 1e-9, depth_tolerance=0).any()


def test_float32_stays_close_to_float64_away_from_the_steps():
    camera = made_cameras(1, 40, 28)[0]
    splats = made_splats(500)
    exact = ReferenceView(splats.to(DOUBLE), camera)
    rough = ReferenceView(splats, camera)
    assert rough.composite(rough.colours()).dtype == torch.float32
    error = rough.composite(rough.colours()).double() - exact.composite(exact.colours())
    band = near_discontinuity(exact, 1e-3)
    assert band.double().mean() < 0.05
    assert error[~band].abs().max() < 2e-4


def test_identity_names_the_constants():
    identity = renderer_identity()
    assert identity["name"] == "splatcert-reference"
    assert identity["constants"] == {
        "near_plane": 0.01,
        "low_pass": 0.3,
        "alpha_cap": 0.99,
        "alpha_floor": 1 / 255,
        "stop_transmittance": 1e-4,
        "fov_margin": 0.3,
        "compensation_floor": 2.5e-5,
    }
