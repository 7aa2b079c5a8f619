# SPDX-License-Identifier: Apache-2.0
"""Every baseline against a formula written out by hand, on scenes small enough for it."""

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import Full, Magnitude, PerView, factor_only, shape_only

from certified_capture import made_capture, made_fitted, made_photos, made_predictor
from splatcert.capture import Capture
from splatcert.conformal.calibrate import view_score
from splatcert.deploy import load_certificate, verify
from splatcert.difficulty.rule import FactorRule
from splatcert.pipeline import certify
from splatcert.raster.native import NativeView
from splatcert.raster.reference import ReferenceView, transmit
from splatcert.raster.render import render
from splatcert.scales.named import ScaleNameError
from splatcert.splats.harmonics import basis
from splatcert_bench.baselines.baseline import Fitted, Members
from splatcert_bench.baselines.ensemble import Ensemble, EnsembleError
from splatcert_bench.baselines.gavis import VisibilityField, degree_factors
from splatcert_bench.baselines.named import MAKERS, BaselineError, as_scale, maker_of
from splatcert_bench.baselines.visibility_sums import (
    VisibilitySums,
    add_up_visibility,
    footprint_transmittance,
)
from splatcert_bench.synthetic.scenes import made_cameras, random_splats


def make_view(seed, count=80, size=(37, 29)):
    camera = made_cameras(1, *size)[0]
    return random_splats(count, seed=seed, camera=camera), camera


@settings(max_examples=25)
@given(
    st.integers(0, 2**31), st.integers(1, 200), st.tuples(st.integers(1, 60), st.integers(1, 40))
)
def test_footprint_is_the_sum_of_alphas_over_the_image(seed, count, size):
    splats, camera = make_view(seed, count, size)
    exact = ReferenceView(splats.to(torch.float64), camera)
    alphas, _, _ = transmit(exact.footprints.alphas(exact.pixels()))
    by_hand = torch.zeros(count, dtype=torch.float64)
    by_hand[exact.order] = alphas.sum(0)
    assert torch.equal(exact.footprint(), by_hand)
    difference = (NativeView(splats, camera).footprint().double() - by_hand).abs()
    # Rounding may decide about a pixel at the 1/255 floor: a few such steps are allowed.
    assert float((difference - 1e-5 * by_hand).max()) <= 3 / 255


def test_footprint_has_the_same_bits_for_any_number_of_threads(threads):
    splats, camera = make_view(3, 600, (130, 70))
    found = []
    for count in (1, 2, 5):
        threads(count)
        found.append(NativeView(splats, camera).footprint())
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_transmittance_is_one_in_front_and_little_behind(backend):
    splats, camera = make_view(0, 1)
    wall = replace(splats, logit_opacities=torch.tensor([6.0]), log_scales=torch.full((1, 3), 2.0))
    centre, forward = (
        torch.tensor(v, dtype=torch.float32) for v in (camera.centre, camera.forward)
    )
    near, far = (centre + depth * forward for depth in (2.0, 60.0))
    pair = replace(
        wall,
        means=torch.stack([near, far]),
        quats=wall.quats.expand(2, 4),
        log_scales=wall.log_scales.expand(2, 3),
        logit_opacities=wall.logit_opacities.expand(2),
        sh=wall.sh.expand(2, *wall.sh.shape[1:]),
    )
    front, behind = footprint_transmittance(pair, camera, backend).tolist()
    assert front == pytest.approx(1, abs=1e-5)
    assert 0 < behind < 0.05


@pytest.mark.parametrize("kappa", [1, 4, 16, 64])
def test_kernel_is_the_projection_of_von_mises_and_fisher_on_degree_two(kappa):
    """4 pi e^-k i_l is the Funk-Hecke integral of exp(k (t - 1)) with P_l."""
    t, weight = np.polynomial.legendre.leggauss(200)
    kernel = np.exp(kappa * (t - 1))
    legendre = [np.ones_like(t), t, (3 * t**2 - 1) / 2]
    by_hand = [2 * np.pi * float((weight * kernel * p).sum()) for p in legendre]
    assert degree_factors(kappa) == pytest.approx(by_hand, rel=1e-9)


