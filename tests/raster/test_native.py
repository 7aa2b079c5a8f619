# SPDX-License-Identifier: Apache-2.0
"""The native renderer against the float64 reference, and what it promises on its own."""

import multiprocessing
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from discontinuities import near_discontinuity
from splatcert.camera import Camera
from splatcert.raster import native
from splatcert.raster.native import NativeView, render_differentiable
from splatcert.raster.native_autograd import ScreenGradients
from splatcert.raster.reference import ReferenceView
from splatcert.raster.render import render
from splatcert.splats.gaussians import Splats
from splatcert_bench.synthetic.scenes import made_cameras, made_splats, random_splats
from view_kinds import fast_backends, fast_views, ready
from waiting import PATIENCE

PARAMETERS = ("means", "quats", "log_scales", "logit_opacities", "sh")
BAND = 2e-5
"""Relative distance to the 1/255 and stop thresholds within which rounding may decide."""


def make_scene(seed, count=200, size=(61, 45), degree=2, antialiased=False):
    """Random splats in front of an off-centre camera."""
    rng = np.random.default_rng(seed)
    width, height = size
    camera = made_cameras(1, width, height)[0]
    camera = replace(
        camera, cx=camera.cx + rng.uniform(-9, 9), cy=camera.cy + rng.uniform(-9, 9),
        fy=camera.fy * rng.uniform(0.8, 1.25),
    )  # fmt: skip
    splats = random_splats(count, seed=seed, camera=camera, sh_degree=degree)
    return replace(splats, antialiased=antialiased), camera


sizes = st.tuples(st.integers(1, 70), st.integers(1, 50))
scenes = st.builds(
    make_scene,
    seed=st.integers(0, 2**31),
    count=st.integers(1, 300),
    size=sizes,
    degree=st.integers(0, 4),
    antialiased=st.booleans(),
)


def leaves(splats: Splats, dtype: torch.dtype) -> Splats:
    """A copy whose parameters ask for gradients."""
    fresh = {n: getattr(splats, n).detach().to(dtype).clone() for n in PARAMETERS}
    return replace(splats, **{n: t.requires_grad_() for n, t in fresh.items()})


def channels(view, extra):
    """Colour, depth and one, then random columns."""
    ones = torch.ones_like(view.depths()[:, None])
    return torch.cat([view.colours(), view.depths()[:, None], ones, extra.to(ones)], dim=1)


