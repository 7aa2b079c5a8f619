# SPDX-License-Identifier: Apache-2.0
"""Algorithm 1 as it runs: in which order, to the same bits, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from certified_capture import (
    HELD_OUT,
    NAMES,
    made_capture,
    made_model,
    made_photos,
    made_predictor,
    made_truth,
)
from certified_capture import certify_scene as certify
from splatcert import pipeline
from splatcert.certificate.hashes import seal_of
from splatcert.config import CertifyConfig, FieldConfig, LearnConfig
from splatcert.conformal.maps import MapError
from splatcert.deploy import verify
from splatcert.difficulty import predictor as predictors
from splatcert.pipeline import learn
from splatcert.refusals import (
    HeldOutError,
    PredictorSawTheseError,
    WrongModelError,
    refuse_known_photos,
)
from splatcert.report.words.summary import closing_lines
from splatcert.scales import named, training_views
from splatcert.scales.paper import PaperScale
from splatcert.scales.scale import FittedScale
from splatcert.scene.scene import Scene, TensorPixels, scene_from_tensors
from splatcert.splats.gaussians import Splats, SplatsError
from splatcert_bench.synthetic.scenes import random_splats


@pytest.fixture(scope="module")
def photos():
    return made_photos()


@pytest.fixture(scope="module")
def model() -> Splats:
    return made_model(made_truth())


@pytest.fixture
def scene(photos) -> Scene:
    return made_capture(photos)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, the certificate without its time stamp."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    content = json.loads(found["certificate.json"])
    del content["created"]
    found["certificate.json"] = json.dumps(content).encode()
    return found


def test_the_same_certificate_twice_and_for_any_number_of_threads(photos, model, tmp_path, threads):
    found = []
    for count in (1, 1, 2):
        threads(count)
        torch_threads = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            made = certify(made_capture(photos), model, predictor=None)
            found.append(contents(made.save(tmp_path / str(len(found)))))
        finally:
            torch.set_num_threads(torch_threads)
    assert found[0] == found[1] == found[2]
    assert set(found[0]) == {"certificate.json", "field.safetensors", "views.npz"}


def test_levels_may_be_written_in_any_way(photos, model):
    records = [
        certify(made_capture(photos), model, CertifyConfig(alpha=alpha, beta="10%"), None).record
        for alpha in ("1/5", "0.2")
    ]
    assert replace(records[0], created="") == replace(records[1], created="")
    assert records[0].guarantee.alpha == Fraction(1, 5)


def test_no_held_out_label_is_read_before_every_scale_is_frozen(scene, model, monkeypatch):
    events: list[str] = []
    twin = scene.held_out.reveal("evaluation", by="this test")
    hidden = {id(view.source.pixels) for view in twin}
    read, freeze = TensorPixels.image, FittedScale.freeze

    def watched(self):
        events.append("held-out label" if id(self.pixels) in hidden else "training label")
        return read(self)

    def frozen(self, *arguments, **options):
        scale = freeze(self, *arguments, **options)
        events.append("freeze")
        return scale

    monkeypatch.setattr(TensorPixels, "image", watched)
    monkeypatch.setattr(FittedScale, "freeze", frozen)
    record = certify(scene, model, predictor=None).record
    assert events.index("held-out label") > events.index("freeze")
    assert "training label" not in events[events.index("freeze") :]
    assert record.labels.handed_out_before == 1
    assert [entry.purpose for entry in record.labels.ledger] == ["evaluation", "calibration"]


def test_scores_are_oracle_factors_over_factors(scene, model):
    """eq:ratio-identity, on the stored tables."""
    made = certify(scene, model, predictor=None)
    lambda_b = made.record.scale.shape
    assert lambda_b == Fraction(1, 2) and made.rule.lambda_a == 0
    oracle = made.views.oracle("held-out", made.beta, lambda_b)
    factors = [view.factor for view in made.record.calibration]
    np.testing.assert_allclose(made.scores, oracle / factors, rtol=1e-12)


def test_training_views_are_described_by_the_other_folds(scene, model):
    views = certify(scene, model, predictor=None).views
    nearest = views.training.descriptors[:, views.schema.index("g_dnn")]
    assert (nearest > 0).all()
    assert np.isfinite(views.training.oracle).all() and np.isfinite(views.held_out.oracle).all()
    assert views.training.names == tuple(name for name in NAMES if name not in HELD_OUT)


def test_a_held_out_view_without_a_photo_is_described_but_does_not_calibrate(photos, model):
    cameras, pictures = photos
    without = {name: picture for name, picture in pictures.items() if name != HELD_OUT[1]}
    made = certify(scene_from_tensors(cameras, without, held_out=HELD_OUT), model, predictor=None)
    assert [view.name for view in made.record.unlabelled] == [HELD_OUT[1]]
    assert len(made.scores) == len(HELD_OUT) - 1
    assert np.isnan(made.views.held_out.oracle[1]).all()


def test_masked_pixels_do_not_count(photos, model):
    cameras, pictures = photos
    mask = torch.ones(40, 60, dtype=torch.bool)
    mask[:20] = False
    spoilt = {**pictures, HELD_OUT[0]: pictures[HELD_OUT[0]].clone()}
    spoilt[HELD_OUT[0]][:20] = 1 - spoilt[HELD_OUT[0]][:20]

    def score(images, masks):
        scene = scene_from_tensors(cameras, images, held_out=HELD_OUT, masks=masks)
        return certify(scene, model, predictor=None).scores[0]

    assert score(spoilt, {HELD_OUT[0]: mask}) == score(pictures, {HELD_OUT[0]: mask})
    assert score(spoilt, {}) > score(pictures, {})
    nothing = {HELD_OUT[0]: torch.zeros(40, 60, dtype=torch.bool)}
    with pytest.raises(MapError, match=rf"view '{HELD_OUT[0]}': no pixel counts"):
        score(pictures, nothing)


def test_with_masks_the_promise_is_about_the_pixels_that_count(photos, model, tmp_path):
    cameras, pictures = photos
    mask = torch.ones(40, 60, dtype=torch.bool)
    mask[:20] = False
    masks = {HELD_OUT[0]: mask, HELD_OUT[1]: torch.ones(40, 60, dtype=torch.bool)}
    scene = scene_from_tensors(cameras, pictures, held_out=HELD_OUT, masks=masks)
    made = certify(scene, model, predictor=None)
    assert ">= 90% of its pixels that count (masks) inside their boxes" in made.guarantee
    counted = made.record.guarantee.counted
    assert counted.masked_views == 1 and counted.share == pytest.approx(1 - 0.5 / len(HELD_OUT))
    assert (
        "on 1 of 12 calibration views; 95.8% of the pixels count"
        in closing_lines(made, tmp_path)["Masks"]
    )
    folder = made.save(tmp_path / "cert")
    assert verify(folder).passed
    path = folder / "certificate.json"
    content = json.loads(path.read_text())
    promise = content["guarantee"]
    promise["statement"] = promise["statement"].replace(" that count (masks)", "")
    promise["counted"] = {"masked_views": 0, "share": 1.0}
    path.write_text(json.dumps({**content, "seal": seal_of(content)}))
    assert [check.name for check in verify(folder).failures] == ["masks"]


def test_a_training_view_of_which_nothing_counts_is_described_but_not_measured(photos, model):
    cameras, pictures = photos
    nothing = {NAMES[1]: torch.zeros(40, 60, dtype=torch.bool)}
    scene = scene_from_tensors(cameras, pictures, held_out=HELD_OUT, masks=nothing)
    table = certify(scene, model, predictor=None).views.training
    assert np.isnan(table.oracle[0]).all() and np.isfinite(table.oracle[1:]).all()


def test_a_run_that_was_stopped_goes_on_from_its_field(photos, model, tmp_path, monkeypatch):
    whole = certify(made_capture(photos), model, predictor=None).save(tmp_path / "whole")

    def stop(*arguments):
        raise KeyboardInterrupt

    folder = tmp_path / "cert"
    folder.mkdir()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pipeline, "score_views", stop)
        certify(made_capture(photos), model, predictor=None, folder=folder)
    assert [path.name for path in folder.iterdir()] == [".field.safetensors"]

    with monkeypatch.context() as patch:
        patch.setattr(training_views, "fit_field", stop)
        certify(made_capture(photos), model, predictor=None, folder=folder).save(folder)
        assert contents(folder) == contents(whole)
        # A finished certificate's field serves as well, for other levels too.
        other = CertifyConfig(alpha="1/5")
        certify(made_capture(photos), model, other, None, folder=folder).save(folder)
    assert contents(folder) != contents(whole)


@pytest.mark.parametrize("change", ["damage", "settings", "model", "photos"])
def test_a_kept_field_of_something_else_is_not_used(photos, model, tmp_path, monkeypatch, change):
    certify(made_capture(photos), model, predictor=None, folder=tmp_path)
    config, cameras, pictures = CertifyConfig(), *photos
    if change == "damage":
        kept = tmp_path / ".field.safetensors"
        kept.write_bytes(kept.read_bytes()[:-7])
    elif change == "settings":
        config = CertifyConfig(field=FieldConfig(ridge=0.02))
    elif change == "model":
        model = made_model(made_truth(), seed=1)
    else:
        pictures = {**pictures, NAMES[1]: pictures[NAMES[1]] * 0.9}

    def refit(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training_views, "fit_field", refit)
    with pytest.raises(KeyboardInterrupt):
        certify(made_capture((cameras, pictures)), model, config, None, folder=tmp_path)


@pytest.mark.parametrize(
    ("held_out", "named"),
    [
        ([], "no photo of memory is held out"),
        (HELD_OUT[:1], "only 1 of 1 held-out views of memory have a photo; calibration requires"),
        (NAMES[1:], "1 training view is left"),
    ],
)
def test_too_few_views_are_refused(photos, model, held_out, named):
    with pytest.raises(HeldOutError, match=named) as told:
        certify(made_capture(photos, held_out), model)
    assert str(told.value).count("\n") < 5


def test_cameras_that_never_move_are_refused(photos, model):
    cameras, pictures = photos
    here = {name: cameras[NAMES[0]] for name in cameras}
    with pytest.raises(HeldOutError, match="all training cameras of memory are at one point"):
        certify(made_capture((here, pictures)), model)


def test_two_held_out_views_are_enough_for_an_honest_nothing(photos, model, tmp_path):
    made = certify(made_capture(photos, NAMES[:2]), model, CertifyConfig(alpha="1/3"), None)
    assert made.threshold == max(made.scores)
    assert verify(made.save(tmp_path / "cert")).passed


def test_labels_that_were_used_before_are_refused(scene, model):
    certify(scene, model, predictor=None)
    with pytest.raises(HeldOutError, match="the labels of 12 held-out views were already used"):
        certify(scene, model, predictor=None)


def test_splats_that_are_no_numbers_are_refused(scene, model):
    means = model.means.clone()
    means[7, 1] = torch.nan
    with pytest.raises(SplatsError, match="means: 1 of 400 Gaussians are not finite"):
        certify(scene, replace(model, means=means))


def test_splats_of_another_scene_are_refused_with_the_numbers(scene):
    with pytest.raises(WrongModelError, match=r"renders reach \d+\.\d dB, one flat colour") as told:
        certify(scene, random_splats(300, seed=1))
    assert "a different capture" in str(told.value) and str(told.value).count("\n") < 5
    assert not scene.held_out.ledger.entries


def learned(photos, model, views: str):
    made = certify(made_capture(photos), model, predictor=None)
    return learn([made.views], LearnConfig(views=views, splits=20))


def test_a_predictor_that_learned_from_these_held_out_labels_is_refused(photos, model):
    predictor = learned(photos, model, "held-out")
    scene = made_capture(photos)
    with pytest.raises(PredictorSawTheseError, match="learned from labels of 12 calibration views"):
        certify(scene, model, predictor=predictor)
    assert not scene.held_out.ledger.entries
    renamed = replace(made_capture(photos), path=Path("elsewhere"))
    with pytest.raises(PredictorSawTheseError, match="learned from labels of 12 calibration views"):
        certify(renamed, model, predictor=predictor)
    assert not renamed.held_out.ledger.entries, "known by its cameras, before any label"


def test_a_capture_that_the_package_learned_from_gets_another_predictor(
    photos, model, tmp_path, monkeypatch
):
    monkeypatch.setattr(predictors, "PREDICTORS", tmp_path)
    informed, blind = learned(photos, model, "held-out"), made_predictor()
    for name, predictor in {"default": informed, "strict": informed, "reverse": blind}.items():
        predictor.save(tmp_path / f"{name}.json")
    scene = made_capture(photos)
    assert named.chosen_predictor("default", scene)[0] == "reverse"
    assert not scene.held_out.ledger.entries, "chosen before any label"
    made = certify(scene, model)
    assert made.rule.predictor is not None and made.rule.predictor.sha256 == blind.sha256
    with pytest.raises(PredictorSawTheseError, match="learned from labels of 12 calibration views"):
        certify(made_capture(photos), model, predictor="strict")
    informed.save(tmp_path / "reverse.json")
    with pytest.raises(PredictorSawTheseError, match="learned from labels of 12 calibration views"):
        certify(made_capture(photos), model)


def test_no_photo_is_decoded_for_a_predictor_that_is_not_there(photos, monkeypatch):
    scene = made_capture(photos)
    views = scene.held_out.reveal("calibration", by="test")
    monkeypatch.setattr(type(views[0]), "image", lambda view: pytest.fail("decoded"))
    refuse_known_photos(PaperScale(None), scene, views)
    refuse_known_photos(PaperScale(made_predictor()), scene, views)


def test_a_test_path_that_made_scenes_share_is_no_reason_to_refuse(photos, model):
    """All scenes of NeRF's Blender set are tested from the same cameras."""
    predictor = learned(photos, model, "held-out")
    (row,) = predictor.card["scenes"]
    moved = {
        entry: f"0 {'0' * 16}" if entry.startswith("training ") else f"0 {text.split()[-1]}"
        for entry, text in row["hashes"].items()
    }
    card = {**predictor.card, "scenes": [{**row, "hashes": moved, "scene": "chair"}]}
    refuse_known_photos(PaperScale(replace(predictor, card=card)), made_capture(photos))
    card["scenes"][0]["scene"] = made_capture(photos).path.name
    with pytest.raises(PredictorSawTheseError, match="12 calibration views"):
        refuse_known_photos(PaperScale(replace(predictor, card=card)), made_capture(photos))


def test_a_predictor_that_learned_from_training_views_may_certify_the_scene(photos, model):
    predictor = learned(photos, model, "training")
    made = certify(made_capture(photos), model, predictor=predictor)
    assert made.rule.predictor is not None
    assert made.rule.predictor.sha256 == predictor.sha256


def test_the_same_photos_under_another_split_and_name_are_recognised(photos, model):
    """Training labels of one split are calibration labels of another."""
    predictor = learned(photos, model, "training")
    scene = made_capture(photos, NAMES[1::3])
    with pytest.raises(PredictorSawTheseError):
        certify(scene, model, predictor=predictor)
    renamed = replace(made_capture(photos, NAMES[1::3]), path=Path("elsewhere"))
    with pytest.raises(PredictorSawTheseError):
        certify(renamed, model, predictor=predictor)
