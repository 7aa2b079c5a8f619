# SPDX-License-Identifier: Apache-2.0
"""The `cuda` back end: its Python against a CPU stand-in, its calls against real signatures."""

from __future__ import annotations

import builtins
import inspect
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from discontinuities import near_discontinuity
from splatcert.raster import cuda
from splatcert.raster.cuda import CudaView
from splatcert.raster.gsplat_versions import CHANNELS_BEFORE, CHANNELS_RENEWED, channel_runs
from splatcert.raster.reference import ReferenceView
from splatcert.raster.render import BackendError, open_view, render
from splatcert.raster.view import View
from splatcert_bench.synthetic.scenes import made_cameras, made_splats, random_splats

device = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device: gsplat's kernels cannot run here"
)


def scene(antialiased: bool = False, count: int = 60):
    camera = made_cameras(1, 37, 21)[0]
    splats = random_splats(count, seed=5, camera=camera, sh_degree=2)
    # Alpha stays below 0.99, where gsplat before 1.6 has another cap.
    splats = replace(splats, logit_opacities=splats.logit_opacities.clamp(max=4.0))
    return replace(splats, antialiased=antialiased), camera


def test_padding_reaches_a_compiled_width():
    for compiled in (CHANNELS_BEFORE, CHANNELS_RENEWED):
        for count in range(1, 100):
            runs = channel_runs(count, compiled)
            assert [run.start for run, _ in runs] == list(range(0, count, 32))
            assert runs[-1][0].stop == count
            assert all(width in compiled and width >= run.stop - run.start for run, width in runs)
    assert channel_runs(10, CHANNELS_BEFORE) == [(slice(0, 10), 16)]
    assert channel_runs(6, CHANNELS_BEFORE) == [(slice(0, 6), 8)]
    assert channel_runs(6, CHANNELS_RENEWED) == [(slice(0, 6), 6)]
    assert channel_runs(42, CHANNELS_RENEWED) == [(slice(0, 32), 32), (slice(32, 42), 16)]
    assert channel_runs(0, CHANNELS_RENEWED) == []


@pytest.mark.parametrize("antialiased", [False, True])
def test_every_pass_agrees_with_the_reference(gsplat_on_cpu, antialiased):
    splats, camera = scene(antialiased)
    view, exact = CudaView(splats, camera), ReferenceView(splats, camera)
    assert isinstance(view, View)
    values = torch.randn(60, 10, generator=torch.Generator().manual_seed(0))
    image = torch.randn(21, 37, 10, generator=torch.Generator().manual_seed(1))
    # A step of the picture between two float32 computations would show here.
    assert not near_discontinuity(exact, 1e-5).any()
    for ours, theirs in (
        (view.composite(values), exact.composite(values)),
        (view.scatter(image), exact.scatter(image)),
        (view.normal(values), exact.normal(values)),
        # gsplat also counts as drawn what comes near a pixel and shows in none.
        (view.colours()[exact.order], exact.colours()[exact.order]),
        (view.depths()[exact.order], exact.depths()[exact.order]),
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 6, 7, 32, 33, 45])
def test_any_number_of_channels(gsplat_on_cpu, channels):
    splats, camera = scene(count=25)
    view = CudaView(splats, camera)
    values = torch.randn(25, channels)
    image = view.composite(values)
    assert image.shape == (21, 37, channels)
    torch.testing.assert_close(
        image, ReferenceView(splats, camera).composite(values), rtol=1e-4, atol=1e-5
    )
    left, right = (image * image).sum(), (values * view.scatter(image)).sum()
    torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6)


def test_a_view_is_prepared_once(gsplat_on_cpu):
    splats, camera = scene(count=25)
    view = CudaView(splats, camera)
    for _ in range(3):
        view.normal(view.scatter(view.composite(torch.ones(25, 1))))
    names = [name for name, _ in gsplat_on_cpu.kernels.calls]
    assert names.count("fully_fused_projection") == names.count("isect_tiles") == 1
    assert names.count("rasterize_to_pixels") == 9