def largest(values: torch.Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0


@fast_views
@settings(max_examples=60)
@given(scene=scenes)
def test_composite_alpha_and_depth_equal_the_reference_away_from_thresholds(kind, scene):
    splats, camera = scene
    fast, exact = kind(splats, camera), ReferenceView(splats.to(torch.float64), camera)
    extra = torch.randn(len(splats), 5, generator=torch.Generator().manual_seed(1))
    ours = fast.composite(channels(fast, extra)).double()
    truth = exact.composite(channels(exact, extra))
    # Depth is compared as it is composited, relative to the scene's size.
    unit = max(1.0, largest(exact.depths()))
    ours[..., 3] /= unit
    truth[..., 3] /= unit
    band = near_discontinuity(exact, BAND)
    assert largest((ours - truth).abs()[~band]) <= 2e-5
    assert band.sum() <= max(3, 0.02 * band.numel())


@settings(max_examples=25)
@given(scenes)
def test_gradients_equal_the_reference(scene):
    splats, camera = scene
    generator = torch.Generator().manual_seed(2)
    pull = torch.randn(camera.height, camera.width, 3, generator=generator)
    backdrop = torch.tensor([0.2, 0.5, 0.9])

    exact = leaves(splats, torch.float64)
    view = ReferenceView(exact, camera)
    pull[near_discontinuity(view, BAND)] = 0
    image = view.composite(channels(view, torch.zeros(len(splats), 0)))
    picture = image[..., :3] + (1 - image[..., 4:]) * backdrop
    (picture * pull).sum().backward()

    fast = leaves(splats, torch.float32)
    ours = render_differentiable(fast, camera, background=backdrop)
    (ours * pull).sum().backward()
    for name in PARAMETERS:
        assert_same_gradient(getattr(fast, name).grad, getattr(exact, name).grad, name)


def assert_same_gradient(ours, truth, name):
    ours, norm = ours.double(), truth.norm()
    if norm < 1e-9:
        assert ours.norm() < 1e-6, name
        return
    assert (ours - truth).norm() <= 1e-3 * norm, name
    assert (ours * truth).sum() >= 0.99999 * norm * ours.norm(), name


@pytest.mark.parametrize("isa", native.available_isas())
@pytest.mark.parametrize("antialiased", [False, True])
def test_every_instruction_set_agrees_with_the_reference(isa, antialiased, chosen_isa):
    chosen_isa(isa)
    splats, camera = make_scene(7, 250, (75, 53), 3, antialiased)
    exact = ReferenceView(splats.to(torch.float64), camera)
    fast = NativeView(splats, camera)
    values = torch.rand(len(splats), 10)
    image = torch.randn(camera.height, camera.width, 10)
    keep = ~near_discontinuity(exact, 1e-4)
    image[~keep] = 0
    error = (fast.composite(values) - exact.composite(values.double())).abs()
    assert largest(error[keep]) <= 2e-5
    truth = exact.scatter(image.double())
    assert (fast.scatter(image) - truth).norm() <= 1e-5 * truth.norm()
    if isa == "scalar":
        return
    ours, theirs = leaves(splats, torch.float32), leaves(splats, torch.float64)
    render_differentiable(ours, camera).mul(image[..., :3]).sum().backward()
    view = ReferenceView(theirs, camera)
    view.composite(view.colours()).mul(image[..., :3]).sum().backward()
    for name in PARAMETERS:
        assert_same_gradient(getattr(ours, name).grad, getattr(theirs, name).grad, name)


@pytest.mark.parametrize("isa", [name for name in native.available_isas() if name != "scalar"])
@pytest.mark.parametrize("degree", range(5))
def test_gradients_of_harmonics_are_added_to_those_of_drawn_rows_alone(isa, degree, chosen_isa):
    chosen_isa(isa)
    splats, camera = make_scene(11, 77, (61, 45), 4)
    geometry = (splats.means, splats.quats, splats.log_scales, splats.logit_opacities)
    view = native.prepare(*geometry, camera)
    pull = torch.randn(len(splats), 3)
    fresh, added = torch.full_like(splats.sh, 7.0), torch.rand_like(splats.sh)
    means = torch.zeros_like(splats.means)
    before = added.clone()
    view.shade_backward(splats.means, splats.sh, degree, pull, False, means.clone(), fresh)
    view.shade_backward(splats.means, splats.sh, degree, pull, True, means, added)
    undrawn = torch.ones(len(splats), dtype=torch.bool)
    undrawn[torch.from_numpy(view.drawn())] = False
    assert undrawn.any() and not undrawn.all()
    assert not fresh[undrawn].any() and not fresh[:, (degree + 1) ** 2 :].any()
    assert fresh[~undrawn, : (degree + 1) ** 2].any(dim=2).all(dim=1).any()
    assert torch.equal(added, before + fresh)


@fast_views
def test_scatter_is_the_adjoint_of_composite_on_200_random_scenes(kind):
    for seed in range(200):
        size = (8 + seed % 70, 8 + 3 * seed % 50)
        splats, camera = make_scene(seed, 30 + seed, size, 0)
        view = kind(splats, camera)
        generator = torch.Generator().manual_seed(seed)
        # Positive entries: the two sums then have no cancellation to hide behind.
        x = torch.rand(len(splats), 3, generator=generator)
        y = torch.rand(camera.height, camera.width, 3, generator=generator)
        left = (view.composite(x).double() * y).sum()
        right = (view.scatter(y).double() * x).sum()
        assert float(left) == pytest.approx(float(right), rel=1e-5), seed


@fast_views
@settings(max_examples=20)
@given(scene=scenes, width=st.integers(1, 12))
def test_normal_is_scatter_after_composite(kind, scene, width):
    splats, camera = scene
    view = kind(splats, camera)
    values = torch.rand(len(splats), width, generator=torch.Generator().manual_seed(0))
    both = view.scatter(view.composite(values))
    assert (view.normal(values) - both).norm() <= 1e-5 * both.norm() + 1e-12


@fast_views
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 9, 10, 16, 17, 32, 40])
def test_channels_are_composited_independently_to_the_bit(kind, width):
    splats, camera = make_scene(11, 300, (90, 66))
    view = kind(splats, camera)
    values = torch.randn(len(splats), width)
    image = torch.randn(camera.height, camera.width, width)
    together, back = view.composite(values), view.scatter(image)
    for column in range(width):
        alone = view.composite(values[:, column : column + 1])
        assert torch.equal(together[..., column : column + 1], alone)
        assert torch.equal(
            back[:, column : column + 1], view.scatter(image[..., column : column + 1])
        )


