# SPDX-License-Identifier: Apache-2.0
"""One pass instead of eight: what a query shows, against formulas written out pixel by pixel."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from small_scene import TRAINING, rank, small_camera, small_scene, weights_of

from discontinuities import near_discontinuity
from splatcert import _native
from splatcert.difficulty.descriptor import EPSILON0, FEATURE_NAMES, DescriptorError
from splatcert.difficulty.factor import shrink
from splatcert.field.fit import ResidualField
from splatcert.field.fitted_scene import Query
from splatcert.raster import native
from splatcert.raster.native import NativeView
from splatcert.raster.query_maps import Traits, shrunk, summarise, widened
from splatcert.raster.reference import ReferenceView
from splatcert.raster.render import render
from splatcert.raster.view import View
from splatcert.splats.harmonics import basis

CAMERA = small_camera()
PIXELS = (CAMERA.height, CAMERA.width)


def described(query: Query) -> dict[str, float]:
    return dict(zip(FEATURE_NAMES, query.descriptor.tolist(), strict=True))


def brute_force(observed, camera, background=(0.0, 0.0, 0.0)):
    """Picture, field and the rendered features, from the dense matrix of weights in float64."""
    weights = weights_of(observed, camera)
    splats, support = observed.splats.to(torch.float64), observed.support
    means = splats.means.numpy()
    towards = camera.centre - means
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    view = ReferenceView(splats, camera)
    alpha = weights.sum(1)

    E, D = support.exposure.double().numpy(), support.direction.double().numpy()
    size = np.linalg.norm(D, axis=1)
    seen = size > 0
    cosine = np.clip((towards * D).sum(1) / np.where(seen, size, 1), -1, 1)
    angle = np.where(seen, np.arccos(cosine), np.pi)
    spread = np.where(E > 0, 1 - size / np.where(E > 0, E, 1), 0)
    residual = support.error.double().numpy() / np.where(E > 0, E, 1)
    C = observed.field.coefficients.double()
    degree = round(C.shape[1] ** 0.5) - 1
    g = (C * basis(torch.from_numpy(towards), degree)).sum(1).numpy()

    shown = weights @ view.colours().numpy() + (1 - alpha)[:, None] * np.array(background)
    center = np.clip(shown, 0, 1).reshape(*PIXELS, 3)
    field = np.maximum(weights @ g, EPSILON0)

    def divided(values):
        return weights @ values / np.maximum(alpha, 1e-6)

    light = center @ np.array([0.299, 0.587, 0.114])
    slope = np.hypot(*np.gradient(light))
    depth = divided(view.depths().numpy()) / observed.geometry.extent
    maps = {
        "r_alpha": alpha,
        "r_grad": slope,
        "sup_logE": divided(np.log1p(E)),
        "sup_ang": divided(angle),
        "sup_spread": divided(spread),
    }
    features = {f"{name}_mean": values.mean() for name, values in maps.items()}
    for percent in (10, 50):
        features |= {f"{name}_p{percent}": rank(values, percent) for name, values in maps.items()}
    features |= {
        "r_depth_mean": depth.mean(),
        "r_depth_cv": depth.std() / depth.mean(),
        "f_gsu_logmean": np.log(field.mean()),
        "f_train_logmean": np.log(divided(residual).mean()),
    }
    return center, field.reshape(PIXELS), features


@pytest.mark.parametrize("degree", [0, 2, 3])
def test_every_feature_against_its_formula(degree):
    observed = small_scene(degree=degree)
    exact = replace(observed, splats=observed.splats.to(torch.float64))
    center, field, features = brute_force(observed, CAMERA)
    query = exact.query(CAMERA, backend="reference")
    assert np.abs(query.center.numpy() - center).max() < 1e-12
    assert np.abs(query.field.numpy() - field).max() < 1e-6  # the field is float32
    found = described(query)
    assert set(found) == set(features) | set(FEATURE_NAMES[:5])
    for name, value in features.items():
        assert found[name] == pytest.approx(value, rel=2e-6), name
    assert found["g_dnn"] == observed.geometry.features(CAMERA)[0]
    assert query.field_mean == pytest.approx(field.mean(), rel=1e-6)


@pytest.mark.parametrize("background", [(0.0, 0.0, 0.0), (0.9, 0.2, 0.5)])
@pytest.mark.parametrize("isa", native.available_isas())
def test_cpu_and_reference_agree(isa, background, chosen_isa):
    chosen_isa(isa)
    observed = replace(small_scene(seed=3), background=background)
    exact = ReferenceView(observed.splats.to(torch.float64), CAMERA)
    assert not near_discontinuity(exact, 1e-5).any(), "choose another seed"
    fast, slow = observed.query(CAMERA), observed.query(CAMERA, backend="reference")
    assert (fast.center - slow.center).abs().max() <= 2e-5
    assert (fast.field - slow.field).abs().max() <= 2e-5
    assert fast.descriptor == pytest.approx(slow.descriptor, rel=1e-4, abs=1e-5)
    truth = brute_force(observed, CAMERA, background)[2]
    for name, value in truth.items():
        assert described(fast)[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name


def test_packing_changes_no_bit():
    """Maximum difference to separate passes: zero, not small."""
    observed = small_scene(seed=1, count=400)
    rendered, view = native_maps(observed)
    values = view.pack(observed.traits)
    assert torch.equal(values[:, :3], view.colours()) and torch.equal(values[:, 4], view.depths())
    alone = [view.composite(values[:, channel : channel + 1])[..., 0] for channel in range(10)]
    assert torch.equal(view.composite(values), torch.stack(alone, dim=2))
    assert torch.equal(rendered.center, torch.stack(alone[:3], dim=2).clamp(0, 1))
    assert torch.equal(rendered.center, render(observed.splats, CAMERA).rgb.clamp(0, 1))
    assert torch.equal(rendered.field, alone[8].clamp(min=EPSILON0))
    share = 1 / alone[3].clamp(min=1e-6)
    for plane, map in ((0, alone[3]), *((k, share * alone[k + 3]) for k in (2, 3, 4))):
        assert torch.equal(rendered.maps[plane], map), plane
    assert rendered.moments[3] == pytest.approx(float((share * alone[9]).mean()), rel=1e-6)


def native_maps(observed, camera=CAMERA):
    """The native sweep by itself, and its view."""
    view = NativeView(observed.splats, camera)
    return view.query(observed.traits, observed.background, EPSILON0), view


class PlainView(NativeView):
    """The native composite under the plain-torch query."""

    field_values, pack, query = View.field_values, View.pack, View.query


def plain_maps(observed, camera=CAMERA):
    """The same in plain torch."""
    view = PlainView(observed.splats, camera)
    return view.query(observed.traits, observed.background, EPSILON0)


@pytest.mark.parametrize("isa", native.available_isas())
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_the_native_sweep_is_the_plain_one(isa, degree, chosen_isa):
    chosen_isa(isa)
    for size in ((41, 30), (1, 1), (16, 16), (33, 7), (5, 64)):
        camera = small_camera(*size)
        observed = replace(
            small_scene(seed=2, count=333, degree=degree, camera=camera), background=(0.2, 0.7, 1.0)
        )
        fast, plain = native_maps(observed, camera)[0], plain_maps(observed, camera)
        assert (fast.center - plain.center).abs().max() <= 2e-6
        assert (fast.field - plain.field).abs().max() <= 2e-6
        assert (fast.maps - plain.maps).abs().max() <= 5e-6
        assert fast.moments == pytest.approx(plain.moments, rel=1e-5, abs=1e-6)


def angle_towards(direction, camera=CAMERA):
    """What the kernel makes of one direction of training, for a Gaussian on the axis."""
    observed = small_scene(seed=4, count=1)
    means = torch.tensor((camera.centre + 3 * camera.forward)[None], dtype=torch.float32)
    support = replace(observed.support, direction=direction.float()[None].clone())
    observed = replace(observed, splats=replace(observed.splats, means=means), support=support)
    rendered, _ = native_maps(observed, camera)
    return float(rendered.maps[3].max())


ANGLES = [0, 1e-4, 0.1, 0.39, 0.4, 0.785, 0.8, 1.57, 1.58, 2.3, 3.0, 3.1415]


@pytest.mark.parametrize("angle", ANGLES)
def test_support_angles_are_exact_from_zero_to_pi(angle):
    back = torch.tensor(-CAMERA.forward)
    side = torch.linalg.cross(back, torch.tensor([0.3, 0.8, -0.2], dtype=torch.float64))
    side /= side.norm()
    seen = 5 * (np.cos(angle) * back + np.sin(angle) * side)
    assert angle_towards(seen) == pytest.approx(angle, abs=2e-6)


def test_what_no_view_saw_is_as_far_off_as_can_be():
    assert angle_towards(torch.zeros(3)) == pytest.approx(np.pi, abs=1e-6)


SIZES = [(1, 1), (1, 50), (50, 1), (2, 2), (17, 33), (64, 128), (37, 130)]


def made_maps(kind: str, size, seed=0):
    """Maps with awkward distributions."""
    maps = torch.rand(5, *size, generator=torch.Generator().manual_seed(seed))
    if kind == "ties":
        maps = (4 * maps).round() / 4
    elif kind == "constant":
        maps = torch.full_like(maps, 0.25)
    elif kind == "skewed":
        maps = maps**12
        maps[0] = 1 - 1e-3 * maps[0]
    elif kind == "signed":
        maps = 1e4 * (maps - 0.5) ** 3
    return maps


@pytest.mark.parametrize("isa", native.available_isas())
@pytest.mark.parametrize("kind", ["uniform", "ties", "constant", "skewed", "signed"])
def test_the_native_statistics_are_the_plain_ones(isa, kind, chosen_isa):
    chosen_isa(isa)
    for size in SIZES:
        maps = made_maps(kind, size)
        found = _native.summarise_maps(maps)
        assert found == pytest.approx(summarise(maps), rel=1e-5, abs=1e-5 * float(maps.abs().max()))
        for plane in (0, 2, 3, 4):
            values = maps[plane].numpy()
            exact = [rank(values, 10), rank(values, 50)]
            assert found[3 * plane + 1 : 3 * plane + 3] == exact, "order statistics are exact"


def test_a_misleading_sample_does_not_mislead():
    """The pixels that the kernel samples are all low, every other one is not."""
    maps, pixels = torch.ones(5, 97, 211), 97 * 211
    sampled = (np.arange(1024, dtype=np.uint64) * 2654435769 & 0xFFFFFFFF) * pixels >> 32
    maps.view(5, -1)[:, torch.from_numpy(sampled.astype(np.int64))] = 0.125
    assert (maps[0] == 0.125).sum() > 900
    found = _native.summarise_maps(maps)
    assert [found[3 * plane + 1 : 3 * plane + 3] for plane in (0, 2, 3, 4)] == [[1.0, 1.0]] * 4


@pytest.mark.parametrize("isa", native.available_isas())
@pytest.mark.parametrize("kind", ["uniform", "ties", "constant", "skewed", "signed"])
def test_the_native_median_is_torch_s(isa, kind, chosen_isa):
    chosen_isa(isa)
    for size in SIZES:
        for plane in made_maps(kind, size):
            assert _native.median(plane) == float(plane.median())


def test_shares_hardly_shown_count_every_pixel():
    opacity, _, seen, off, _ = maps = made_maps("uniform", (91, 190))
    found = _native.shares_hardly_shown(maps, 0.5, 0.25, 0.75)
    expected = [opacity < 0.5, seen < 0.25, off > 0.75]
    assert found == [int(part.sum()) / part.numel() for part in expected]


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (91, 90), (129, 191)])
def test_widths_are_those_of_array_operators_to_the_bit(size):
    """Every step rounds by itself, and the mean is summed as NumPy sums it."""
    generator = torch.Generator().manual_seed(3)
    field, opacity = torch.rand((2, *size), generator=generator)
    prior, times, plus, unit, weight = 0.2347, 0.75, 0.0123, 0.3141, 0.25
    wide, mean = widened(field, opacity, prior, times, plus)
    flat = field * times + plus
    assert torch.equal(wide, (1 - opacity) * prior + flat)
    assert mean == float(wide.numpy().mean(dtype=np.float64))
    assert torch.equal(shrunk(wide, unit, weight, 1.7), shrink(wide, unit, weight) * 1.7)


def test_deviation_of_a_distant_flat_scene_does_not_cancel():
    observed = small_scene(seed=8, count=300)
    shift = CAMERA.world_to_camera.copy()
    shift[2, 3] += 5000
    far = replace(CAMERA, world_to_camera=shift, fx=2e3 * CAMERA.fx, fy=2e3 * CAMERA.fy)
    fast, plain = native_maps(observed, far)[0], plain_maps(observed, far)
    assert plain.moments[0] > 1000
    assert fast.moments == pytest.approx(plain.moments, rel=1e-5)


def test_same_bits_for_any_number_of_threads(threads):
    observed = small_scene(seed=5, count=3000, camera=small_camera(203, 151))
    camera = small_camera(203, 151)
    threads(1)
    first = observed.query(camera)
    for count in (1, 2, 8):
        threads(count)
        again = observed.query(camera)
        assert torch.equal(again.center, first.center) and torch.equal(again.field, first.field)
        assert (again.descriptor == first.descriptor).all(), count


def test_out_of_fold_changes_support_and_cameras_but_not_the_field():
    observed = small_scene(seed=6)
    other = small_scene(seed=7).support
    excluded = np.arange(TRAINING) % 5 == 2
    inside, outside = observed.query(CAMERA), observed.out_of_fold(other, excluded).query(CAMERA)
    assert torch.equal(inside.field, outside.field)
    assert torch.equal(inside.center, outside.center)
    same = dict(zip(FEATURE_NAMES, inside.descriptor == outside.descriptor, strict=True))
    assert same["r_alpha_p50"] and same["r_depth_cv"] and same["f_gsu_logmean"]
    assert not (same["sup_logE_mean"] or same["sup_ang_mean"] or same["f_train_logmean"])
    expected = observed.geometry.features(CAMERA, excluded)
    assert (outside.descriptor[:5] == expected).all()


def test_nothing_in_sight_is_a_query_too():
    observed = small_scene()
    away = CAMERA.world_to_camera.copy()
    away[2, 3] -= 1e4
    query = observed.query(replace(CAMERA, world_to_camera=away))
    assert not query.center.any() and (query.field == np.float32(EPSILON0)).all()
    assert np.isfinite(query.descriptor).all()


def test_parts_of_different_models_are_refused():
    observed, larger = small_scene(count=100), small_scene(count=120)
    with pytest.raises(DescriptorError, match="the field has 120 Gaussians, the splats have 100"):
        replace(observed, field=larger.field)
    with pytest.raises(DescriptorError, match="the support has 120 Gaussians"):
        replace(observed, support=larger.support)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_poisoned_field_is_refused_by_name(backend):
    observed = small_scene()
    observed.support.error[:] = torch.nan
    with pytest.raises(DescriptorError, match="f_train_logmean of a view is not finite"):
        observed.query(CAMERA, backend=backend)


@pytest.mark.parametrize(
    ("traits", "message"),
    [
        (torch.zeros(8, 14), "has 8 harmonics, which is no degree from 0 to 3"),
        (torch.zeros(8, 3), "traits has too few columns"),
        (torch.zeros(9, 15), r"traits has shape \[9, 15\], expected \[8, 15\]"),
    ],
)
def test_kernels_refuse_wrong_shapes_by_name(traits, message):
    splats = small_scene(count=8).splats
    view = NativeView(splats, CAMERA)
    table = torch.zeros(8, 10)
    with pytest.raises(ValueError, match=message):
        _native.pack_query(view._prepared, splats.means, splats.sh, traits, table)
    with pytest.raises(ValueError, match=message):
        view.query(cast(Traits, SimpleNamespace(table=traits)), (0.0, 0.0, 0.0), EPSILON0)
    with pytest.raises(ValueError, match=r"maps has shape \[4, 2, 2\], expected \[5, 2, 2\]"):
        _native.summarise_maps(torch.zeros(4, 2, 2))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_wide_holes_add_the_prior_where_the_model_is_transparent(backend):
    """b + (1 - alpha) prior, by the definition; picture and descriptor do not change."""
    observed = small_scene(count=12)
    prior = SimpleNamespace(coefficients=observed.field.coefficients, prior=0.25)
    scene, camera = replace(observed, field=cast("ResidualField", prior)), CAMERA
    plain = scene.query(camera, backend=backend)
    wide = scene.query(camera, backend=backend, holes="wide")
    alpha = torch.from_numpy(weights_of(scene, camera).sum(1).reshape(PIXELS)).float()
    expected = plain.field + (1 - alpha) * scene.field.prior
    assert torch.allclose(wide.field, expected, rtol=1e-5, atol=1e-6)
    assert wide.field_mean == pytest.approx(float(wide.field.double().mean()), rel=1e-12)
    assert torch.equal(wide.center, plain.center)
    assert np.array_equal(wide.descriptor, plain.descriptor)
    empty = alpha == 0
    assert empty.any() and (wide.field[empty] > scene.field.prior).all()
    assert (plain.field[empty] == plain.field.min()).all()
