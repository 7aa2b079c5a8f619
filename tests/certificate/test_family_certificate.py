# SPDX-License-Identifier: Apache-2.0
"""A family of certificates: one promise for all members, stored, verified, and refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import splatcert as sc
from certified_capture import HELD_OUT, made_capture, made_model, made_truth
from certified_capture import NAMES as NAMED
from splatcert.capture import Capture
from splatcert.certificate.certificate import CertificateError
from splatcert.certificate.family import read_family
from splatcert.certificate.hashes import seal_of
from splatcert.conformal.family_conformal import FamilyError, member_threshold
from splatcert.conformal.path_conformal import PathError, stretch_score
from splatcert.conformal.ranks import order_statistic, outer_rank
from splatcert.families.candidates import member_name
from splatcert.refusals import WrongModelError
from splatcert.splats.gaussians import Splats
from splatcert.verification.family_checks import unit_of

NAMES = ["full-paper", "full-constant", "pruned-paper", "pruned-constant"]


def pruned(model: Splats) -> Splats:
    """Without the fifth of the Gaussians with the smallest opacity."""
    opacities = model.logit_opacities.ravel()
    return model[opacities >= opacities.quantile(0.2)]


@pytest.fixture(scope="module")
def models(model):
    return {"full": model, "pruned": pruned(model)}


def captures(photos, models) -> dict[str, Capture]:
    return {
        name: Capture.in_memory(made_capture(photos), one, unseen=HELD_OUT)
        for name, one in models.items()
    }


@pytest.fixture(scope="module")
def family(photos, models) -> sc.Family:
    return sc.certify_family(captures(photos, models), scales=["paper", "constant"])


@pytest.fixture(scope="module")
def stored(family, tmp_path_factory) -> Path:
    """The family's folder, not to be changed."""
    return family.save(tmp_path_factory.mktemp("stored") / "family")


@pytest.fixture
def folder(stored, tmp_path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "family"))


def test_one_rank_for_all_members_each_in_its_unit(family):
    assert list(family) == NAMES
    record = family.record
    scores = {n: {v.name: v.score for v in one.record.calibration} for n, one in family.items()}
    worst = {
        view: max(scores[one.name][view] / one.unit for one in record.members)
        for view in record.scores
    }
    assert record.scores == worst
    rank = outer_rank(len(worst), Fraction(1, 10))
    assert record.threshold == order_statistic(list(worst.values()), rank)
    for one in record.members:
        assert family[one.name].threshold == one.threshold
        assert one.threshold == member_threshold(record.threshold, one.unit)
        mine = np.array(list(scores[one.name].values()))
        covered = np.array(list(worst.values())) <= record.threshold
        assert (mine <= one.threshold)[covered].all()
        assert one.alone == order_statistic(mine, rank)


def test_units_are_medians_of_training_scores(family):
    for one in family.record.members:
        assert one.unit == pytest.approx(unit_of(family[one.name]), rel=1e-12)


def test_labels_are_opened_once_for_all(family):
    for one in family.values():
        labels = one.record.labels
        assert [(e.purpose, len(e.views)) for e in labels.ledger] == [("calibration", 12)]
        assert labels.handed_out_before == 0


def test_the_promise_is_about_all_members(family):
    assert family.guarantee == (
        "With probability at least 90%, each of the 4 candidates (full-paper, full-constant, "
        "pruned-paper, pruned-constant) has at least 90% of the pixels of a new view inside its "
        "boxes, if the view is exchangeable with the 12 calibration views; any of them may be "
        "chosen afterwards"
    )
    assert family.first.record.splits is None


def test_members_of_one_model_share_their_field(family):
    one, two = family["full-paper"].field, family["full-constant"].field
    assert one.coefficients.tobytes() == two.coefficients.tobytes()


def test_the_field_of_a_model_is_stored_once(stored, folder):
    places = [(stored / name / "field.safetensors").stat().st_ino for name in NAMES]
    assert places[0] == places[1] != places[2] == places[3]
    # A copy made by any tool is a family too, with or without links.
    assert sc.verify(folder).passed


