# SPDX-License-Identifier: Apache-2.0
"""A certificate holds, and one that was altered does not, however carefully."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certified_capture import HELD_OUT, NAMES, made_capture, made_model, made_truth, verify_scene
from splatcert import cli
from splatcert.certificate.certificate import CertificateError
from splatcert.certificate.content.record import Record
from splatcert.certificate.diagnostics import estimate_by_splits
from splatcert.certificate.hashes import freeze_hash, seal_of
from splatcert.certificate.sights import strangeness_limit
from splatcert.deploy import load_certificate
from splatcert.difficulty.rule import FactorRule
from splatcert.difficulty.views_file import SceneViews
from splatcert.storage.schema import from_plain, to_plain
from splatcert.storage.whole import file_hash as hash_of
from splatcert.verification.checks import differences
from splatcert.verification.offline import verify_folder
from splatcert.verification.recompute import APART, compare
from splatcert.verification.tolerances import SAME_PIXELS

Edit = Callable[[dict[str, Any]], Any]


def edit(folder: Path, change: Edit, *, reseal: bool) -> None:
    path = folder / "certificate.json"
    content = json.loads(path.read_text())
    change(content)
    if reseal:
        content["seal"] = seal_of(content)
    path.write_text(json.dumps(content, indent=1))


def failed(folder: Path) -> set[str]:
    return {check.name for check in verify_folder(folder).failures}


def test_ours_is_accepted(stored):
    found = verify_folder(stored)
    assert found.passed, found.failures
    assert len(found.checks) == 19
    assert all("\n" not in check.detail for check in found.checks)


def test_ours_is_accepted_against_its_data(stored, photos, model):
    found = verify_scene(stored, made_capture(photos), model)
    assert found.passed, found.failures
    assert "new scores" in [check.name for check in found.checks]


def score(content):
    content["calibration"][3]["score"] *= 1.001


def threshold(content):
    content["guarantee"]["threshold"] *= 0.5


def level(content):
    content["guarantee"]["alpha"] = "1/5"


def pixel_level(content):
    content["guarantee"]["beta"] = content["config"]["beta"] = "1/5"


def splats_hash(content):
    content["model"]["splats"] = "0" * 64


def image_hash(content):
    content["calibration"][0]["image"] = "0" * 64


def file_hash(content):
    content["files"]["views.npz"] = "0" * 64


def role_list(content):
    content["calibration"].pop()


def both_roles(content):
    view = dict(content["calibration"][0])
    for name in ("field", "factor", "score"):
        del view[name]
    content["training"].append(view)


def factor(content):
    content["calibration"][0]["factor"] *= 1.01


def early_labels(content):
    content["labels"]["handed_out_before"] = 5


def twice_handed(content):
    entry = dict(content["labels"]["ledger"][0], order=1)
    content["labels"]["ledger"].append(entry)


def camera(content):
    content["calibration"][0]["camera"]["fx"] += 1


def extent(content):
    content["scene"]["extent"] *= 4


def statement(content):
    content["guarantee"]["statement"] = "everything is certain"


def masks(content):
    content["guarantee"]["counted"]["masked_views"] = 1


def p_value(content):
    content["evenness"]["p_value"] = 0.9


def limits(content):
    content["strangeness"]["limit"] = 300.0


def estimate(content):
    content["splits"]["scales"]["a b~"]["coverage"] = 1.0


ALTERED = {
    score: {"scores"},
    threshold: {"threshold", "second threshold"},
    level: {"levels"},
    pixel_level: {"levels", "scores"},
    splats_hash: {"inputs"},
    image_hash: {"inputs"},
    file_hash: {"files"},
    role_list: {"levels", "roles", "labels"},
    both_roles: {"roles"},
    factor: {"scale", "labels"},
    early_labels: {"labels"},
    twice_handed: {"labels"},
    camera: {"roles", "labels"},
    extent: {"extent"},
    statement: {"levels"},
    masks: {"masks", "levels"},
    p_value: {"diagnostics"},
    limits: {"diagnostics"},
    estimate: {"diagnostics"},
}


@pytest.mark.parametrize("change", ALTERED, ids=lambda change: change.__name__)
def test_an_altered_entry_breaks_the_seal(folder, change):
    edit(folder, change, reseal=False)
    assert "seal" in failed(folder)
    with pytest.raises(CertificateError, match="has been edited: its seal does not match"):
        load_certificate(folder)


@pytest.mark.parametrize("change", ALTERED, ids=lambda change: change.__name__)
def test_an_altered_entry_is_found_even_under_a_new_seal(folder, change):
    edit(folder, change, reseal=True)
    assert ALTERED[change] <= failed(folder)
    assert "seal" not in failed(folder)


def test_the_time_stamp_is_under_no_seal(folder):
    edit(folder, lambda content: content.update(created="yesterday"), reseal=False)
    assert verify_folder(folder).passed


@pytest.mark.parametrize("name", ["field.safetensors", "views.npz"])
def test_another_file_is_found(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert "files" in failed(folder)
    path.unlink()
    assert "files" in failed(folder)


def consistent_forgery(content: dict[str, Any], folder: Path) -> None:
    """Half the widths: scores, threshold and views.npz agree with each other, not with photos."""
    arrays = dict(np.load(folder / "views.npz"))
    arrays["held_out_oracle"] = arrays["held_out_oracle"] / 2
    np.savez(folder / "views.npz", **arrays)
    for view in content["calibration"]:
        view["score"] /= 2
    content["guarantee"]["threshold"] /= 2
    for one in content["splits"]["scales"].values():
        one["width"] /= 2
    content["files"]["views.npz"] = hash_of(folder / "views.npz")


def test_a_consistent_forgery_passes_alone_and_fails_against_the_photos(folder, photos, model):
    """What a seal without a key cannot do, and what recomputing can."""
    edit(folder, lambda content: consistent_forgery(content, folder), reseal=True)
    assert verify_folder(folder).passed
    found = verify_scene(folder, made_capture(photos), model)
    assert {"new scores", "new q", "numbers"} <= {check.name for check in found.failures}


def shifted_units(content: dict[str, Any], folder: Path) -> None:
    """Other units of the descriptor: factors and oracle factors follow, scores stay."""
    arrays = dict(np.load(folder / "views.npz"))
    arrays["training_descriptors"] = arrays["training_descriptors"].copy()
    arrays["training_descriptors"][:, 2] += 3 * arrays["training_descriptors"][:, 2].std()
    record = from_plain(Record, content)
    parameters = record.scale.parameters
    rule = FactorRule.freeze(
        FactorRule.of(parameters).predictor,
        arrays["training_descriptors"],
        arrays["held_out_descriptors"],
        parameters["unit"],
    )
    factors = rule.factors(arrays["held_out_descriptors"])
    old = np.array([view.factor for view in record.calibration])
    assert not np.allclose(old, factors, rtol=1e-2)
    arrays["held_out_oracle"] = arrays["held_out_oracle"] * (factors / old)[:, None, None]
    np.savez(folder / "views.npz", **arrays)
    calibration = tuple(
        replace(view, factor=float(factor))
        for view, factor in zip(record.calibration, factors, strict=True)
    )
    views = SceneViews.load(folder / "views.npz")
    splits = estimate_by_splits(
        views,
        {view.name: view.factor for view in calibration},
        (record.guarantee.alpha, record.guarantee.beta),
        record.scale.shape,
        splits=record.config.splits,
        seed=record.config.seed,
    )
    scale = replace(record.scale, parameters=rule.parameters(), bounds=rule.bounds)
    labels = replace(record.labels, frozen=freeze_hash(scale, calibration))
    limit = strangeness_limit(scale, record.training, calibration, views, record.scene.extent)
    forged = replace(
        record,
        scale=scale,
        calibration=calibration,
        splits=splits,
        labels=labels,
        strangeness=limit,
    )
    content |= to_plain(forged)
    content["files"]["views.npz"] = hash_of(folder / "views.npz")


def test_other_units_with_the_same_scores_fail_against_the_photos(folder, photos, model):
    """The threshold is right, the boxes of a new camera are not."""
    edit(folder, lambda content: shifted_units(content, folder), reseal=True)
    assert not failed(folder)
    found = verify_scene(folder, made_capture(photos), model)
    told = {check.name: check.detail for check in found.failures}
    assert told.keys() == {"new factors", "half-widths", "entries", "numbers"}
    assert "factor" in told["entries"] and "training descriptors" in told["numbers"]


def test_every_entry_that_can_be_computed_again_is_compared(certificate):
    """One at a time, each number and text of the record differs from the recomputed one."""
    plain = to_plain(certificate.record)
    for change, place in (
        (lambda c: c["scale"].update(reference=2.0), "scale.reference"),
        (lambda c: c["scene"].update(extent=4.0), "scene.extent"),
        (lambda c: c["calibration"][1].update(factor=0.5), f"calibration[{HELD_OUT[1]}].factor"),
        (lambda c: c["training"][0].update(file="0" * 64), f"training[{NAMES[1]}].file"),
        (lambda c: c["guarantee"].update(threshold="inf"), "guarantee.threshold"),
        (lambda c: c["renderer"].update(version="9"), "renderer.version"),
    ):
        content = json.loads(json.dumps(plain))
        change(content)
        assert list(differences(content, plain, SAME_PIXELS.near, apart=APART)) == [place]
    assert not list(differences(plain, plain, SAME_PIXELS.near))


def test_a_finite_threshold_is_not_an_infinite_one(certificate):
    promise = replace(certificate.record.guarantee, threshold=float("inf"))
    unbounded = replace(certificate, record=replace(certificate.record, guarantee=promise))
    for pair in ((certificate, unbounded), (unbounded, certificate)):
        assert not {check.name: check.passed for check in compare(*pair)}["new q"]
    assert {check.name: check.passed for check in compare(unbounded, unbounded)}["new q"]


def test_another_photo_is_named(stored, photos, model):
    cameras, pictures = photos
    other = {**pictures, HELD_OUT[2]: pictures[HELD_OUT[2]].flip(1)}
    found = verify_scene(stored, made_capture((cameras, other)), model)
    failures = {check.name: check.detail for check in found.failures}
    assert HELD_OUT[2] in failures["photos"]
    assert HELD_OUT[2] in failures["new scores"]


def test_another_model_or_split_is_named(stored, photos):
    found = verify_scene(stored, made_capture(photos), made_model(made_truth(), seed=1))
    assert "these are not the splats" in {c.name: c.detail for c in found.failures}["model"]
    found = verify_scene(stored, made_capture(photos, NAMES[1::3]), made_model(made_truth()))
    assert "views" in {check.name for check in found.failures}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "is not valid JSON"),
        ("[]", "not a JSON object"),
        ('{"format": "splatcert certificate", "schema": 99}', "schema 99"),
        ('{"format": "splatcert certificate", "schema": 4}', "calibration is missing"),
    ],
)
def test_a_damaged_certificate_is_one_failed_check(folder, text, named):
    (folder / "certificate.json").write_text(text)
    (check,) = verify_folder(folder).checks
    assert check.name == "format" and not check.passed and named in check.detail
    with pytest.raises(CertificateError, match=named):
        load_certificate(folder)


def literal_nan(content):
    content["evenness"]["p_value"] = float("nan")


def beyond_floats(content):
    content["scale"]["parameters"]["reference"] = 10**400


def short_pose(content):
    content["training"][0]["camera"]["world_to_camera"].pop()


def no_pixels(content):
    content["training"][0]["camera"]["width"] = 10**30


def zero_factor(content):
    content["calibration"][0]["factor"] = 0


def no_score(content):
    content["calibration"][0]["score"] = "nan"


def no_calibration(content):
    content["calibration"] = []


def renamed_view(content):
    content["calibration"][0]["name"] = "elsewhere.png"


def half_a_character(content):
    content["training"][0]["name"] = "\ud800"


def zero_units(content):
    scale = content["scale"]["parameters"]
    scale["feature_stds"] = [0.0] * len(scale["features"])


SENSELESS = {
    literal_nan: "NaN is not a JSON number",
    beyond_floats: "scale.reference is beyond the largest number",
    short_pose: r"training[0].camera: a pose has 12 numbers, got 11",
    no_pixels: "training[0].camera: a camera",
    zero_factor: "calibration[0]: the factor must be 1e-30 to 1e+30, got 0.0",
    no_score: "calibration[0]: the score must be 0 to 1e+30, or infinite, got nan",
    no_calibration: "calibration must name at least one view",
    half_a_character: "training[0].name must be text",
    renamed_view: "",
    zero_units: "",
}


@pytest.mark.parametrize("change", SENSELESS, ids=lambda change: change.__name__)
def test_senseless_entries_are_failed_checks_and_no_fault_of_ours(folder, change, photos, model):
    path = folder / "certificate.json"
    content = json.loads(path.read_text())
    change(content)
    if change is not literal_nan:
        content["seal"] = seal_of(content)
    path.write_text(json.dumps(content))
    found = verify_scene(folder, made_capture(photos), model)
    assert not found.passed
    assert cli.main(["verify", str(folder)]) == 2
    if named := SENSELESS[change]:
        assert named in found.failures[0].detail
        with pytest.raises(CertificateError, match=re.escape(named)):
            load_certificate(folder)
