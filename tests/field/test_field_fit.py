# SPDX-License-Identifier: Apache-2.0
"""The residual field against dense linear algebra, and what its fit promises."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from tiny_capture import HEIGHT, WIDTH, dense_fit, dense_view, tiny_capture

from splatcert.config import ConfigError, FieldConfig
from splatcert.field.fit import FieldFit, fit_field
from splatcert.field.normal_equations import FieldError, sweep
from splatcert.field.operator import NormalOperator, PreparedViews
from splatcert.field.solve import Stopping, conjugate_gradients
from splatcert.raster.render import open_view
from splatcert.scene.roles import TrainingView
from splatcert.scene.scene import scene_from_tensors
from splatcert.splats.gaussians import SplatsError
from splatcert.splats.harmonics import SH_CONSTANT

EXACT = FieldConfig(tolerance=1e-6, progress=0.0, max_steps=500)


def relative(ours, truth) -> float:
    return float((ours.double() - truth).norm() / truth.norm())


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_the_field_solves_the_dense_normal_equations(degree, masked):
    capture = tiny_capture(count=130 if degree < 2 else 70, masked=masked)
    fit = fit_field(capture.splats, capture.training, replace(EXACT, degree=degree))
    views = [dense_view(capture.splats, view) for view in capture.training]
    truth, tau = dense_fit(views, degree, EXACT.ridge, fit.field.prior)
    assert fit.field.trace.converged
    assert fit.field.coefficients.shape == (len(capture.splats), (degree + 1) ** 2)
    assert fit.field.ridge == pytest.approx(tau, rel=1e-5)
    assert relative(fit.field.coefficients, truth) < 1e-4


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_back_ends_agree(backend):
    capture = tiny_capture(count=40, views=2, masked=True)
    splats = capture.splats.to(torch.float64) if backend == "reference" else capture.splats
    fit = fit_field(splats, capture.training, EXACT, backend=backend, background=(0.1, 0.5, 0.9))
    views = [dense_view(capture.splats, v, (0.1, 0.5, 0.9)) for v in capture.training]
    truth, _ = dense_fit(views, 2, EXACT.ridge, fit.field.prior)
    assert relative(fit.field.coefficients, truth) < 1e-4
    exposure = sum(v.weights.sum(0) for v in views)
    assert relative(fit.support.total.exposure, exposure) < 1e-5


def test_the_prior_is_the_quantile_of_counted_residuals():
    capture = tiny_capture(masked=True)
    config = FieldConfig(prior_quantile=0.9, max_steps=1)
    fit = fit_field(capture.splats, capture.training, config)
    views = [dense_view(capture.splats, view) for view in capture.training]
    pixels = torch.cat([v.residual[v.counted > 0] for v in views])
    assert fit.field.prior == pytest.approx(float(pixels.quantile(0.9)), abs=1e-3)
    assert float((pixels <= fit.field.prior + 1e-6).double().mean()) >= 0.9


def test_psnr_is_that_of_the_counted_pixels():
    capture = tiny_capture(masked=True)
    fit = fit_field(capture.splats, capture.training, FieldConfig(max_steps=1))
    truth = [dense_view(capture.splats, view).squared_error for view in capture.training]
    assert np.allclose(fit.psnr, -10 * np.log10(truth), atol=1e-3)


@pytest.mark.parametrize("masked", [False, True])
def test_support_sums_equal_brute_force(masked):
    capture = tiny_capture(masked=masked)
    fit = fit_field(capture.splats, capture.training, FieldConfig(max_steps=1, folds=3))
    views = [dense_view(capture.splats, view) for view in capture.training]
    for fold in range(3):
        mine = views[fold::3]
        share = fit.support.folds[fold]
        assert relative(share.exposure, sum(v.weights.sum(0) for v in mine)) < 1e-5
        direction = sum(v.weights.sum(0)[:, None] * v.d for v in mine)
        assert relative(share.direction, direction) < 1e-5
        assert relative(share.error, sum(v.weights.T @ v.residual for v in mine)) < 1e-4


def test_folds_follow_the_names_and_not_the_order_given():
    capture = tiny_capture(views=5)
    config = FieldConfig(max_steps=1, folds=2)
    straight = fit_field(capture.splats, capture.training, config)
    turned = fit_field(capture.splats, capture.training[::-1], config)
    for ours, theirs in zip(straight.support.folds, turned.support.folds, strict=True):
        assert torch.allclose(ours.exposure, theirs.exposure, rtol=1e-5)
    assert np.allclose(straight.psnr, turned.psnr[::-1])


def test_a_gaussian_that_no_view_draws_keeps_the_prior():
    capture = tiny_capture()
    fit = fit_field(capture.splats, capture.training)
    assert fit.support.total.exposure[0] == 0
    assert fit.field.coefficients[0, 0] == pytest.approx(fit.field.prior / SH_CONSTANT)
    assert not fit.field.coefficients[0, 1:].any()


def test_a_huge_ridge_gives_the_constant_prior_everywhere():
    capture = tiny_capture()
    fit = fit_field(capture.splats, capture.training, replace(EXACT, ridge=1e9))
    view = open_view(capture.splats, capture.training[0].camera)
    alpha = view.composite(torch.ones(len(capture.splats), 1))[..., 0]
    shown = view.composite(view.field_values(fit.field.coefficients)[:, None])[..., 0]
    assert torch.allclose(shown, fit.field.prior * alpha, atol=1e-5)


def test_the_objective_falls_at_every_step_and_is_what_it_says():
    capture = tiny_capture()
    fit = fit_field(capture.splats, capture.training, replace(EXACT, max_steps=12))
    trace, field = fit.field.trace, fit.field
    assert all(a > b for a, b in pairwise(trace.objective))
    assert trace.relative_residuals[-1] < trace.relative_residuals[0] == trace.objective[0] == 1

    def value(coefficients):
        apart = coefficients.double().clone()
        apart[:, 0] -= field.prior / SH_CONSTANT
        total = field.ridge * float(apart.square().sum())
        for view in map(lambda v: dense_view(capture.splats, v), capture.training):
            total += float(
                (view.matrix(2) @ coefficients.double().reshape(-1) - view.residual).square().sum()
            )
        return total

    start = torch.zeros_like(field.coefficients)
    start[:, 0] = field.prior / SH_CONSTANT
    assert trace.objective[-1] == pytest.approx(value(field.coefficients) / value(start), rel=1e-4)


def test_preconditioning_needs_at_most_half_the_steps_of_plain_conjugate_gradients():
    capture = tiny_capture(count=400)
    stop = Stopping(tolerance=1e-3, progress=0.0, max_steps=500)
    fit = fit_field(capture.splats, capture.training, FieldConfig(progress=0.0, max_steps=500))
    views = PreparedViews(
        capture.splats, [v.camera for v in capture.training], backend="cpu", limit=1 << 28
    )
    equations = sweep(views, capture.training, degree=2, folds=5, background=(0.0, 0.0, 0.0))
    normal = NormalOperator(views, lambda _: None)
    _, plain = conjugate_gradients(
        lambda c: normal(c) + fit.field.ridge * c,
        equations.right_hand_side(fit.field.prior),
        torch.clone,
        stop,
        start=equations.misfit(fit.field.prior),
    )
    assert fit.field.trace.converged and plain.converged
    assert 2 * fit.field.trace.steps <= plain.steps


def same(a: FieldFit, b: FieldFit) -> bool:
    return (
        torch.equal(a.field.coefficients, b.field.coefficients)
        and torch.equal(a.support.sums, b.support.sums)
        and a.field.trace == b.field.trace
        and np.array_equal(a.psnr, b.psnr)
    )


def test_same_bits_for_any_number_of_threads_and_any_cache(threads):
    capture = tiny_capture(count=2_000, views=4, masked=True)
    before = torch.get_num_threads()
    threads(1)
    first = fit_field(capture.splats, capture.training)
    try:
        for native_threads, torch_threads, cache in ((2, 1, 1_500), (3, 2, 1_500), (2, 2, 0)):
            threads(native_threads)
            torch.set_num_threads(torch_threads)
            again = fit_field(capture.splats, capture.training, FieldConfig(cache_mib=cache))
            assert same(first, again)
            assert torch.get_num_threads() == torch_threads
    finally:
        torch.set_num_threads(before)


def test_a_fit_that_ran_out_of_steps_says_so():
    capture = tiny_capture()
    trace = fit_field(capture.splats, capture.training, replace(EXACT, max_steps=3)).field.trace
    assert (trace.steps, trace.reason, trace.converged) == (3, "steps", False)
    assert trace.true_residual == pytest.approx(trace.relative_residuals[-1], rel=1e-3)
    assert "not converged after 3 steps" in trace.sentence()


def test_a_fit_ends_when_steps_gain_too_little():
    capture = tiny_capture()
    config = FieldConfig(tolerance=1e-9, progress=1e-2, max_steps=100)
    trace = fit_field(capture.splats, capture.training, config).field.trace
    gains = [a - b for a, b in pairwise(trace.objective)]
    assert trace.reason == "progress" and not trace.converged
    assert max(gains[-2:]) < 1e-2 * sum(gains)
    assert trace.steps < 30


def test_reports_come_in_order():
    capture = tiny_capture(views=3)
    seen = []
    fit_field(
        capture.splats,
        capture.training,
        FieldConfig(max_steps=2),
        report=lambda *args: seen.append(args),
    )
    assert seen == [("sweep", k, 3) for k in (1, 2, 3)] + [("fit", k, 2) for k in (1, 2)]


def test_a_perfect_model_gives_a_field_and_infinite_psnr():
    capture = tiny_capture(views=3)
    black = replace(capture.splats, sh=torch.full_like(capture.splats.sh, 0.0))
    black.sh[:, 0] = -10
    photos = {v.name: torch.zeros(HEIGHT, WIDTH, 3) for v in capture.training}
    cameras = {v.name: v.camera for v in capture.training}
    fit = fit_field(black, tuple(scene_from_tensors(cameras, photos).training))
    assert np.isinf(fit.psnr).all()
    assert fit.field.prior <= 1e-4 and fit.field.coefficients.isfinite().all()


def test_views_of_another_scene_are_refused():
    capture = tiny_capture(views=2)
    away = replace(capture.splats, means=capture.splats.means + 1e4)
    with pytest.raises(FieldError, match="none of the 130 Gaussians is visible in any of the 2 "):
        fit_field(away, capture.training)


def test_bad_input_is_refused_by_name():
    capture = tiny_capture(views=2)
    with pytest.raises(FieldError, match="no training views"):
        fit_field(capture.splats, ())
    broken = replace(capture.splats, means=capture.splats.means.clone())
    broken.means[3, 1] = torch.nan
    with pytest.raises(SplatsError, match="means: 1 of 130 Gaussians are not finite"):
        fit_field(broken, capture.training)
    first = capture.training[0]
    smaller = TrainingView(first.name, first.camera.resized(20, 10), first.source)
    with pytest.raises(FieldError, match=f"photo of '00.png' has {WIDTH} x {HEIGHT} pixels"):
        fit_field(capture.splats, (smaller,))
    with pytest.raises(TypeError, match="labels of a TrainingView are required"):
        fit_field(capture.splats, (first.query(),))  # type: ignore[arg-type]


def test_masks_that_leave_out_everything_are_refused():
    capture = tiny_capture(views=2)
    nothing = {name: torch.zeros(HEIGHT, WIDTH, dtype=torch.bool) for name in capture.names}
    cameras = {v.name: v.camera for v in capture.training}
    photos = {v.name: v.image() for v in capture.training}
    one_empty = scene_from_tensors(cameras, photos, masks={"00.png": nothing["00.png"]})
    assert np.isnan(fit_field(capture.splats, tuple(one_empty.training)).psnr).tolist() == [
        True,
        False,
    ]
    all_empty = scene_from_tensors(cameras, photos, masks=nothing)
    with pytest.raises(FieldError, match="masks exclude all"):
        fit_field(capture.splats, tuple(all_empty.training))


@pytest.mark.parametrize("setting", [{"progress": -0.1}, {"ridge": 0.0}, {"degree": 4}])
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        FieldConfig(**setting)