def test_truncated_kernel_rings_as_computed_elsewhere():
    """At kappa = 64: 0.068, 0.033, -0.011, 0.022 at 0, 45, 90 and 180 degrees."""
    angles = torch.tensor([0, 45, 90, 180], dtype=torch.float64).deg2rad()
    away = torch.stack([angles.sin(), torch.zeros(4, dtype=torch.float64), angles.cos()], dim=1)
    pole = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    factors = torch.tensor([f for l, f in enumerate(degree_factors(64)) for _ in range(2 * l + 1)])
    values = (factors * basis(pole, 2) * basis(away, 2)).sum(1)
    assert values.tolist() == pytest.approx([0.068, 0.033, -0.011, 0.022], abs=6e-4)


def test_visibility_is_at_least_one_view_by_the_bound():
    camera_count, kappa = 5, 4.0
    random = torch.Generator().manual_seed(0)
    seen = torch.nn.functional.normalize(
        torch.randn(camera_count, 3, generator=random).double(), dim=1
    )
    free = torch.rand(camera_count, generator=random).double()
    moments = (free[:, None] * basis(seen, 2)).sum(0)[None]
    field = VisibilityField(VisibilitySums(moments, camera_count), kappa)
    l0, l1, l2 = degree_factors(kappa)
    for d in torch.nn.functional.normalize(torch.randn(20, 3, generator=random).double(), dim=1):
        t = (seen @ d).clamp(-1, 1)
        # Addition theorem: the harmonics of degree l sum to (2 l + 1) / 4 pi P_l.
        kernel = (l0 + 3 * l1 * t + 5 * l2 * (3 * t**2 - 1) / 2) / (4 * torch.pi)
        total = float((free * kernel).sum().clamp(0, camera_count))
        expected = 1 - (1 - total / camera_count) ** camera_count
        assert float(field.towards(d[None])) == pytest.approx(expected, abs=1e-12)


@pytest.fixture(scope="module")
def photos():
    return made_photos()


@pytest.fixture(scope="module")
def fitted(photos) -> Fitted:
    return made_fitted(photos, steps=5)


@pytest.mark.parametrize("name", MAKERS)
def test_every_map_is_positive_and_has_the_cameras_size(name, fitted, photos):
    camera = photos[0]["000.png"]
    found = maker_of(name)(fitted).map(camera)
    assert tuple(found.shape) == (camera.height, camera.width)
    assert bool((found > 0).all()) and bool(found.isfinite().all())


def test_sums_of_visibility_agree_between_back_ends(fitted):
    splats = fitted.scene.splats[torch.arange(40)]
    cameras = [view.camera for view in fitted.training[:3]]
    fast = add_up_visibility(splats, cameras)
    exact = add_up_visibility(splats.to(torch.float64), cameras, "reference")
    assert fast.views == exact.views == 3
    assert float((fast.moments - exact.moments).abs().max()) < 2e-2


def test_ensemble_is_the_sample_deviation_of_the_worst_colour(fitted, photos):
    camera = photos[0]["003.png"]
    pictures = np.stack([render(s, camera).rgb.clamp(0, 1).numpy() for s in fitted.members.splats])
    by_hand = np.maximum(pictures.astype(np.float64).std(axis=0, ddof=1).max(axis=-1), 1e-3)
    ensemble = Ensemble(fitted)
    assert np.allclose(ensemble.map(camera).numpy(), by_hand, atol=1e-6)
    assert np.allclose(ensemble.moments(camera).mean.numpy(), pictures.mean(axis=0), atol=1e-6)


def test_smaller_members_are_rendered_at_their_size_and_enlarged(fitted, photos):
    camera = photos[0]["003.png"]
    small = replace(fitted, members=replace(fitted.members, long_side=30))
    moments = Ensemble(small).moments(camera)
    assert tuple(moments.deviation.shape) == (20, 30)
    assert tuple(Ensemble(small).map(camera).shape) == (40, 60)


