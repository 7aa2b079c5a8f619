# SPDX-License-Identifier: Apache-2.0
"""A view's plain-torch defaults, its gradients on the CPU, and who may know a back end's class."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import splatcert as sc
from discontinuities import near_discontinuity
from splatcert.raster.native import NativeView
from splatcert.raster.normal_sums import NormalSums
from splatcert.raster.query_maps import Traits
from splatcert.raster.reference import ReferenceView
from splatcert.raster.render import render
from splatcert.raster.view import View
from splatcert.splats.gaussians import Splats
from splatcert_bench.synthetic.scenes import made_cameras, random_splats
from view_kinds import fast_views

SOURCES = Path(__file__).parents[2] / "src"
PARAMETERS = ("means", "quats", "log_scales", "logit_opacities", "sh")
BAND = 2e-5


class LeastView(View):
    """A back end of a stranger: the abstract methods only."""

    def __init__(self, splats: Splats, camera: sc.Camera) -> None:
        self._view = ReferenceView(splats, camera)
        self.splats, self.camera = splats, camera

    def composite(self, values):
        return self._view.composite(values)

    def scatter(self, image):
        return self._view.scatter(image)

    def colours(self):
        return self._view.colours()

    def depths(self):
        return self._view.depths()

    def contributors(self, pixels):
        return self._view.contributors(pixels)


def scene(seed=3, count=150, antialiased=False) -> tuple[Splats, sc.Camera]:
    camera = made_cameras(1, 45, 31)[0]
    splats = random_splats(count, seed=seed, camera=camera, sh_degree=2)
    return replace(splats, antialiased=antialiased), camera


def draw(*shape: int, seed=0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def traits_of(count: int) -> Traits:
    return Traits(
        log_exposure=draw(count),
        spread=draw(count, seed=1),
        residual_summary=draw(count, seed=2),
        direction=draw(count, 3, seed=3) - 0.5,
        coefficients=draw(count, 4, seed=4) - 0.5,
    )


def close(ours: torch.Tensor, truth: torch.Tensor) -> bool:
    return float((ours.double() - truth.double()).norm()) <= 1e-5 * float(truth.double().norm())


def test_a_back_end_without_its_own_passes_is_refused():
    class Half(View):
        def composite(self, values):
            return values

    with pytest.raises(TypeError, match="abstract method"):
        Half()  # type: ignore[abstract]


@fast_views
def test_the_defaults_are_what_the_kernels_compute(kind):
    splats, camera = scene()
    assert not near_discontinuity(ReferenceView(splats.to(torch.float64), camera), 1e-5).any()
    plain, fast = LeastView(splats, camera), kind(splats, camera)
    mask, values = draw(31, 45) > 0.4, draw(len(splats), 3)
    coefficients = draw(len(splats), 9) - 0.5
    assert close(fast.normal(values), plain.normal(values))
    assert close(fast.normal(values, mask), plain.normal(values, mask))
    assert not close(plain.normal(values), plain.normal(values, mask))
    assert torch.equal(fast.count(mask), plain.count(mask))
    assert close(fast.footprint(), plain.footprint())
    drawn = fast.depths() > 0
    assert close(fast.field_values(coefficients)[drawn], plain.field_values(coefficients)[drawn])
    for some in (None, mask):
        ours, theirs = torch.zeros(2, len(splats), 9, dtype=torch.float64)
        fast.field_normal(coefficients, some, ours)
        plain.field_normal(coefficients, some, theirs)
        assert close(ours, theirs)
    assert plain.nbytes == 64 * len(splats) and fast.nbytes > 0


@fast_views
def test_the_default_query_is_that_of_the_kernels(kind):
    splats, camera = scene()
    traits = traits_of(len(splats))
    plain, fast = LeastView(splats, camera), kind(splats, camera)
    drawn = fast.depths() > 0
    assert close(fast.pack(traits)[drawn], plain.pack(traits)[drawn])
    ours, theirs = (view.query(traits, (0.1, 0.4, 0.8), 1e-3) for view in (fast, plain))
    for name in ("center", "field", "maps", "depth"):
        assert close(getattr(ours, name), getattr(theirs, name)), name
    assert ours.moments == pytest.approx(theirs.moments, rel=1e-4)
    assert ours.statistics == pytest.approx(theirs.statistics, rel=1e-4, abs=1e-5)
    assert float(ours.field.min()) >= np.float32(1e-3)
    limits = 0.5, 0.2, 1.0
    assert ours.hardly_shown(*limits) == pytest.approx(theirs.hardly_shown(*limits), abs=2e-3)


@fast_views
def test_the_default_survey_is_that_of_the_kernels(kind):
    splats, camera = scene()
    photo, mask = draw(31, 45, 3), draw(31, 45) > 0.3
    both = [NormalSums.zero(len(splats), 4, 1) for _ in range(2)]
    for each, sums in zip((kind, LeastView), both, strict=True):
        each(splats, camera).survey(photo, mask, (0.2, 0.3, 0.4), sums.of_fold(0))
    for name in ("support", "moments", "blocks", "squares", "energy"):
        assert close(getattr(both[0], name), getattr(both[1], name)), name
    assert both[0].histogram.sum() == both[1].histogram.sum() == mask.sum()


def leaves(splats: Splats, dtype=torch.float32) -> Splats:
    """A copy whose parameters ask for gradients."""
    fresh = {name: getattr(splats, name).detach().to(dtype).clone() for name in PARAMETERS}
    return replace(splats, **{name: t.requires_grad_() for name, t in fresh.items()})


@pytest.mark.parametrize("antialiased", [False, True])
@pytest.mark.parametrize("output", ["rgb", "alpha", "depth"])
def test_render_has_the_gradients_of_the_reference(output, antialiased):
    splats, camera = scene(antialiased=antialiased)
    band = near_discontinuity(ReferenceView(splats.to(torch.float64), camera), BAND)
    gradients = []
    for dtype, backend in ((torch.float32, "cpu"), (torch.float64, "reference")):
        fresh = leaves(splats, dtype)
        picture = render(fresh, camera, background=(0.2, 0.5, 0.9), backend=backend)
        # Where next to nothing was hit, depth is a ratio of two small numbers.
        image = getattr(picture, output)[~band & (picture.alpha > 0.05)]
        pull = draw(*image.shape).to(image) - 0.5
        gradients.append(
            torch.autograd.grad(
                (image * pull).sum(), [getattr(fresh, n) for n in PARAMETERS], allow_unused=True
            )
        )
    for name, ours, truth in zip(PARAMETERS, *gradients, strict=True):
        if name == "sh" and output != "rgb":
            assert not any(g is not None and g.any() for g in (ours, truth))
            continue
        assert (ours.double() - truth).norm() <= 2e-3 * truth.norm() > 0, name


def test_render_has_the_same_bits_with_and_without_gradients():
    splats, camera = scene()
    plain, traced = render(splats, camera), render(leaves(splats), camera)
    with torch.no_grad():
        silent = render(leaves(splats), camera)
    for name in ("rgb", "alpha", "depth"):
        assert torch.equal(getattr(plain, name), getattr(traced, name)), name
        assert getattr(traced, name).requires_grad, name
        assert not getattr(plain, name).requires_grad and not getattr(silent, name).requires_grad


def test_gradients_reach_values_and_keep_the_type_of_the_splats():
    splats, camera = scene()
    values = draw(len(splats), 2).requires_grad_()
    view, pull = NativeView(splats, camera), draw(31, 45, 2, seed=1)
    (view.composite(values) * pull).sum().backward()
    assert values.grad is not None and torch.equal(values.grad, view.scatter(pull))
    double = leaves(splats, torch.float64)
    render(double, camera).rgb.sum().backward()
    assert all(getattr(double, n).grad.dtype == torch.float64 for n in PARAMETERS)


def test_second_derivatives_are_refused_rather_than_wrong():
    splats, camera = scene(count=20)
    fresh = leaves(splats)
    loss = render(fresh, camera).rgb.square().sum()
    (first,) = torch.autograd.grad(loss, fresh.means, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_passes_without_gradients_take_splats_that_ask_for_them():
    splats, camera = scene()
    fresh, photo, mask = leaves(splats), draw(31, 45, 3), draw(31, 45) > 0.3
    found = []
    for each in (splats, fresh):
        view, sums = NativeView(each, camera), NormalSums.zero(len(splats), 4, 1)
        view.survey(photo, mask, (0.0, 0.0, 0.0), sums.of_fold(0))
        query = view.query(traits_of(len(splats)), (0.0, 0.0, 0.0), 1e-3)
        normal = view.normal(draw(len(splats), 2), mask)
        found.append([sums.moments, query.center, query.field, normal, view.footprint()])
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs) and not theirs.requires_grad


def test_a_colour_is_fitted_by_gradient_descent_through_render():
    splats, camera = scene(count=1)
    splats = replace(
        splats,
        means=torch.tensor((camera.centre + 3 * camera.forward)[None], dtype=torch.float32),
        log_scales=torch.zeros(1, 3),
        logit_opacities=torch.tensor([3.0]),
        sh=torch.zeros(1, 1, 3),
    )
    wanted = replace(splats, sh=torch.tensor([[[1.2, -0.7, 0.3]]]))
    target = sc.render(wanted, camera).rgb
    fitted = replace(splats, sh=splats.sh.clone().requires_grad_())
    descent = torch.optim.Adam([fitted.sh], lr=0.05)
    for _ in range(150):
        descent.zero_grad()
        loss = (sc.render(fitted, camera).rgb - target).square().mean()
        loss.backward()
        descent.step()
    torch.testing.assert_close(fitted.sh.detach(), wanted.sh, rtol=0, atol=0.02)


def test_only_raster_knows_the_classes_of_back_ends():
    """Whoever asks which view it has would have to be told of every new back end."""
    named = re.compile(r"\b(NativeView|ReferenceView|CudaView|GpuView)\b")
    found = [
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if named.search(path.read_text(encoding="utf-8"))
    ]
    assert found and all(path.startswith("splatcert/raster/") for path in found), found