def everything(splats: Splats, camera: Camera) -> list[torch.Tensor]:
    """All that the renderer can say about one view."""
    view = NativeView(splats, camera)
    values = torch.rand(len(splats), 4, generator=torch.Generator().manual_seed(3))
    image = view.composite(values)
    fresh, screen = leaves(splats, torch.float32), ScreenGradients(want_absolute=True)
    picture = render_differentiable(fresh, camera, screen=screen)
    picture.square().sum().backward()
    assert screen.means2d is not None and screen.absolute is not None
    grads = [getattr(fresh, name).grad for name in PARAMETERS]
    results = [image, view.scatter(image), view.normal(values), picture.detach()]
    return [*results, screen.means2d, screen.absolute, *grads]


def test_same_bits_for_any_number_of_threads_and_from_run_to_run(threads):
    splats, camera = made_splats(20_000), made_cameras(1, 333, 217)[0]
    threads(1)
    first = everything(splats, camera)
    for count in (1, 2, 8, 2):
        threads(count)
        again = everything(splats, camera)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), count


@fast_views
def test_contributors_are_the_weights_of_the_picture(kind):
    splats, camera = make_scene(5, 200, (50, 40))
    view, exact = kind(splats, camera), ReferenceView(splats.to(torch.float64), camera)
    pixels = torch.tensor([[0, 0], [39, 49], [17, 23], [16, 16], [15, 31], [33, 8]])
    ours, truth = view.contributors(pixels), exact.contributors(pixels)
    assert torch.equal(ours.offsets, truth.offsets)
    assert torch.equal(ours.gaussians, truth.gaussians)
    assert (ours.weights - truth.weights).abs().max() <= 1e-6
    alpha = view.composite(torch.ones(len(splats), 1))
    for k, (row, column) in enumerate(pixels.tolist()):
        mine = ours.weights[ours.offsets[k] : ours.offsets[k + 1]]
        assert float(mine.sum()) == pytest.approx(float(alpha[row, column, 0]), abs=1e-6)


@pytest.mark.parametrize("count", [5_000, 300_000])
def test_gaussians_are_blended_from_front_to_back_and_by_number_at_equal_depth(count):
    """With few of them, and with more than are sorted in the cache."""
    rng = np.random.default_rng(0)
    z = rng.integers(200, 1000, count) / 100
    means = torch.from_numpy(rng.uniform(-0.5, 0.5, (count, 3)) * z[:, None]).float()
    means[:, 2] = torch.from_numpy(z)
    splats = Splats(
        means=means,
        quats=torch.tensor([1.0, 0, 0, 0]).repeat(count, 1),
        log_scales=torch.full((count, 3), -8.0),
        logit_opacities=torch.full((count,), -4.5),
        sh=torch.zeros(count, 1, 3),
    )
    camera = Camera(
        world_to_camera=np.eye(4), fx=32.0, fy=32.0, cx=16.0, cy=16.0, width=32, height=32
    )
    view = NativeView(splats, camera)
    assert len(view._prepared.drawn()) > 0.8 * count
    found = view.contributors(torch.tensor([[16, 16], [3, 29]]))
    for first, last in zip(found.offsets[:-1], found.offsets[1:], strict=True):
        behind = found.gaussians[first:last].numpy()
        assert len(behind) > 2
        assert np.array_equal(np.lexsort((behind, z[behind])), np.arange(len(behind)))


@fast_views
def test_contributors_outside_the_image_are_refused(kind):
    view = kind(*make_scene(5, 20, (50, 40)))
    with pytest.raises(ValueError, match="pixel 1 lies outside"):
        view.contributors(torch.tensor([[0, 0], [40, 0]]))