def test_an_ensemble_of_one_is_refused(fitted):
    alone = replace(fitted, members=Members(fitted.members.splats[:1]))
    with pytest.raises(EnsembleError, match="at least 2 members, got 1"):
        Ensemble(alone)


def test_parts_of_our_scale_are_what_tables_make_of_scores(fitted, photos):
    """A factor of a view divides its score; the shape keeps mean one."""
    cameras, pictures = photos
    batch = [fitted.scene.query(camera) for camera in list(cameras.values())[:6]]
    rows = np.array([query.descriptor for query in batch])
    rule = FactorRule.freeze(made_predictor(), rows, rows, "batch")
    name, camera = "003.png", cameras["003.png"]
    query = fitted.scene.query(camera)
    residual = np.abs(pictures[name].numpy() - query.center.numpy()).max(axis=-1).astype(np.float64)
    maps = {
        "full": Full(fitted, rule),
        "factor": factor_only(fitted, rule),
        "shape": shape_only(fitted, rule),
    }
    scores = {
        n: view_score(residual, m.map(camera).numpy(), Fraction(1, 10)) for n, m in maps.items()
    }
    factor = rule.factor(query.descriptor)
    flat = view_score(residual, 1.0, Fraction(1, 10))
    assert scores["full"] == pytest.approx(scores["shape"] / factor, rel=1e-6)
    assert scores["factor"] == pytest.approx(flat / factor, rel=1e-6)
    field = maker_of("gsu")(fitted)
    assert float(PerView(field).map(camera).mean()) == pytest.approx(1, rel=1e-5)
    assert float(Magnitude(field).map(camera)[0, 0]) == pytest.approx(query.field_mean, rel=1e-5)


def test_a_baseline_of_ones_own_is_found_by_module_and_class(tmp_path, monkeypatch, fitted, photos):
    (tmp_path / "my_maps.py").write_text(
        "import torch\n"
        "class Depth:\n"
        "    reading = None\n"
        "    def __init__(self, fitted): self.fitted = fitted\n"
        "    def map(self, camera): return torch.full((camera.height, camera.width), 2.0)\n"
        "class NoMap: pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    camera = photos[0]["000.png"]
    assert float(maker_of("my_maps:Depth")(fitted).map(camera).mean()) == 2
    for name, message in (
        ("fisher", "there is no baseline 'fisher'"),
        ("my_maps:Missing", "cannot be imported"),
        ("no_such_module:X", "cannot be imported"),
        ("my_maps:NoMap", "has no method map"),
    ):
        with pytest.raises(BaselineError, match=message):
            maker_of(name)
    sys.modules.pop("my_maps", None)


@pytest.mark.parametrize("name", ["gsu", "gavis-4", "ensemble"])
def test_a_baseline_is_certified_and_verified_like_our_own_scale(photos, name, tmp_path):
    fitted = made_fitted(photos, steps=8)
    scale = as_scale(name, maker_of(name)(fitted))
    scene, model = made_capture(photos), fitted.scene.splats
    made = certify(scene, model, unseen=scene.held_out.names, scale=scale)
    assert made.record.scale.name == name and made.threshold > 0
    folder = made.save(tmp_path / "cert")
    again = Capture.in_memory(made_capture(photos), model, unseen=scene.held_out.names)
    found = verify(folder, again, scale=scale)
    assert found.passed, found.failures
    loaded = load_certificate(folder, model, scale=scale)
    camera = made.record.calibration[0].camera
    assert torch.equal(loaded.predict(camera).half_width, made.predict(camera).half_width)
    with pytest.raises(ScaleNameError, match="is not in the package"):
        load_certificate(folder, model)


def test_wide_holes_are_what_certificates_scale_by():
    """The same map as `certify` uses, wider than the paper's wherever something shows through."""
    fitted = made_fitted(made_photos(), steps=2)
    camera = made_capture(made_photos()).held_out[0].camera
    wide, paper = (MAKERS[name](fitted).map(camera) for name in ("holes", "gsu"))
    assert torch.equal(wide, fitted.scene.query(camera, holes="wide").field)
    assert (wide >= paper).all() and (wide > paper).any()
