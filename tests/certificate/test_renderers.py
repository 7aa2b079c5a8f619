# SPDX-License-Identifier: Apache-2.0
"""One certificate, several renderers: what another back end predicts keeps the guarantee."""

from __future__ import annotations

import importlib
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from certified_capture import certify_scene, made_model, made_predictor
from splatcert.capture import Capture
from splatcert.certificate.certificate import CertificateError
from splatcert.certificate.family import Family
from splatcert.certificate.renderers import Difference
from splatcert.config import CertifyConfig, PathPromise
from splatcert.conformal.boxes import Boxes
from splatcert.conformal.calibrate import view_score
from splatcert.deploy import load_certificate, verify
from splatcert.families.certify import certify_family
from splatcert.field.fit import one_torch_thread
from splatcert.pipeline import certify
from splatcert.raster.reference import ReferenceView
from splatcert.raster.render import BackendError, render, unavailable
from splatcert.scales.maps import Constant
from splatcert.scene.scene import scene_from_tensors
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

BETA = Fraction(1, 10)
SCALES = ("paper", "constant")
PAIRS = [("cpu", "reference"), ("reference", "cpu"), ("cpu", "gpu"), ("gpu", "cpu")]


TRUTH = made_splats(150, sh_degree=1)
MODEL = made_model(TRUTH)
NAMES = [f"{k:02d}.png" for k in range(24)]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """The reference's matrices are tiny here; more threads would only wait for each other."""
    with one_torch_thread():
        yield


@pytest.fixture(scope="module")
def photos():
    """A capture small enough for the reference."""
    cameras = dict(zip(NAMES, made_cameras(len(NAMES), 30, 20), strict=True))
    return cameras, {name: render(TRUTH, c).rgb.clamp(0, 1) for name, c in cameras.items()}


def made_scene(photos, held_out=NAMES[::2]):
    return scene_from_tensors(*photos, held_out=list(held_out))


@pytest.fixture(scope="module")
def folders(photos, tmp_path_factory):
    """One certificate per back end that can run, made when first asked for."""
    made = {}

    def folder(backend):
        if reason := unavailable(backend):
            pytest.skip(reason.splitlines()[0])
        if backend not in made:
            certificate = certify_scene(
                made_scene(photos),
                MODEL,
                predictor=made_predictor(),
                backend=backend,
                remember=False,
            )
            made[backend] = certificate.save(tmp_path_factory.mktemp(backend) / "it.cert")
        return made[backend]

    return folder


@given(
    seed=st.integers(0, 10_000), noise=st.sampled_from([1e-6, 1e-3, 0.05]), slack=st.floats(0, 2)
)
def test_a_bound_is_never_below_the_score_that_the_photo_would_give(seed, noise, slack):
    """Whatever the photograph and the margin, for any two renderers."""
    random = np.random.default_rng(seed)
    size = (5, 7)
    photo, center = random.random((2, *size, 3))
    scale = 0.05 + random.random(size)
    other = scale * np.exp(noise * random.standard_normal(size))
    moved = center + noise * random.standard_normal(center.shape)
    difference = Difference(scale, other, np.abs(moved - center).max(axis=2))
    margin = slack * noise
    score = view_score(np.abs(photo - center).max(axis=2), scale, BETA)
    beyond = np.maximum(np.abs(photo - moved).max(axis=2) - margin, 0.0)
    assert view_score(beyond, other, BETA) <= difference.containing(np.array([score]), margin)[0]


