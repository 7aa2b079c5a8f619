# SPDX-License-Identifier: Apache-2.0
"""A certificate about stretches of a path: what calibrates, what is stored, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import splatcert as sc
from certified_capture import NAMES, made_capture, verify_scene
from splatcert.certificate.content.promise import VIEW, consecutive_stretches, promise_of
from splatcert.certificate.hashes import seal_of
from splatcert.certificate.store import read_certificate
from splatcert.conformal.levels import LevelError
from splatcert.conformal.path_conformal import PathError, stretch_score
from splatcert.conformal.ranks import order_statistic
from splatcert.refusals import HeldOutError
from splatcert.report.words.promise import applies_words, guarantee_words, path_guarantee
from splatcert.report.words.summary import closing_lines
from splatcert.storage.schema import to_plain
from splatcert.verification.offline import verify_folder

RUNS = (tuple(NAMES[2:6]), tuple(NAMES[13:17]), tuple(NAMES[17:21]), tuple(NAMES[26:30]))
LEFT = (NAMES[30], NAMES[33])
"""The fourth run has a fifth photo, and one photo stands alone."""
HELD_OUT = [name for run in (*RUNS, LEFT) for name in run]
LEVELS = sc.CertifyConfig(alpha="1/4", beta="1/10")


@pytest.fixture(scope="module")
def path_certificate(photos, model):
    return sc.certify(
        made_capture(photos, HELD_OUT),
        model,
        unseen=HELD_OUT,
        scale="constant",
        promise=sc.PathPromise(4, "1/4"),
        config=LEVELS,
    )


@pytest.fixture
def path_folder(path_certificate, tmp_path):
    return path_certificate.save(tmp_path / "cert")


def test_the_threshold_is_the_order_statistic_of_stretch_scores(path_certificate):
    record = path_certificate.record
    assert record.promise.kind == "path"
    assert record.promise.path.stretches == RUNS
    known = {view.name: view.score for view in record.calibration}
    scores = [stretch_score([known[name] for name in run], "1/4") for run in RUNS]
    assert record.guarantee.rank == 4
    assert path_certificate.threshold == order_statistic(scores, 4)
    assert record.splits is None


def test_photographs_that_fill_no_stretch_are_named_and_never_opened(path_certificate):
    record = path_certificate.record
    assert record.promise.path.unused == LEFT
    assert tuple(view.name for view in record.unlabelled) == LEFT
    (entry,) = record.labels.ledger
    assert entry.views == tuple(name for run in RUNS for name in run)
    assert "2 fill no run and are not used: 030.png, 033.png" in applies_words(path_certificate)


def test_it_is_said_in_whole_views(path_certificate, tmp_path):
    assert path_certificate.guarantee == (
        "With probability at least 75%, at least 3 of the 4 views of a new stretch have at least "
        "90% of their pixels inside their boxes, if the stretch is exchangeable with the 4 "
        "calibration stretches"
    )
    assert guarantee_words(path_certificate).startswith(
        "With probability ≥ 75%, ≥ 3 of the 4 views of a new stretch have ≥ 90%"
    )
    lines = closing_lines(path_certificate, tmp_path)
    assert lines["Estimate"] == "none: random splits of views do not test this promise"
    assert "not to every frame" in path_guarantee(path_certificate)["Applies to"]


def test_a_certificate_about_views_promises_nothing_about_a_path(certificate):
    assert certificate.record.promise == VIEW
    assert path_guarantee(certificate)["Guarantee"].startswith("None for a camera path")


def test_it_verifies_alone_and_from_scratch_and_predicts(path_folder, photos, model):
    assert verify_folder(path_folder).passed
    found = verify_scene(path_folder, made_capture(photos, HELD_OUT), model)
    assert found.passed, found.failures
    again = sc.load_certificate(path_folder, model)
    boxes = again.predict(again.record.calibration[0].camera)
    assert boxes.threshold == again.threshold
    assert again.at("1/3", "1/10").record.guarantee.rank == 4
    assert np.isinf(again.at("1/10", "1/10").threshold)


def reseal(folder, change) -> None:
    path = folder / "certificate.json"
    content = json.loads(path.read_text())
    change(content)
    content["seal"] = seal_of(content)
    path.write_text(json.dumps(content))


def swap(content) -> None:
    one, two = content["promise"]["path"]["stretches"][:2]
    one[0], two[0] = two[0], one[0]


@pytest.mark.parametrize(
    "change, failed",
    [
        (swap, {"promise"}),
        (lambda c: c["promise"]["path"].update(gamma="0/1"), {"levels", "threshold"}),
        (lambda c: c["promise"]["path"].update(length=3), {"format"}),
        (lambda c: c["promise"]["path"].update(gamma="5/1"), {"format"}),
        (lambda c: c["promise"]["path"]["stretches"].pop(), {"promise", "levels"}),
        (lambda c: c["promise"].update(to_plain(VIEW)), {"levels", "threshold"}),
        (lambda c: c["promise"]["path"]["unused"].append(NAMES[2]), {"promise"}),
    ],
)
def test_an_edited_promise_fails(path_folder, change, failed):
    reseal(path_folder, change)
    found = {check.name for check in verify_folder(path_folder).failures}
    assert failed <= found


def test_a_kind_without_its_entries_is_not_a_certificate(path_folder):
    reseal(path_folder, lambda c: c["promise"].update(path=None))
    with pytest.raises(sc.InputError, match="a promise of kind path does not have these entries"):
        read_certificate(path_folder)


def test_a_promise_about_other_views_is_not_read(path_folder):
    reseal(path_folder, lambda c: c["promise"]["path"]["stretches"].pop())
    with pytest.raises(sc.InputError, match="is not about the views"):
        read_certificate(path_folder)


def test_consecutive_means_neighbours_in_name_order_without_a_training_view_between():
    order = ["d", "b", "a", "c", "e", "f", "g"]
    found = consecutive_stretches(order, ["a", "b", "d", "e", "f"], 2)
    assert (found.runs, found.dropped) == ((("a", "b"), ("d", "e")), ("f",))
    assert consecutive_stretches(order, ["a", "c", "e"], 2).runs == ()


LEVEL = Fraction(1, 10)


def test_every_eighth_photo_has_no_stretch_and_a_hold_out_that_has_is_named():
    order = [f"{k:03d}" for k in range(128)]
    with pytest.raises(PathError) as refused:
        promise_of(sc.PathPromise(5, "1/5"), order, order[::8], LEVEL, LEVEL)
    assert str(refused.value) == (
        "16 held-out photos contain 0 stretches of 5 consecutive photos; alpha = 1/10 requires "
        "9.\n  Consecutive photos are neighbours in name order, with no training photo between "
        "them.\n  Train again with runs held out: --holdout block5of14."
    )


def test_the_smallest_numbers_that_would_do_are_named():
    order = [f"{k:03d}" for k in range(60)]
    held_out = [name for k, name in enumerate(order) if k % 6 < 4][:36]
    with pytest.raises(PathError, match=r"Use stretches of 4 views; or train again .*block5of6"):
        promise_of(sc.PathPromise(5, 0), order, held_out, LEVEL, LEVEL)
    assert promise_of(sc.PathPromise(4, 0), order, held_out, LEVEL, LEVEL).units(36) == 9
    few = r"Use stretches of 2 views; or use alpha >= 1/6; or .* 9 stretches take 36 photos"
    with pytest.raises(PathError, match=few):
        promise_of(sc.PathPromise(4, 0), order[:30], held_out[:20], LEVEL, LEVEL)


@pytest.mark.parametrize(
    "asked, error",
    [
        (sc.PathPromise(5, "1/6"), PathError),
        (sc.PathPromise(1, 0), PathError),
        (sc.PathPromise(5, "2"), LevelError),
    ],
)
def test_a_promise_that_makes_no_sense_is_refused(asked, error):
    with pytest.raises(error):
        promise_of(asked, NAMES, NAMES, LEVEL, LEVEL)


def test_a_batch_cannot_promise_a_new_stretch(photos, model):
    config = replace(LEVELS, unit="batch")
    options = {"unseen": HELD_OUT, "promise": sc.PathPromise(4, 0), "config": config}
    with pytest.raises(HeldOutError, match="unit batch covers only the held-out views"):
        sc.certify(made_capture(photos, HELD_OUT), model, scale="paper", **options)