def test_it_is_stored_loaded_and_predicts_with_any_member(stored, models):
    assert sorted(p.name for p in stored.iterdir()) == sorted([*NAMES, "family.json"])
    for name in NAMES:
        model = models[name.partition("-")[0]]
        one = sc.load_certificate(stored, model, member=name)
        boxes = one.predict(one.record.calibration[0].camera)
        assert boxes.threshold == one.threshold
        assert one.at("1/5", "1/10").threshold <= one.threshold
        with pytest.raises(CertificateError, match="known at beta = 1/10 only"):
            one.at("1/10", "1/20")
    first = sc.load_certificate(stored)
    assert first.record.promise.family.member == NAMES[0]
    alone = sc.load_certificate(stored / NAMES[3])
    assert alone.record.promise.family.member == NAMES[3]


def test_it_verifies_alone_and_from_scratch(stored, photos, models):
    assert sc.verify(stored).passed
    found = sc.verify(stored, list(captures(photos, models).values()))
    assert found.passed, found.failures
    assert {"full-paper: new scores", "pruned-constant: new q"} <= {c.name for c in found.checks}
    one = sc.verify(stored, captures(photos, models)["full"])
    assert [check.name for check in one.failures] == ["models"]


def edit(path: Path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    content["seal"] = seal_of(content)
    path.write_text(json.dumps(content))


def reseal(folder: Path, change, names=NAMES) -> None:
    """Edit members and seal everything again, as a forger would."""
    for name in names:
        edit(folder / name / "certificate.json", change)
    from splatcert.storage.whole import file_hash

    known = json.loads((folder / "family.json").read_text())["members"]
    hashes = {name: file_hash(folder / name / "certificate.json") for name in known}
    edit(folder / "family.json", lambda content: content.update(members=hashes))


def halve_units(content) -> None:
    """A consistent lie: every unit and threshold halved, scores doubled."""
    family = content["promise"]["family"]
    family["threshold"] *= 2
    for one in family["members"]:
        one["unit"] /= 2
    for view in family["scores"]:
        family["scores"][view] *= 2


def raise_price(content) -> None:
    content["promise"]["family"]["members"][1]["alone"] *= 1.5


@pytest.mark.parametrize("change, failed", [(halve_units, "units"), (raise_price, "threshold")])
def test_a_family_that_was_resealed_fails(folder, change, failed):
    reseal(folder, change)
    found = sc.verify(folder)
    assert failed in {check.name for check in found.failures}, found.checks


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"members": {"../up": "0", "b": "1"}},
        {"members": {"a": "0"}},
        {"schema": 2},
        {"format": "splatcert certificate"},
    ],
)
def test_a_malformed_family_is_refused(stored, tmp_path, content):
    known = json.loads((stored / "family.json").read_text())
    edited = {**known, **content} if content else content
    (tmp_path / "family.json").write_text(json.dumps(edited))
    with pytest.raises(CertificateError, match="is not a valid family"):
        sc.load_certificate(tmp_path)
    assert not sc.verify(tmp_path).passed


def test_a_member_that_lists_another_family_fails(folder):
    reseal(folder, raise_price, NAMES[:1])
    assert "views" in {check.name for check in sc.verify(folder).failures}


def test_an_exchanged_member_is_refused_and_fails(folder):
    shutil.rmtree(folder / NAMES[1])
    shutil.copytree(folder / NAMES[0], folder / NAMES[1])
    with pytest.raises(CertificateError, match="member full-constant is not the one"):
        sc.load_certificate(folder, member=NAMES[1])
    assert "family" in {check.name for check in sc.verify(folder).failures}
    with pytest.raises(CertificateError):
        read_family(folder)


def test_a_member_that_is_not_there_is_refused_by_name(stored, certificate, tmp_path):
    with pytest.raises(CertificateError, match=r"no member 'tiny'(.|\n)*Its members: full-paper"):
        sc.load_certificate(stored, member="tiny")
    single = certificate.save(tmp_path / "single")
    with pytest.raises(CertificateError, match="is not a family of certificates"):
        sc.load_certificate(single, member="full")


def test_a_family_does_not_replace_a_single_certificate(family, certificate, tmp_path):
    folder = certificate.save(tmp_path / "cert")
    with pytest.raises(CertificateError, match="holds a certificate of a single model"):
        family.save(folder)


def test_a_family_of_one_is_refused(photos, models):
    with pytest.raises(FamilyError, match="a family has 2 to 100 candidates, got 1"):
        sc.certify_family(captures(photos, {"full": models["full"]}))