def test_composite_is_differentiable_to_the_splats(gsplat_on_cpu):
    splats, camera = scene(antialiased=True, count=25)
    gradients = []
    for kind in (CudaView, ReferenceView):
        leaves = {
            name: getattr(splats, name).clone().requires_grad_()
            for name in ("means", "quats", "log_scales", "logit_opacities", "sh")
        }
        view = kind(replace(splats, **leaves), camera)
        loss = view.composite(torch.cat([view.colours(), view.depths()[:, None]], 1)).square()
        gradients.append(torch.autograd.grad(loss.sum(), list(leaves.values())))
    for ours, theirs in zip(*gradients, strict=True):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3 * float(theirs.abs().max()))


def test_scatter_needs_no_gradient_of_the_caller(gsplat_on_cpu):
    splats, camera = scene(count=25)
    splats.means.requires_grad_()
    view = CudaView(splats, camera)
    with torch.no_grad():
        pulled = view.scatter(torch.ones(21, 37, 1))
    assert not pulled.requires_grad and pulled.sum() > 0
    assert splats.means.grad is None


def test_contributors_agree_with_the_reference(gsplat_on_cpu):
    splats, camera = scene()
    pixels = torch.tensor([[10, 18], [0, 0], [20, 36], [10, 18], [7, 30]])
    ours = CudaView(splats, camera).contributors(pixels)
    theirs = ReferenceView(splats, camera).contributors(pixels)
    assert ours.offsets.tolist() == theirs.offsets.tolist()
    assert ours.gaussians.tolist() == theirs.gaussians.tolist()
    assert ours.gaussians.dtype == ours.offsets.dtype == torch.int64
    torch.testing.assert_close(ours.weights, theirs.weights, rtol=1e-4, atol=1e-6)
    nothing = CudaView(splats, camera).contributors(pixels[:0])
    assert nothing.offsets.tolist() == [0] and len(nothing.gaussians) == 0
    with pytest.raises(ValueError, match="inside"):
        CudaView(splats, camera).contributors(torch.tensor([[21, 0]]))


def test_contributors_without_a_kernel_say_what_to_do(gsplat_on_cpu):
    splats, camera = scene(count=5)
    view = CudaView(splats, camera)
    for name in ("rasterize_contributing_gaussian_ids", "rasterize_to_indices_in_range"):
        gsplat_on_cpu.__dict__.pop(name, None)
    with pytest.raises(BackendError, match="back end 'cpu'"):
        view.contributors(torch.tensor([[0, 0]]))


@pytest.mark.parametrize("count", [0, 4])
def test_nothing_to_see_is_a_black_picture(gsplat_on_cpu, count):
    camera = made_cameras(1, 20, 18)[0]
    behind = random_splats(count, camera=camera)
    behind.means[:] = torch.from_numpy(camera.centre - 3 * camera.forward).float()
    view = CudaView(behind, camera)
    assert (view.composite(torch.ones(count, 3)) == 0).all()
    assert (view.scatter(torch.ones(18, 20, 2)) == torch.zeros(count, 2)).all()
    assert (view.normal(torch.ones(count, 2)) == 0).all()
    assert (view.colours() == 0).all() and (view.depths() == 0).all()
    assert view.contributors(torch.tensor([[3, 4]])).offsets.tolist() == [0, 0]


def test_wrong_shapes_are_refused(gsplat_on_cpu):
    splats, camera = scene(count=5)
    view = CudaView(splats, camera)
    with pytest.raises(ValueError, match="expected"):
        view.composite(torch.ones(6, 3))
    with pytest.raises(ValueError, match="expected"):
        view.scatter(torch.ones(37, 21, 3))


def test_float64_splats_are_rendered_in_float32(gsplat_on_cpu):
    splats, camera = scene(count=5)
    view = CudaView(splats.to(torch.float64), camera)
    assert view.composite(torch.ones(5, 1, dtype=torch.float64)).dtype == torch.float32


