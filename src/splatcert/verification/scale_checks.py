# SPDX-License-Identifier: Apache-2.0
"""Checks that scales follow from descriptors and predictor, and were fixed before labels."""

from __future__ import annotations

from splatcert.certificate.hashes import freeze_hash
from splatcert.certificate.store import VIEWS, Stored
from splatcert.conformal.maps import is_covered
from splatcert.difficulty.origin import shipped_name
from splatcert.difficulty.rule import FactorRule
from splatcert.verification.checks import (
    NotCheckable,
    alike_records,
    check,
    close,
)
from splatcert.verification.other_scales import check_other_scale, guide_origin


def check_scores(stored: Stored) -> str:
    """R_v = a*_v / a_v (eq:ratio-identity): scores follow from views.npz and the factors."""
    record, views = stored.record, stored.views
    oracle = views.oracle("held-out", record.guarantee.beta, record.scale.shape)
    known = dict(zip(views.held_out.names, oracle.tolist(), strict=True))
    for name, score in stored.scores.items():
        expected = known[name] / stored.factors[name]
        check(close(score, expected), f"score {score} of {name}, from {VIEWS} {expected}")
    return "each is the view's oracle factor over its factor"


def check_tenths(stored: Stored) -> None:
    """Counts of covered pixels agree with which views the threshold covers (lem:event)."""
    record, table = stored.record, stored.views.held_out
    if table.tenths is None:
        return
    rows = dict(zip(table.names, range(len(table)), strict=True))
    for name, score in stored.scores.items():
        pixels, inside = table.tenths[rows[name]].sum(axis=0).tolist()
        promise = record.guarantee
        check(
            pixels == table.pixels[rows[name]]
            and is_covered(inside, pixels, promise.beta) == (score <= promise.threshold),
            f"the counts of covered pixels of {name} do not match its score",
        )


def check_scale(stored: Stored) -> str:
    """The rule follows from descriptors and predictor, and the factors from the rule."""
    record, views = stored.record, stored.views
    if record.scale.name != "paper":
        return check_other_scale(stored)
    rule = FactorRule.of(record.scale.parameters, record.scale.bounds)
    again = FactorRule.freeze(
        rule.predictor, views.training.descriptors, views.held_out.descriptors, rule.unit
    )
    check(
        alike_records(again.parameters(), record.scale.parameters)
        and (again.lambda_b, again.batch_only) == (record.scale.shape, record.scale.batch_only),
        "units, reference or shrinkage do not follow from the descriptors and the predictor",
    )
    check(
        record.strangeness is None or alike_records(again.bounds, record.scale.bounds),
        "the range of predictions does not follow from the training views",
    )
    check(rule.unit == record.config.unit, "the unit does not match the settings")
    rows = zip(views.held_out.names, views.held_out.descriptors, strict=True)
    known = {name: rule.factor(row) for name, row in rows}
    for view in (*record.calibration, *record.unlabelled):
        check(
            close(view.factor, known[view.name]),
            f"the factor of {view.name} does not follow from its descriptor",
        )
    return "units, reference and every factor follow from descriptors and predictor"


def check_predictor(stored: Stored) -> str:
    """Who learned the predictor: one that has seen the calibration labels breaks the promise."""
    scale = stored.record.scale
    if scale.name == "guided":
        return guide_origin(stored)
    predictor = FactorRule.of(scale.parameters).predictor if scale.name == "paper" else None
    if predictor is None:
        return "none"
    name = shipped_name(predictor)
    if name is None:
        raise NotCheckable(
            f"unknown origin (hash {predictor.sha256[:12]}): it is not one of splatcert's"
        )
    return f"{name}, which comes with splatcert (hash {predictor.sha256[:12]})"


def check_frozen(stored: Stored) -> str:
    """Scales were fixed first, and calibration labels used once, afterwards.

    Once refers to the process that certified; earlier uses are listed and do not fail the check.
    """
    record = stored.record
    batch = sorted((*record.calibration, *record.unlabelled), key=lambda view: view.name)
    check(
        freeze_hash(record.scale, batch) == record.labels.frozen,
        "the scales do not match the frozen ones",
    )
    ledger = record.labels.ledger
    check([e.order for e in ledger] == list(range(len(ledger))), "the ledger has gaps")
    calibrating = [entry for entry in ledger if entry.purpose == "calibration"]
    check(len(calibrating) == 1, f"calibration labels were used {len(calibrating)} times")
    (entry,) = calibrating
    check(
        entry.order >= record.labels.handed_out_before,
        "calibration labels were used before the scales were fixed",
    )
    check(
        sorted(entry.views) == sorted(stored.scores),
        "the labels used do not match the calibration views",
    )
    told = f"calibration labels were used once, after all {len(batch)} scales were fixed"
    return "; ".join(filter(None, (told, record.labels.earlier())))
