# SPDX-License-Identifier: Apache-2.0
"""Checks of a family from its folder alone: every member by itself, then all together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.family import (
    FAMILY,
    Family,
    family_records,
    frozen_family,
    read_family,
    read_family_file,
)
from splatcert.certificate.hashes import seal_of
from splatcert.certificate.store import MAIN
from splatcert.conformal.family_conformal import units_from
from splatcert.conformal.risk_control import family_risk_control
from splatcert.errors import InputError, listed
from splatcert.storage.whole import file_hash
from splatcert.verification.checks import (
    Check,
    Verification,
    alike_records,
    check,
    close,
    run_check,
)
from splatcert.verification.offline import verify_folder


def verify_family_folder(path: Path) -> Verification:
    """Every check that requires only the family's own files."""
    try:
        folder, content, known = read_family_file(path)
    except InputError as error:
        return Verification((Check("family", False, " ".join(str(error).split())),))

    def sealed() -> str:
        check(seal_of(content) == known.seal, f"{FAMILY} was edited after sealing")
        for name, expected in known.members.items():
            file = folder / name / MAIN
            check(file.is_file(), f"member {name} is missing")
            check(file_hash(file) == expected, f"member {name} is not the one that was certified")
        return f"{len(known.members)} members, each with the stored hash"

    checks = [run_check("family", sealed)]
    for name in known.members:
        checks.append(_member(name, folder / name))
    if all(one.passed for one in checks):
        family = read_family(folder)
        for title, question in QUESTIONS.items():
            checks.append(run_check(title, lambda ask=question: ask(family)))
    return Verification(tuple(checks))


def named(one: Check, member: str) -> Check:
    """A check of one member."""
    return replace(one, name=f"{member}: {one.name}")


def _member(name: str, folder: Path) -> Check:
    """All checks of one member as one line."""
    found = verify_folder(folder)
    if found.failures:
        failed = found.failures[0]
        return Check(f"member {name}", False, f"{failed.name}: {failed.detail}")
    passed = len(found.checks) - len(found.unchecked)
    return Check(f"member {name}", True, f"valid by itself: all {passed} checks passed")


def _same_views(family: Family) -> str:
    """All members were scored on the same photographs, and list the same family."""
    first = family.first.record
    for name, one in family.items():
        record, promise = one.record, one.record.promise.family
        same = promise is not None and promise == replace(family.record, member=name)
        same = same and record.promise.path == first.promise.path
        check(same, f"{name} lists a different family")
        photos = [(v.name, v.pose, v.image) for v in record.calibration]
        check(
            photos == [(v.name, v.pose, v.image) for v in first.calibration],
            f"{name} was calibrated on different photos or cameras",
        )
        check(record.config.alpha == first.config.alpha, f"{name} has a different alpha")
        check(record.config.beta == first.config.beta, f"{name} has a different beta")
    listing = [one.name for one in family.record.members]
    check(listing == list(family), f"the family lists {listed(listing)}")
    return f"the same {len(first.calibration)} photos and levels for all members"


def _units(family: Family) -> str:
    """Each unit is the median of the member's scores on training photographs."""
    for one in family.record.members:
        found = unit_of(family[one.name])
        check(close(one.unit, found), f"unit {one.unit} of {one.name}, from its views {found}")
    return "each is the median of the member's scores on training photos"


def unit_of(certificate: Certificate) -> float:
    """c_k from the stored numbers of the training views."""
    oracle = certificate.views.oracle("training", certificate.beta, certificate.record.scale.shape)
    scores = (oracle / certificate.training_factors)[~np.isnan(oracle)]
    return float(units_from(scores[:, None])[0])


def _order_statistic(family: Family) -> str:
    """Family scores, threshold, prices and widths, from every member's scores."""
    record = family.record
    promise = family.first.record.promise
    again = family_records(
        {name: promise.own_scores(views) for name, views in _scores(family).items()},
        {one.name: one.unit for one in record.members},
        {one.name: {"scale": one.scale, "gaussians": one.gaussians} for one in record.members},
        {n: float(np.mean([v.factor for v in c.record.calibration])) for n, c in family.items()},
        record.frozen,
        family.first.alpha,
    )[record.member]
    check(again.threshold == record.threshold, f"stored {record.threshold}, {again.threshold}")
    check(alike_records(again, record), "scores, prices or widths of the members do not match")
    counted = "views'" if promise.path is None else "stretches'"
    return f"q = {again.threshold:.6g} is the k-th smallest of the {counted} worst scores"


def _risk_control(family: Family) -> str:
    """The threshold by conformal risk control, from every member's scores, without a maximum."""
    record, scores = family.record, _scores(family)
    units = [one.unit for one in record.members]
    path, views, stretches = family.first.record.promise.path, [*record.scores], (1, 0)
    if path is not None:
        views = [name for run in path.stretches for name in run]
        stretches = path.length, path.gamma
    rows = [[scores[one.name][view] for one in record.members] for view in views]
    found = family_risk_control(rows, units, family.first.alpha, *stretches)
    check(found == record.threshold, f"stored {record.threshold}, by risk control {found}")
    return f"{found:.6g} again, by conformal risk control"


def _labels(family: Family) -> str:
    """Every scale and unit was fixed before the labels were opened, once for all members."""
    record = family.record
    proofs = {name: one.record.labels.frozen for name, one in family.items()}
    units = {one.name: one.unit for one in record.members}
    found = frozen_family(proofs, units, family.first.record.promise.path)
    check(found == record.frozen, "scales or units are not those that were frozen")
    ledgers = {one.record.labels.ledger for one in family.values()}
    check(len(ledgers) == 1, "the members list different uses of labels")
    return "all scales and units were fixed before labels were opened, once"


def _scores(family: Family) -> dict[str, dict[str, float]]:
    return {n: {v.name: v.score for v in one.record.calibration} for n, one in family.items()}


QUESTIONS: dict[str, Callable[[Family], str]] = {
    "views": _same_views,
    "units": _units,
    "threshold": _order_statistic,
    "second threshold": _risk_control,
    "labels": _labels,
}