@pytest.mark.parametrize("version", ["1.5.3", "1.6.0"])
def test_identity_tells_the_releases_apart(monkeypatch, version):
    monkeypatch.setattr(cuda, "installed_gsplat", lambda: SimpleNamespace(__version__=version))
    identity = cuda.renderer_identity()
    assert (identity["name"], identity["version"]) == ("gsplat", version)
    renewed = version == "1.6.0"
    constants = identity["constants"]
    assert constants["alpha_cap"] == (0.99 if renewed else 0.999)
    assert constants["compensation_floor"] == (2.5e-5 if renewed else 0.0)


def test_missing_gsplat_says_how_to_install_it(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "gsplat":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BackendError, match=r"pip install 'splatcert\[cuda\]'"):
        open_view(*scene(count=3), backend="cuda")


def test_old_gsplat_is_refused(monkeypatch):
    old = SimpleNamespace(__version__="1.4.0")
    monkeypatch.setitem(sys.modules, "gsplat", old)
    with pytest.raises(BackendError, match=r"found 1\.4\.0"):
        cuda.renderer_identity()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is present")
def test_missing_device_says_what_to_do():
    pytest.importorskip("gsplat")
    with pytest.raises(BackendError, match="nvidia-smi"):
        open_view(*scene(count=3), backend="cuda")


def test_calls_fit_the_installed_gsplat(gsplat_on_cpu):
    """The stand-in binds each call already; here every function we rely on must be used."""
    gsplat = pytest.importorskip("gsplat")
    splats, camera = scene(antialiased=True, count=5)
    view = CudaView(splats, camera)
    view.scatter(view.composite(torch.ones(5, 7)))
    view.contributors(torch.tensor([[1, 1]]))
    called = {name for name, _ in gsplat_on_cpu.kernels.calls}
    expected = {
        "fully_fused_projection",
        "isect_tiles",
        "isect_offset_encode",
        "rasterize_to_pixels",
    }
    if gsplat_on_cpu.__version__ == "1.6.0":
        expected |= {
            "rasterize_num_contributing_gaussians",
            "rasterize_contributing_gaussian_ids",
        }
    else:
        expected.add("rasterize_to_indices_in_range")
        for name, arguments in gsplat_on_cpu.kernels.calls:
            inspect.signature(getattr(gsplat, name)).bind(**arguments)
    assert called == expected


@pytest.mark.device
@device
def test_gsplat_agrees_with_the_reference_on_a_device():
    camera = made_cameras(1, 160, 120)[0]
    splats = made_splats(2_000)
    splats = replace(splats, logit_opacities=splats.logit_opacities.clamp(max=4.0))
    exact = ReferenceView(splats.to(torch.float64), camera)
    ours = render(splats, camera, backend="cuda")
    theirs = render(splats.to(torch.float64), camera, backend="reference")
    away = ~near_discontinuity(exact, 1e-3, depth_tolerance=1e-5)
    assert away.double().mean() > 0.8
    for name in ("rgb", "alpha"):
        error = getattr(ours, name).cpu().double() - getattr(theirs, name)
        assert error[away].abs().max() < 1e-3, name


@pytest.mark.device
@device
def test_scatter_is_the_adjoint_of_composite_on_a_device():
    camera = made_cameras(1, 160, 120)[0]
    view = CudaView(made_splats(2_000), camera)
    values = torch.randn(2_000, 10, device="cuda")
    image = torch.randn(120, 160, 10, device="cuda")
    left, right = view.composite(values) * image, values * view.scatter(image)
    assert (left.sum() - right.sum()).abs() <= 1e-4 * left.abs().sum()
    normal, twice = view.normal(values), view.scatter(view.composite(values))
    torch.testing.assert_close(normal, twice, rtol=1e-4, atol=1e-4)
