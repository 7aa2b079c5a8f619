# SPDX-License-Identifier: Apache-2.0
"""Any scale is certified, sealed and verified by the same path as the paper's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

import splatcert as sc
from certified_capture import HELD_OUT, made_capture, made_model, made_photos, made_truth
from splatcert.capture import Capture
from splatcert.certificate.certificate import CertificateError
from splatcert.difficulty.views_file import ViewTableError
from splatcert.scales.maps import OwnMapError
from splatcert.scales.named import ScaleNameError
from splatcert.witnesses.photos import PhotosError


@pytest.fixture(scope="module")
def photos():
    return made_photos()


@pytest.fixture(scope="module")
def model():
    return made_model(made_truth())


def ramp(camera: sc.Camera) -> np.ndarray:
    """A map that knows nothing: wider to the right, and wider for cameras farther off."""
    row = np.linspace(0.5, 1.5, camera.width)[None].repeat(camera.height, axis=0)
    return row * float(np.linalg.norm(camera.centre))


@pytest.mark.parametrize("scale", ["constant", sc.OwnMap("ramp", ramp)], ids=["constant", "own"])
def test_other_scales_are_sealed_verified_and_predict(photos, model, tmp_path, scale):
    own = scale if isinstance(scale, sc.OwnMap) else None
    scene = made_capture(photos)
    made = sc.certify(scene, model, unseen=HELD_OUT, scale=scale)
    assert made.record.labels.handed_out_before == 0
    folder = made.save(tmp_path / "cert")
    again = Capture.in_memory(made_capture(photos), model, unseen=HELD_OUT)
    found = sc.verify(folder, again, scale=own)
    assert found.passed, found.failures
    loaded = sc.load_certificate(folder, model, scale=own)
    inside = []
    for name in HELD_OUT:
        boxes = loaded.predict(photos[0][name])
        inside.append(float(boxes.contains(photos[1][name]).double().mean()))
    assert sum(share >= 0.9 for share in inside) >= loaded.record.guarantee.rank
    widths = loaded.predict(photos[0][HELD_OUT[0]]).half_width
    if own is None:
        assert widths.unique().numel() == 1
    else:
        assert float(widths[0, -1] / widths[0, 0]) == pytest.approx(3.0, rel=1e-5)


def test_a_changed_map_is_refused_at_load(photos, model, tmp_path):
    scene = made_capture(photos)
    made = sc.certify(scene, model, unseen=HELD_OUT, scale=sc.OwnMap("ramp", ramp))
    folder = made.save(tmp_path / "cert")
    other = sc.OwnMap("ramp", lambda camera: ramp(camera) ** 2)
    with pytest.raises(CertificateError, match="is not the certified one"):
        sc.load_certificate(folder, model, scale=other)
    assert sc.load_certificate(folder).threshold == made.threshold


@pytest.mark.parametrize(
    ("values", "why"),
    [(np.zeros((40, 60)), "must be positive"), (np.ones((3, 3)), "has shape")],
)
def test_maps_that_are_no_scale_are_refused(photos, model, values, why):
    with pytest.raises(OwnMapError, match=why):
        sc.certify(
            made_capture(photos), model, unseen=HELD_OUT, scale=sc.OwnMap("bad", lambda _: values)
        )


def test_an_unknown_scale_is_refused_with_those_there_are(photos, model):
    with pytest.raises(ScaleNameError, match="choose one of paper, guided, constant"):
        sc.certify(made_capture(photos), model, unseen=HELD_OUT, scale="narrow")


def test_the_default_is_the_guided_scale_around_the_render(photos, model):
    made = sc.certify(made_capture(photos), model, unseen=HELD_OUT)
    named = sc.certify(made_capture(photos), model, unseen=HELD_OUT, scale=sc.GuidedScale())
    assert (made.record.scale.name, made.record.center) == ("guided", "render")
    assert made.threshold == named.threshold and list(made.scores) == list(named.scores)
    captures = {
        name: Capture.in_memory(made_capture(photos), splats, unseen=HELD_OUT)
        for name, splats in {"one": model, "other": made_model(made_truth(), seed=1)}.items()
    }
    family = sc.certify_family(captures)
    assert [one.record.scale.name for one in family.values()] == ["guided", "guided"]


def test_without_photographs_it_says_what_to_do(photos, model, tmp_path):
    """A guided certificate asks for the scene, and one of the paper's scale needs none."""
    folder = sc.certify(made_capture(photos), model, unseen=HELD_OUT).save(tmp_path / "guided")
    with pytest.raises(PhotosError) as refused:
        sc.load_certificate(folder, model)
    for words in (
        "were not given",
        "--data DATA",
        "its scene to load_certificate",
        "--scale paper",
    ):
        assert words in str(refused.value)
    ready = sc.load_certificate(folder, model, scene=made_capture(photos))
    assert ready.predict(photos[0][HELD_OUT[0]]).half_width.isfinite().all()
    made = sc.certify(made_capture(photos), model, unseen=HELD_OUT, scale="paper")
    plain = sc.load_certificate(made.save(tmp_path / "paper"), model)
    assert plain.predict(photos[0][HELD_OUT[0]]).half_width.isfinite().all()


def test_the_default_keeps_a_promise_about_paths(photos, model):
    made = sc.certify(
        made_capture(photos, sorted(photos[0])[:24]),
        model,
        unseen=sorted(photos[0])[:24],
        promise=sc.PathPromise(2, "1/2"),
    )
    assert made.record.scale.name == "guided" and np.isfinite(made.threshold)


def test_the_unit_of_the_paper_is_refused_by_the_default(photos, model):
    """It used to apply to the default scale; it must not be dropped silently now."""
    batch = sc.CertifyConfig(unit="batch")
    with pytest.raises(ScaleNameError, match="unit batch requires the paper's scale"):
        sc.certify(made_capture(photos), model, unseen=HELD_OUT, config=batch)
    made = sc.certify(made_capture(photos), model, unseen=HELD_OUT, scale="paper", config=batch)
    assert made.record.scale.batch_only


def test_other_levels_come_from_stored_scores(photos, model):
    made = sc.certify(made_capture(photos), model, unseen=HELD_OUT)
    other = made.at("1/5", "1/20")
    direct = sc.certify(
        made_capture(photos),
        model,
        unseen=HELD_OUT,
        config=sc.CertifyConfig(alpha="1/5", beta="1/20"),
    )
    assert other.threshold == pytest.approx(direct.threshold, rel=1e-9)
    assert other.guarantee == direct.guarantee and not other.is_certified
    camera = photos[0][HELD_OUT[2]]
    ratio = other.predict(camera).half_width / made.predict(camera).half_width
    assert ratio.mean() == pytest.approx(other.threshold / made.threshold, rel=1e-5)
    assert made.at(Fraction(1, 10), "10%") is made
    with pytest.raises(ViewTableError, match="no targets at beta = 1/7"):
        made.at("1/10", "1/7")
    with pytest.raises(CertificateError, match="were chosen after calibration"):
        other.save("nowhere")


def test_many_cameras_are_predicted_each_as_if_alone(photos, model):
    made = sc.certify(made_capture(photos), model, unseen=HELD_OUT)
    cameras = [photos[0][name] for name in HELD_OUT[:3]]
    for camera, boxes in zip(cameras, made.predict(cameras), strict=True):
        assert torch.equal(boxes.half_width, made.predict(camera).half_width)
