# SPDX-License-Identifier: Apache-2.0
"""The guided scale: certified like any other, and bound to the training photographs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import splatcert as sc
from certified_capture import (
    HELD_OUT,
    NAMES,
    made_capture,
    made_model,
    made_photos,
    made_truth,
)
from splatcert.capture import Capture
from splatcert.certificate.hashes import has_known_origin, place_mark
from splatcert.config import FieldConfig
from splatcert.deploy import with_model
from splatcert.difficulty.guided.guide import (
    FEATURES,
    Guide,
    GuideError,
    guide_from_json,
    load_guide,
    shipped_guide,
)
from splatcert.raster.render import render
from splatcert.refusals import PredictorSawTheseError
from splatcert.scales import named
from splatcert.scales.guided import NO_WITNESS, GuidedScale
from splatcert.scales.named import chosen_guide
from splatcert.storage.memory import MemoryLimitError
from splatcert.storage.schema import to_plain
from splatcert.witnesses import album
from splatcert.witnesses.photos import PhotosError
from view_kinds import ready

WEIGHTS = {"field": 0.3, "residual": 0.2, "clash": 0.2, "scatter": 0.1, "count": -0.1}


def made_guide(**changed: object) -> Guide:
    weights = tuple(WEIGHTS.get(name, 0.0) for name in FEATURES)
    known: dict = {"weights": weights, "intercept": -0.5, "floor": 0.002, "power": 1.5}
    return Guide(**{**known, "gate": (4.0, -1.0, -3.0), "beta": "1/10", **changed})


@pytest.fixture(scope="module")
def photos():
    return made_photos()


@pytest.fixture(scope="module")
def model():
    return made_model(made_truth())


@pytest.fixture(scope="module", params=["render", "corrected"])
def certified(request, photos, model, tmp_path_factory):
    scale = GuidedScale(made_guide(), request.param)
    made = sc.certify(made_capture(photos), model, unseen=HELD_OUT, scale=scale)
    return made, made.save(tmp_path_factory.mktemp("guided") / "cert")


def test_a_guided_certificate_is_sealed_verified_and_predicts(certified, photos, model):
    made, folder = certified
    assert made.record.scale.needs_photos and made.record.scale.name == "guided"
    assert made.record.labels.handed_out_before == 0
    found = sc.verify(folder, Capture.in_memory(made_capture(photos), model, unseen=HELD_OUT))
    assert found.passed, found.failures
    loaded = sc.load_certificate(folder, model, scene=made_capture(photos))
    inside = []
    for name in HELD_OUT:
        boxes, direct = loaded.predict(photos[0][name]), made.predict(photos[0][name])
        assert torch.equal(boxes.half_width, direct.half_width)
        assert torch.equal(boxes.center, direct.center)
        inside.append(float(boxes.contains(photos[1][name]).double().mean()))
    assert sum(share >= 0.9 for share in inside) >= loaded.record.guarantee.rank
    assert made.predict(photos[0][HELD_OUT[0]]).half_width.std() > 0


def test_a_gpu_asks_the_photographs_on_the_device(certified, photos, model, monkeypatch):
    """Carried over with its photographs, q and boxes agree, and no native kernel is asked."""
    made, folder = certified
    monkeypatch.setattr(album, "ask", None)
    carried = sc.load_certificate(folder, model, scene=made_capture(photos), backend=ready("gpu"))
    assert carried.threshold == pytest.approx(made.threshold, rel=1e-4)
    monkeypatch.undo()
    for name in HELD_OUT[:3]:
        boxes, direct = carried.predict(photos[0][name]), made.predict(photos[0][name])
        apart = (boxes.half_width - direct.half_width).abs()
        assert float(apart.median()) < 1e-6
        assert float((boxes.center - direct.center).abs().median()) < 1e-6


def test_the_corrected_centre_is_what_boxes_lie_around(certified, photos, model):
    made, _ = certified
    camera = photos[0][HELD_OUT[0]]
    plain = render(model, camera).rgb.clamp(0, 1)
    same = torch.allclose(made.predict(camera).center, plain, atol=1e-6)
    assert same == (made.record.center == "render")


def test_photographs_that_are_not_the_certified_ones_are_refused_by_name(certified, photos, model):
    _, folder = certified
    views, stored = list(made_capture(photos).training), sc.load_certificate(folder)
    with pytest.raises(PhotosError, match="were not given"):
        sc.load_certificate(folder, model)
    with pytest.raises(PhotosError, match=f"1 of 24 training photos is missing: {views[3].name}"):
        with_model(stored, model, photos=views[:3] + views[4:])
    cameras, pictures = photos
    changed = dict(pictures) | {views[5].name: pictures[views[5].name].flip(0)}
    others = made_capture((cameras, changed)).training
    with pytest.raises(PhotosError, match=f"have changed: {views[5].name}"):
        with_model(stored, model, photos=others)
    smaller = [replace(v, camera=v.camera.resized(30, 20)) for v in views]
    with pytest.raises(PhotosError, match=f"{views[0].name} is 30 x 20 pixels here"):
        with_model(stored, model, photos=smaller)
    assert sc.load_certificate(folder).threshold > 0  # it can still be read


def test_more_photographs_than_memory_holds_are_refused_before_any_work(photos, model, monkeypatch):
    monkeypatch.setenv("SPLATCERT_MEMORY_GIB", "1e-5")
    capture = made_capture(photos)
    with pytest.raises(MemoryLimitError, match="--scale paper keeps none"):
        sc.certify(capture, model, unseen=HELD_OUT, scale=GuidedScale(made_guide()))
    assert not capture.held_out.ledger.entries


def test_a_photograph_never_speaks_about_its_own_view(photos, model):
    """Scale and centre of a training camera do not change with its own photograph."""
    cameras, pictures = photos
    name = next(name for name in NAMES if name not in HELD_OUT)
    changed = dict(pictures) | {name: 1 - pictures[name]}
    maps = []
    for shown in (pictures, changed):
        scene = made_capture((cameras, shown))
        capture = Capture.in_memory(scene, model, unseen=HELD_OUT)
        side = capture.training_side(FieldConfig(), "cpu", ())
        fitted = sc.certify(made_capture(photos), model, unseen=HELD_OUT, scale="constant").fitted
        scale = GuidedScale(made_guide(), "corrected").prepared(side.views, fitted, "cpu")
        maps.append(scale.look(fitted, cameras[name], "cpu"))
    assert torch.equal(maps[0].field, maps[1].field)
    assert torch.equal(maps[0].center, maps[1].center)


def test_a_camera_without_witness_gets_the_field_and_says_so(certified, photos):
    made, _ = certified
    away = np.diag([-1.0, 1.0, -1.0, 1.0]) @ photos[0][NAMES[0]].world_to_camera
    camera = replace(photos[0][NAMES[0]], world_to_camera=away)
    boxes = made.predict(camera)
    assert not boxes.flag.inside and NO_WITNESS in boxes.flag.reasons
    field = made.fitted.query(camera, holes="wide").field
    assert torch.allclose(boxes.half_width / boxes.half_width.mean(), field / field.mean())


def test_boxes_are_wide_where_the_model_shows_nothing(certified, photos):
    """The prior is added by the square of the share of light that passes."""
    made, _ = certified
    scale, camera = made.scale.scale, photos[0][HELD_OUT[0]]
    camera = replace(camera, fx=camera.fx / 4, fy=camera.fy / 4)
    wide, paper = (
        replace(scale, holes=holes).look(made.fitted, camera, "cpu") for holes in ("wide", "paper")
    )
    passing = 1 - render(made.fitted.splats, camera).alpha.reshape(wide.field.shape)
    assert passing.max() > 0.05
    added = passing.square() * made.fitted.field.prior
    assert torch.allclose(wide.field - paper.field, added, atol=1e-5)
    assert wide.field_mean == pytest.approx(float(wide.field.double().mean()), rel=1e-6)
    assert made.record.scale.holes == "wide"


def test_a_guide_is_read_safely(tmp_path):
    made_guide().save(tmp_path / "guide.json")
    assert load_guide(tmp_path / "guide.json").sha256 == made_guide().sha256
    plain = to_plain(made_guide())
    for entry, value in (
        ("weights", [1.0]),
        ("weights", [1e9] * len(FEATURES)),
        ("features", ["other"]),
        ("floor", 2.0),
        ("gate", [1.0]),
        ("power", "1"),
        ("beta", "3"),
        ("version", 7),
        ("extra", 1),
    ):
        with pytest.raises(GuideError):
            guide_from_json({**plain, entry: value}, "the guide")
    with pytest.raises(GuideError, match="is not a guide"):
        guide_from_json([], "a list")


def test_the_guides_in_the_package_say_where_they_come_from():
    """Both name the photographs of their sources; only one learned from held-out ones."""
    for guide, views in (
        (shipped_guide("guide"), "held-out"),
        (shipped_guide("guide-training"), "training"),
    ):
        card = guide.card
        assert card["views"] == views and has_known_origin(card)
        assert len(card["scenes"]) == 10


def test_a_guide_that_learned_from_held_out_views_gives_way_to_one_that_has_not(
    photos, monkeypatch
):
    scene = made_capture(photos)
    assert chosen_guide(scene)[0] == "guide"
    marks = {f"held-out {n}": f"0 {place_mark(photos[0][n])}" for n in HELD_OUT}
    row = {"scene": scene.path.name, "hashes": marks}
    seen = made_guide(card={"views": "held-out", "scenes": [row]})
    with pytest.raises(PredictorSawTheseError):
        sc.certify(scene, made_model(made_truth()), unseen=HELD_OUT, scale=GuidedScale(seen))
    shipped = {"guide": seen, "guide-training": made_guide()}
    monkeypatch.setattr(named, "shipped_guide", lambda name="guide": shipped[name])
    assert chosen_guide(scene) == ("guide-training", shipped["guide-training"])