def test_too_few_views_are_refused_with_the_smallest_number_that_would_do(photos, models):
    with pytest.raises(FamilyError, match=r"Hold out at least 7 more views, or use alpha >= 1/13"):
        sc.certify_family(captures(photos, models), config=sc.CertifyConfig(alpha="1/20"))


def test_candidates_must_share_their_photographs(photos, model):
    few = [name for name in HELD_OUT if name != HELD_OUT[0]]
    other = Capture.in_memory(made_capture(photos, few), pruned(model), unseen=few)
    mixed = {**captures(photos, {"full": model}), "pruned": other}
    with pytest.raises(FamilyError, match=r"different views or cameras: 000\.png"):
        sc.certify_family(mixed)


def test_every_candidate_is_looked_at_before_any_work(photos, model):
    wrong = replace(made_model(made_truth()), means=model.means + 50)
    with pytest.raises(WrongModelError):
        sc.certify_family(captures(photos, {"full": model, "wrong": wrong}))


RUNS = (NAMED[2:6], NAMED[13:17], NAMED[26:30])
"""Three runs of four photos, far apart."""


@pytest.fixture(scope="module")
def path_captures(photos, models):
    held_out = [name for run in RUNS for name in run]

    def opened() -> dict[str, Capture]:
        return {
            name: Capture.in_memory(made_capture(photos, held_out), one, unseen=held_out)
            for name, one in models.items()
        }

    return opened


@pytest.fixture(scope="module")
def path_stored(path_captures, tmp_path_factory) -> Path:
    """A family about stretches of a path, not to be changed."""
    family = sc.certify_family(
        path_captures(),
        scales=["constant"],
        promise=sc.PathPromise(4, "1/4"),
        config=sc.CertifyConfig(alpha="1/4"),
    )
    return family.save(tmp_path_factory.mktemp("path") / "family")


def test_a_family_may_be_about_paths(path_stored, models):
    family = read_family(path_stored)
    record, path = family.record, family.first.record.promise.path
    assert path is not None and path.stretches == tuple(map(tuple, RUNS))
    scores = {n: {v.name: v.score for v in one.record.calibration} for n, one in family.items()}
    worst = {
        run[2]: max(
            stretch_score([scores[one.name][name] for name in run], "1/4") / one.unit
            for one in record.members
        )
        for run in RUNS
    }
    assert record.scores == worst
    assert record.threshold == max(worst.values())  # rank 3 of 3
    for one in family.values():
        unit = one.record.promise.family.own.unit
        assert one.threshold == member_threshold(record.threshold, unit)
    assert family.guarantee == (
        "With probability at least 75%, for each of the 2 candidates (full, pruned), at least 3 "
        "of the 4 views of a new stretch have at least 90% of their pixels inside their boxes, "
        "if the stretch is exchangeable with the 3 calibration stretches; any of them may be "
        "chosen afterwards, for the whole stretch"
    )
    one = sc.load_certificate(path_stored, models["pruned"], member="pruned")
    boxes = one.predict(one.record.calibration[0].camera)
    assert boxes.threshold == one.threshold


def test_a_family_about_paths_verifies_alone_and_from_scratch(path_stored, path_captures):
    offline = sc.verify(path_stored)
    assert offline.passed, offline.failures
    found = sc.verify(path_stored, list(path_captures().values()))
    assert found.passed, found.failures
    assert "pruned: new q" in {check.name for check in found.checks}


def drop_stretches(content) -> None:
    """A promise about views where stretches were calibrated."""
    content["promise"]["path"] = None


def allow_more(content) -> None:
    content["promise"]["path"]["gamma"] = "1/2"


@pytest.mark.parametrize("change", [drop_stretches, allow_more])
def test_a_family_about_paths_that_was_resealed_fails(path_stored, tmp_path, change):
    folder = Path(shutil.copytree(path_stored, tmp_path / "family"))
    reseal(folder, change, ["full", "pruned"])
    assert not sc.verify(folder).passed


def test_a_path_that_no_stretch_carries_is_refused_for_a_family_too(photos, models):
    with pytest.raises(PathError, match="contain 0 stretches of 4 consecutive photos"):
        sc.certify_family(captures(photos, models), promise=sc.PathPromise(4, "1/4"))


def test_names_become_folders():
    assert member_name("my model (v2)") == "my_model_v2_"
    assert member_name("../up") == "up"
    with pytest.raises(FamilyError, match="cannot be the name of a member"):
        member_name("...")