@fast_views
@pytest.mark.parametrize("pixel", [[2**32, 2**32], [-1, 0], [0, 2**40]])
def test_contributors_do_not_wrap_around(kind, pixel):
    view = kind(*make_scene(5, 20, (50, 40)))
    with pytest.raises(ValueError, match="lies outside"):
        view.contributors(torch.tensor([pixel]))
    with pytest.raises(ValueError, match="whole numbers"):
        view.contributors(torch.tensor([[0.5, 0.5]]))


def test_gradients_match_finite_differences_on_a_smooth_scene():
    """Large soft Gaussians that overlap everywhere: no pixel is near a threshold."""
    camera = Camera(world_to_camera=np.eye(4), fx=20, fy=22, cx=8, cy=6, width=16, height=12)
    generator = torch.Generator().manual_seed(4)
    splats = Splats(
        means=torch.tensor([[0.1, 0.0, 3.0], [-0.3, 0.2, 4.0], [0.2, -0.2, 5.0]]),
        quats=torch.randn(3, 4, generator=generator),
        log_scales=torch.tensor([[0.6, 0.3, 0.1], [0.5, 0.8, 0.2], [0.9, 0.4, 0.7]]),
        logit_opacities=torch.tensor([-0.5, 0.3, 0.0]),
        sh=0.3 * torch.randn(3, 9, 3, generator=generator),
    )
    pull = torch.randn(12, 16, 3, generator=generator)
    fresh = leaves(splats, torch.float32)
    render_differentiable(fresh, camera).mul(pull).sum().backward()
    for name in PARAMETERS:
        direction = torch.randn(getattr(splats, name).shape, generator=generator).double()
        direction /= direction.norm()
        slope = float((getattr(fresh, name).grad.double() * direction).sum())
        values = []
        for sign in (1, -1):
            moved = splats.to(torch.float64)
            moved = replace(moved, **{name: getattr(moved, name) + sign * 1e-5 * direction})
            view = ReferenceView(moved, camera)
            values.append(float((view.composite(view.colours()) * pull).sum()))
        assert slope == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-3, abs=1e-4), name


def test_screen_gradients_are_those_of_the_projected_means():
    splats, camera = make_scene(9, 25, (12, 9), 0)
    fresh, screen = leaves(splats, torch.float32), ScreenGradients(want_absolute=True)
    pull = torch.randn(9, 12, 3)
    render_differentiable(fresh, camera, screen=screen).mul(pull).sum().backward()

    view = ReferenceView(splats.to(torch.float64), camera)
    centres = view.footprints.centres.clone().requires_grad_()
    moved = replace(view.footprints, centres=centres)
    weights = moved.weights(view.pixels())
    per_pixel = (weights @ view.colours()[view.order]) * pull.reshape(-1, 3).double()
    plain, absolute = torch.zeros_like(centres), torch.zeros_like(centres)
    for value in per_pixel.sum(1):
        (grad,) = torch.autograd.grad(value, centres, retain_graph=True)
        plain += grad
        absolute += grad.abs()
    assert screen.means2d is not None and screen.absolute is not None
    assert_same_gradient(screen.means2d[view.order], plain, "means2d")
    assert_same_gradient(screen.absolute[view.order], absolute, "absolute")


def one_gaussian(**changes) -> Splats:
    """A soft white ball three units in front of the camera."""
    values = {
        "means": torch.tensor([[0.0, 0.0, 3.0]]),
        "quats": torch.tensor([[1.0, 0.0, 0.0, 0.0]]),
        "log_scales": torch.full((1, 3), -1.0),
        "logit_opacities": torch.tensor([2.0]),
        "sh": torch.ones(1, 1, 3),
    }
    return Splats(
        **{k: torch.as_tensor(v, dtype=torch.float32) for k, v in (values | changes).items()}
    )


CAMERA = Camera(world_to_camera=np.eye(4), fx=30, fy=30, cx=16, cy=12, width=32, height=24)


