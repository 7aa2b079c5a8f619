# SPDX-License-Identifier: Apache-2.0
"""Checks of what a certificate promises, and of its threshold in two ways that share no code."""

from __future__ import annotations

from splatcert.certificate.content.promise import FamilyRecord, PathRecord
from splatcert.certificate.store import Stored
from splatcert.conformal.family_conformal import member_threshold
from splatcert.conformal.path_conformal import PathConformal
from splatcert.conformal.risk_control import path_risk_control, risk_control_threshold
from splatcert.errors import listed
from splatcert.verification.checks import check


def check_promise(stored: Stored) -> str:
    """The views that a promise counts are the calibration views, in the way it says."""
    promise = stored.record.promise
    about = "about a new view" if promise.path is None else _path(stored, promise.path)
    return about if promise.family is None else f"{_family(stored, promise.family)}; {about}"


def _path(stored: Stored, path: PathRecord) -> str:
    """Stretches are disjoint runs of neighbours in name order, of the length promised."""
    record = stored.record
    PathConformal(record.guarantee.alpha, record.guarantee.beta, path.gamma, path.length)
    views = (*record.training, *record.calibration, *record.unlabelled)
    place = {name: index for index, name in enumerate(sorted(view.name for view in views))}
    for run in path.stretches:
        check(len(run) == path.length, f"{listed(run)} are {len(run)} views, not {path.length}")
        places = [place[name] for name in run]
        check(
            places == list(range(places[0], places[0] + len(places))),
            f"{listed(run)} are not neighbours in name order",
        )
    used = [name for run in path.stretches for name in run]
    check(
        len(set(used)) == len(used) and sorted(used) == sorted(stored.scores),
        "the views of the stretches are not the calibration views",
    )
    left = {view.name for view in record.unlabelled}
    check(left.issuperset(path.unused), "a photo that is called unused was used")
    told = f"about a new stretch: {len(path.stretches)} stretches of {path.length} views"
    unused = f"; {len(path.unused)} photos fill no stretch: {listed(path.unused)}"
    return told + unused * bool(path.unused)


def _family(stored: Stored, family: FamilyRecord) -> str:
    """The member's own part; `verification/families.py` compares members with each other."""
    names, record = [one.name for one in family.members], stored.record
    check(len(set(names)) == len(names), f"two members have one name: {listed(names)}")
    own, scores = family.own, record.promise.own_scores(stored.scores)
    check(family.scores.keys() == scores.keys(), "the family's scores are of other views")
    for name, score in scores.items():
        check(score / own.unit <= family.scores[name], f"the family's score of {name} is too small")
    check(
        (own.scale, own.gaussians) == (record.scale.name, record.model.gaussians),
        "the member is listed with a different scale or model",
    )
    check(own.threshold == record.guarantee.threshold, "the member's own threshold differs")
    return f"member {own.name} of a family of {len(names)}: any may be chosen afterwards"


def check_order_statistic(stored: Stored) -> str:
    """The threshold as the order statistic that defines it."""
    record = stored.record
    guarantee, promise = record.guarantee, record.promise
    found = promise.threshold(stored.scores, guarantee.alpha)
    check(found == guarantee.threshold, f"stored {guarantee.threshold}, from the scores {found}")
    scores = "" if promise.path is None else "stretch "
    unit = "" if promise.family is None else ", in the member's unit"
    scores = scores if promise.family is None else f"family's {scores}"
    return f"{found:.6g} is the k-th smallest of the stored {scores}scores{unit}"


def check_risk_control(stored: Stored) -> str:
    """The threshold by conformal risk control; for a path, without any stretch score."""
    guarantee, promise = stored.record.guarantee, stored.record.promise
    if promise.family is not None:
        family = promise.family
        q = risk_control_threshold(family.scores.values(), guarantee.alpha)
        check(q == family.threshold, f"stored q = {family.threshold}, by risk control {q}")
        found = member_threshold(q, family.own.unit)
    elif promise.path is not None:
        path = promise.path
        scores = [stored.scores[name] for run in path.stretches for name in run]
        found = path_risk_control(scores, path.length, path.gamma, guarantee.alpha)
    else:
        found = risk_control_threshold(stored.scores.values(), guarantee.alpha)
    check(found == guarantee.threshold, f"stored {guarantee.threshold}, by risk control {found}")
    return f"{found:.6g} again, by conformal risk control"