@given(
    seed=st.integers(0, 10_000),
    noise=st.sampled_from([0.0, 1e-7, 1e-3]),
    slack=st.floats(0, 2),
    multiplier=st.floats(1e-3, 10),
)
def test_boxes_contain_the_certified_ones_to_the_bit(seed, noise, slack, multiplier):
    """Whatever rounding does to a half-width and to a corner."""
    random, size = np.random.default_rng(seed), (6, 8)
    center = random.random((*size, 3)).astype(np.float32)
    shape = (0.05 + random.random(size)).astype(np.float32)
    moved = (center + noise * random.standard_normal(center.shape)).astype(np.float32)
    other = (shape * np.exp(noise * random.standard_normal(size))).astype(np.float32)
    factors, margin = 0.5 + random.random(2), slack * noise
    apart = np.abs(moved.astype(np.float64) - center).max(axis=2)
    exact = [f * one.astype(np.float64) for f, one in zip(factors, (shape, other), strict=True)]
    (needed,) = Difference(exact[0], exact[1], apart).containing(np.array([multiplier]), margin)
    shapes = [torch.from_numpy(one).mul for one in (shape, other)]
    ours = Boxes.of_render(torch.from_numpy(center), shapes[0], factors[0], multiplier)
    theirs = Boxes.of_render(torch.from_numpy(moved), shapes[1], factors[1], needed, margin=margin)
    assert (theirs.lower <= ours.lower).all() and (theirs.upper >= ours.upper).all()


@pytest.mark.parametrize(("certified", "other"), PAIRS)
def test_another_back_end_predicts_the_same_boxes(photos, folders, certified, other):
    """By photographs: q within 1e-4, and the same pixels inside but for those on an edge. By both
    renders: boxes contain the certified ones to the bit, so no pixel is lost, at any level."""
    folder, model, scene = folders(certified), MODEL, made_scene(photos)
    if reason := unavailable(other):
        pytest.skip(reason.splitlines()[0])
    own = load_certificate(folder, model)
    again = load_certificate(folder, model, scene=scene, backend=other)
    bounded = load_certificate(folder, model, backend=other)
    assert again.other is not None and bounded.other is not None
    assert again.threshold == pytest.approx(own.threshold, rel=1e-4)
    assert again.threshold <= bounded.threshold + bounded.other.margin / min(
        view.factor for view in own.record.calibration
    )
    assert 0 <= bounded.other.widening < 0.05
    assert (again.scores <= own.scores * (1 + 1e-4)).all()
    for alpha, beta in ((own.alpha, own.beta), ("1/5", "1/20")):
        there, here, exact = (one.at(alpha, beta) for one in (own, bounded, again))
        for view in own.record.calibration:
            photo, ours = photos[1][view.name], there.predict(view.camera)
            wider, scored = here.predict(view.camera), exact.predict(view.camera)
            assert wider.margin == bounded.other.margin
            assert (wider.lower <= ours.lower).all() and (wider.upper >= ours.upper).all()
            inside = ours.contains(photo)
            assert not (inside & ~wider.contains(photo)).any()
            differ = inside != scored.contains(photo)
            edge = (photo - ours.center).abs().amax(2) / ours.half_width
            assert int(differ.sum()) <= 2 and ((edge[differ] - 1).abs() < 1e-4).all()


@pytest.mark.parametrize(("certified", "other"), PAIRS)
def test_verify_recomputes_with_another_back_end(photos, folders, certified, other):
    folder, scene = folders(certified), made_scene(photos)
    if reason := unavailable(other):
        pytest.skip(reason.splitlines()[0])
    capture = Capture.in_memory(scene, MODEL, unseen=scene.held_out.names)
    found = verify(folder, capture, backend=other)
    assert found.passed, found.failures
    told = next(one.detail for one in found.checks if one.name == "model")
    assert f"certified with {certified}, recomputed with {other}" in told


def test_bounds_hold_under_a_renderer_that_is_off(photos, folders, monkeypatch):
    """Boxes at a view's own bound cover its photograph, also where no training camera looked."""
    right = ReferenceView.composite

    def off(self, values):
        image = right(self, values)
        return image + 3e-4 * (image * 40).sin()

    monkeypatch.setattr(ReferenceView, "composite", off)
    carried = load_certificate(folders("cpu"), MODEL, backend="reference")
    assert carried.other is not None and carried.other.margin > 2e-4
    for beta in (BETA, Fraction(1, 20)):
        for view, bound in zip(carried.record.calibration, carried.scores_at(beta), strict=True):
            scaled = carried.scale(view.camera)
            photo, center = photos[1][view.name].double(), scaled.center.double()
            residual = (photo - center).abs().amax(2).numpy()
            inside = residual <= bound * scaled.scale() + carried.other.margin
            assert inside.mean() >= 1 - beta
    assert carried.at("1/5", "1/20").threshold > 0