@pytest.mark.parametrize(
    "changes",
    [
        {"means": [[0.0, 0.0, 0.0]]},
        {"means": [[0.0, 0.0, -3.0]]},
        {"means": [[0.0, 0.0, 1e8]]},
        {"means": [[1e8, 0.0, 1.0]]},
        {"means": [[float("nan"), 0.0, 3.0]]},
        {"means": [[0.0, float("inf"), 3.0]]},
        {"quats": [[0.0, 0.0, 0.0, 0.0]]},
        {"quats": [[float("nan"), 0.0, 0.0, 1.0]]},
        {"log_scales": [[float("nan"), 0.0, 0.0]]},
        {"log_scales": [[200.0, 200.0, 200.0]]},
        {"log_scales": [[float("inf"), 0.0, 0.0]]},
        {"log_scales": [[-200.0, -200.0, -200.0]]},
        {"log_scales": [[float("-inf")] * 3]},
        {"logit_opacities": [float("nan")]},
        {"logit_opacities": [float("inf")]},
        {"logit_opacities": [float("-inf")]},
        {"means": [[0.0, 0.0, 0.0100001]], "log_scales": [[5.0, 5.0, 5.0]]},
    ],
)
@pytest.mark.parametrize("antialiased", [False, True])
@fast_backends
def test_poison_values_never_reach_a_picture(changes, antialiased, backend):
    splats = replace(one_gaussian(**changes), antialiased=antialiased)
    picture = render(splats, CAMERA, backend=ready(backend))
    assert picture.rgb.isfinite().all()
    assert picture.alpha.isfinite().all() and picture.depth.isfinite().all()
    if backend == "gpu":  # has no gradients
        return
    fresh = leaves(splats, torch.float32)
    render_differentiable(fresh, CAMERA).sum().backward()
    if picture.alpha.any():
        assert all(getattr(fresh, n).grad.isfinite().all() for n in PARAMETERS)


@fast_backends
def test_no_gaussians_make_the_background(backend):
    empty = one_gaussian()[torch.zeros(0, dtype=torch.long)]
    picture = render(empty, CAMERA, background=(0.1, 0.2, 0.3), backend=ready(backend))
    assert torch.allclose(picture.rgb, torch.tensor([0.1, 0.2, 0.3]).expand(24, 32, 3))
    assert not picture.alpha.any() and not picture.depth.any()


@fast_backends
def test_full_opacity_is_capped_at_099(backend):
    splats = one_gaussian(logit_opacities=[float("inf")], log_scales=[[3.0] * 3])
    alpha = render(splats, CAMERA, backend=ready(backend)).alpha
    assert float(alpha.max()) == pytest.approx(0.99, abs=1e-6)


@fast_backends
def test_one_pixel(backend):
    camera = replace(CAMERA, cx=0.5, cy=0.5, width=1, height=1)
    picture = render(one_gaussian(), camera, backend=ready(backend))
    expected = torch.sigmoid(torch.tensor(2.0))
    assert float(picture.alpha) == pytest.approx(float(expected), abs=1e-6)
    assert float(picture.depth) == pytest.approx(3.0, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: v.composite(torch.zeros(2, 3)), r"values has shape \[2, 3\], expected \[1, 3\]"),
        (lambda v: v.scatter(torch.zeros(3, 3, 3)), r"image has shape \[3, 3, 3\]"),
        (lambda v: v.composite(torch.zeros(1, 0)), "between 1 and 4096 channels"),
    ],
)
def test_wrong_shapes_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call(NativeView(one_gaussian(), CAMERA))


def test_unknown_instruction_set_is_refused():
    with pytest.raises(ValueError, match="cannot run 'mmx'"):
        native.set_isa("mmx")


def _render_in_child(queue) -> None:
    queue.put(float(render(made_splats(2_000), made_cameras(1, 64, 48)[0]).rgb.sum()))


def test_threads_survive_a_fork():
    before = float(render(made_splats(2_000), made_cameras(1, 64, 48)[0]).rgb.sum())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_render_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=PATIENCE) == before
    child.join(timeout=PATIENCE)
    assert child.exitcode == 0


def test_fewer_threads_than_the_pool_has_are_safe(threads, monkeypatch):
    """Scratch memory is sized by the wanted threads, the pool may still have more."""
    splats, camera = made_splats(3_000), made_cameras(1, 160, 120)[0]
    values = torch.rand(len(splats), 3)
    threads(0)
    monkeypatch.setenv("SPLATCERT_NUM_THREADS", "8")
    view = NativeView(splats, camera)
    first = view.composite(values)
    monkeypatch.setenv("SPLATCERT_NUM_THREADS", "2")
    assert all(torch.equal(view.composite(values), first) for _ in range(20))
