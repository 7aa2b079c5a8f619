# SPDX-License-Identifier: Apache-2.0
"""What a certificate answers, and what it refuses to be used with."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from certified_capture import HELD_OUT, NAMES, made_capture, made_model, made_predictor, made_truth
from certified_capture import certify_scene as certify
from splatcert.certificate import store
from splatcert.certificate.certificate import OUTSIDE_BATCH, Certificate, CertificateError
from splatcert.certificate.field_file import FieldArrays
from splatcert.config import CertifyConfig
from splatcert.conformal.calibrate import CalibrationTooSmall
from splatcert.conformal.ranks import ceil_rank
from splatcert.deploy import load_certificate
from splatcert.raster import render
from splatcert.splats.files import load_splats, save_ply
from splatcert.storage.whole import ArtefactError
from splatcert.verification.offline import verify_folder
from splatcert_bench.synthetic.scenes import made_cameras


def same_boxes(one, other) -> bool:
    return (
        torch.equal(one.center, other.center)
        and torch.equal(one.half_width, other.half_width)
        and one.view_factor == other.view_factor
        and one.flag == other.flag
    )


def test_a_calibration_view_is_covered_if_and_only_if_its_score_is_at_most_the_threshold(
    certificate, photos
):
    """lem:event, in float32 and with the pixels that lie exactly on an edge."""
    cameras, pictures = photos
    for view in certificate.record.calibration:
        for threshold, expected in ((view.score, True), (view.score * (1 - 1e-5), False)):
            promise = replace(certificate.record.guarantee, threshold=threshold)
            record = replace(certificate.record, guarantee=promise)
            boxes = replace(certificate, record=record).predict(cameras[view.name])
            inside = int(boxes.contains(pictures[view.name]).sum())
            needed = ceil_rank(boxes.half_width.numel(), 1 - certificate.beta)
            assert (inside >= needed) is expected


def test_boxes_are_tensors_with_named_parts(certificate, photos):
    camera = photos[0][HELD_OUT[0]]
    boxes = certificate.predict(camera)
    assert boxes.center.shape == (40, 60, 3) and boxes.half_width.shape == (40, 60)
    for part in (boxes.center, boxes.half_width, boxes.lower, boxes.upper):
        assert part.dtype == torch.float32
    assert (boxes.lower < boxes.center).all() and (boxes.center < boxes.upper).all()
    mean = boxes.half_width.double().mean()
    assert float(mean) == pytest.approx(certificate.threshold * boxes.view_factor, rel=1e-5)


def test_a_camera_gets_the_same_box_whatever_else_is_asked(certificate):
    """Deployed mode; prop:equivariance: permuted cameras get permuted answers."""
    cameras = made_cameras(6, 60, 40)
    alone = [certificate.predict(camera) for camera in cameras]
    order = [3, 0, 5, 1, 4, 2]
    together = certificate.predict([cameras[k] for k in order])
    assert all(same_boxes(alone[k], box) for k, box in zip(order, together, strict=True))


def test_deployed_factors_do_not_depend_on_the_batch(photos, model, certificate):
    """A view's factor is the same with half of the batch; in the paper's unit it is not."""
    half = HELD_OUT[::2]
    for unit, same in (("deployed", True), ("batch", False)):
        config = CertifyConfig(unit=unit, alpha="1/5")
        found = []
        for names in (HELD_OUT, half):
            cameras, pictures = photos
            kept = {n: c for n, c in cameras.items() if n not in HELD_OUT or n in names}
            scene = made_capture((kept, {n: pictures[n] for n in kept}), list(names))
            record = certify(scene, model, config, made_predictor()).record
            found.append({view.name: view.factor for view in record.calibration})
        assert (found[1] == {name: found[0][name] for name in half}) is same


def test_both_units_give_equal_boxes_without_shrinkage(photos, model):
    """lem:gauge: with lambda_a = 1 the unit of a cancels."""
    predictor = made_predictor(lambda_a=Fraction(1))
    one, other = (
        certify(made_capture(photos), model, CertifyConfig(unit=unit), predictor)
        for unit in ("deployed", "batch")
    )
    assert one.threshold != other.threshold
    for camera in made_cameras(3, 60, 40):
        left, right = one.predict(camera).half_width, other.predict(camera).half_width
        torch.testing.assert_close(left, right, rtol=1e-6, atol=0)


def test_the_paper_s_unit_is_stored_for_cameras_asked_later(photos, model, tmp_path):
    config = CertifyConfig(unit="batch")
    made = certify(made_capture(photos), model, config, made_predictor())
    factors = [view.factor for view in made.record.calibration]
    assert np.mean(factors) == pytest.approx(1.0, rel=1e-9)
    loaded = load_certificate(made.save(tmp_path / "cert"), model)
    camera = made_cameras(1, 60, 40)[0]
    assert same_boxes(made.predict(camera), loaded.predict(camera))


@pytest.mark.parametrize(
    ("unit", "lambda_a", "covered"),
    [
        ("batch", "1/2", False),
        ("batch", "1", True),
        ("batch", "0", True),
        ("deployed", "1/2", True),
    ],
)
def test_in_the_paper_s_unit_the_batch_alone_is_covered(
    photos, model, tmp_path, unit, lambda_a, covered
):
    """prop:equivariance is about views of the batch; lem:gauge lifts it where the unit cancels."""
    predictor = made_predictor(lambda_a=Fraction(lambda_a))
    made = certify(made_capture(photos), model, CertifyConfig(unit=unit), predictor)
    assert ("a camera outside the batch is not covered" in made.guarantee) is not covered
    assert ("view of the certified batch" in made.guarantee) is not covered
    assert made.predict(photos[0][HELD_OUT[3]]).flag.inside
    later = made.predict(photos[0][NAMES[1]]).flag
    assert (OUTSIDE_BATCH in later.reasons) is not covered
    assert verify_folder(made.save(tmp_path / "cert")).passed


def test_it_survives_the_disk(certificate, stored, model, tmp_path):
    save_ply(model, tmp_path / "model.ply")
    loaded = load_certificate(stored, load_splats(tmp_path / "model.ply"))
    assert loaded.guarantee == certificate.guarantee
    for camera in made_cameras(2, 60, 40):
        assert same_boxes(loaded.predict(camera), certificate.predict(camera))
    again = loaded.save(tmp_path / "again")
    for name in ("certificate.json", "field.safetensors", "views.npz"):
        assert (again / name).read_bytes() == (stored / name).read_bytes()


def test_a_folder_or_its_main_file_name_it(stored):
    assert load_certificate(stored / "certificate.json").threshold > 0
    assert load_certificate(str(stored)).threshold > 0


def test_without_its_model_it_is_read_but_predicts_nothing(stored):
    loaded = load_certificate(stored)
    assert loaded.scores.shape == (len(HELD_OUT),)
    with pytest.raises(CertificateError, match="requires its model to predict"):
        loaded.predict(made_cameras(1, 60, 40)[0])


def test_another_model_is_refused_with_what_differs(stored):
    other = made_model(made_truth(), seed=1)
    with pytest.raises(
        CertificateError, match=r"different model.\n  It names 400 Gaussians"
    ) as told:
        load_certificate(stored, other)
    assert str(told.value).count("\n") < 5
    with pytest.raises(CertificateError, match="this model has 399"):
        load_certificate(stored, other[:399])


def test_another_renderer_is_refused_with_what_differs(stored, model, monkeypatch):
    def elsewhere(backend):
        return {"name": "splatcert-cpu", "version": "9.9", "constants": {"alpha_cap": 0.999}}

    monkeypatch.setattr(render, "renderer_of", elsewhere)
    with pytest.raises(CertificateError, match=r"version .* \(here 9.9\); constants"):
        load_certificate(stored, model)
    assert load_certificate(stored).threshold > 0  # it can still be read


def test_another_schema_is_refused(folder):
    path = folder / "certificate.json"
    path.write_text(path.read_text().replace('"schema": 4,', '"schema": 99,', 1))
    with pytest.raises(CertificateError, match="this program reads 'splatcert certificate'"):
        load_certificate(folder)


def test_no_certificate_is_said_so(tmp_path):
    with pytest.raises(
        CertificateError, match=r"is not a certificate: it contains no certificate\.json"
    ):
        load_certificate(tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("part", [(FieldArrays, "save"), (store, "write_text_whole")])
@pytest.mark.parametrize("why", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_save_that_fails_leaves_the_older_certificate_whole(
    certificate, folder, monkeypatch, part, why
):
    before = contents(folder)

    def stop(*arguments, **options):
        raise why

    monkeypatch.setattr(*part, stop)
    with pytest.raises((KeyboardInterrupt, ArtefactError)):
        certificate.save(folder)
    assert contents(folder) == before and load_certificate(folder).threshold > 0
    with pytest.raises((KeyboardInterrupt, ArtefactError)):
        certificate.save(folder / "first")
    with pytest.raises(CertificateError, match="is not a certificate"):
        load_certificate(folder / "first")


@pytest.mark.parametrize("renames", [1, 2])
def test_parts_of_two_certificates_are_not_believed(photos, folder, monkeypatch, renames):
    other = made_model(made_truth(), seed=1)
    newer = certify(made_capture(photos), other, predictor=None)
    put, done = store._put, []

    def stop_later(aside, path):
        if len(done) == renames:
            raise KeyboardInterrupt
        done.append(path)
        put(aside, path)

    monkeypatch.setattr(store, "_put", stop_later)
    with pytest.raises(KeyboardInterrupt):
        newer.save(folder)
    with pytest.raises(CertificateError, match="is not the file the certificate names"):
        load_certificate(folder)
    assert "files" in {check.name for check in verify_folder(folder).failures}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_is_named(certificate, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(ValueError, match="locked"):
        certificate.save(tmp_path / "locked" / "cert")


def test_too_few_views_make_unbounded_boxes(photos, model, tmp_path):
    held_out = NAMES[::9]
    with pytest.warns(CalibrationTooSmall, match="Hold out at least 5 more views"):
        made = certify(made_capture(photos, held_out), model, predictor=None)
    assert made.threshold == np.inf and made.record.splits is None
    assert made.guarantee.startswith("none: every box is unbounded")
    boxes = made.predict(made_cameras(1, 60, 40)[0])
    assert boxes.half_width.isinf().all() and boxes.contains(boxes.center).all()
    loaded = load_certificate(made.save(tmp_path / "cert"), model)
    assert loaded.threshold == np.inf


def test_the_record_says_everything(stored, certificate):
    content = json.loads((stored / "certificate.json").read_text())
    assert content["guarantee"]["alpha"] == content["guarantee"]["beta"] == "1/10"
    assert content["guarantee"]["views"] == content["guarantee"]["rank"] == len(HELD_OUT)
    assert [view["name"] for view in content["calibration"]] == HELD_OUT
    assert content["labels"]["ledger"] == [
        {"order": 0, "purpose": "calibration", "by": "certify", "views": HELD_OUT}
    ]
    assert content["renderer"]["name"] == "splatcert-cpu" and content["scene"]["sizes"]
    assert isinstance(certificate, Certificate) and Path(stored / "views.npz").is_file()