def test_a_renderer_that_is_far_off_is_refused(folders, monkeypatch):
    right = ReferenceView.composite
    monkeypatch.setattr(ReferenceView, "composite", lambda self, v: 0.8 * right(self, v))
    folder, model = folders("cpu"), MODEL
    with pytest.raises(CertificateError, match="wider than those") as refused:
        load_certificate(folder, model, backend="reference")
    assert "splatcert doctor" in str(refused.value)


def test_a_certified_back_end_that_cannot_run_requires_the_photographs(
    photos, folders, monkeypatch
):
    folder, model = folders("reference"), MODEL
    reasons = {"reference": "it is gone"}
    for place in ("splatcert.refusals", "splatcert.raster.render"):
        monkeypatch.setattr(importlib.import_module(place), "unavailable", reasons.get)
    with pytest.raises(CertificateError, match="cannot run here") as refused:
        load_certificate(folder, model, backend="cpu")
    assert "--data" in str(refused.value)
    again = load_certificate(folder, model, scene=made_scene(photos), backend="cpu")
    assert again.other is not None and not again.other.bounded


def test_other_photographs_are_not_scored(photos, folders):
    cameras, pictures = photos
    spoilt = (cameras, {name: picture * 0.9 for name, picture in pictures.items()})
    model = MODEL
    with pytest.raises(CertificateError, match="12 calibration photos differ"):
        load_certificate(folders("cpu"), model, scene=made_scene(spoilt), backend="reference")


def test_what_was_carried_over_is_not_saved(photos, folders, tmp_path):
    model = MODEL
    carried = load_certificate(folders("cpu"), model, backend="reference")
    with pytest.raises(CertificateError, match="carried over to the back end reference"):
        carried.save(tmp_path / "it.cert")
    words = carried.other.words("cpu")
    assert words.startswith("reference, certified with cpu") and "same guarantee" in words
    assert carried.guarantee == load_certificate(folders("cpu")).guarantee


def test_a_family_stays_with_its_back_end(photos, tmp_path):
    scene, model = made_scene(photos), MODEL
    capture = Capture.in_memory(scene, model, unseen=scene.held_out.names)
    family: Family = certify_family({"one": capture}, scales=SCALES, remember=False)
    folder = family.save(tmp_path / "family")
    with pytest.raises(CertificateError, match="a family's promise"):
        load_certificate(folder, model, backend="reference")


def test_a_back_end_that_cannot_run_is_named_with_its_remedy(folders, monkeypatch):
    gone = BackendError("the back end 'gpu' requires wgpu.\n  pip install 'splatcert[gpu]'")
    monkeypatch.setattr("splatcert.refusals.unavailable", {"gpu": str(gone)}.get)
    with pytest.raises(BackendError, match=r"splatcert\[gpu\]"):
        load_certificate(folders("cpu"), MODEL, backend="gpu")


def test_a_path_promise_is_carried_over(photos, tmp_path):
    """Scores of stretches grow with those of their views, so bounds bound them too."""
    held_out = [name for k, name in enumerate(NAMES) if k % 4 < 2]
    scene, model = made_scene(photos, held_out), MODEL
    certificate = certify(
        scene,
        model,
        unseen=held_out,
        scale=Constant(),
        promise=PathPromise(2, "0"),
        config=CertifyConfig(alpha="1/5"),
        remember=False,
    )
    folder = certificate.save(tmp_path / "it.cert")
    carried = load_certificate(folder, model, backend="reference")
    assert carried.threshold * (1 + 1e-9) >= certificate.threshold - carried.other.margin
    assert carried.guarantee == certificate.guarantee
