# SPDX-License-Identifier: Apache-2.0
"""Check that a certificate is consistent, from its own folder alone.

Whatever follows from other entries is recomputed, the threshold in two ways that share no
code. `recompute.py` goes further and compares a
certificate with one computed from scratch from photographs and splats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from splatcert.camera import camera_hash, extent_of
from splatcert.certificate.checks import (
    Check,
    NotCheckable,
    Verification,
    alike_records,
    check,
    check_spread,
    close,
    run_check,
)
from splatcert.certificate.diagnostics import (
    SupportLimits,
    estimate_by_splits,
    exchangeability_test,
)
from splatcert.certificate.hashes import freeze_hash, seal_of
from splatcert.certificate.issue import counted_pixels, view_marks
from splatcert.certificate.scale_checks import check_other_scale, guide_origin
from splatcert.certificate.store import FIELD, VIEWS, Stored, read_content, read_parts
from splatcert.conformal.calibrate import state_guarantee, threshold_of
from splatcert.conformal.levels import parse_level
from splatcert.conformal.ranks import outer_rank
from splatcert.conformal.risk_control import risk_control_threshold
from splatcert.difficulty.origin import shipped_name
from splatcert.difficulty.rule import FactorRule
from splatcert.errors import InputError, listed
from splatcert.storage.schema import to_plain
from splatcert.storage.whole import file_hash

ROLES = ("training", "calibration", "without a photo")


def verify_folder(folder: Path) -> Verification:
    """Every check that requires only the certificate's own files."""
    return Verification(tuple(_checks(folder)))


def _checks(folder: Path) -> Iterator[Check]:
    try:
        stored = Stored(folder, *read_content(folder))
    except InputError as error:
        yield Check("format", False, " ".join(str(error).split()))
        return
    record = stored.record
    yield Check("format", True, f"schema {record.schema}, by splatcert {record.splatcert}")
    for name, question in QUESTIONS.items():
        yield run_check(name, lambda ask=question: ask(stored))


def _seal(stored: Stored) -> str:
    check(seal_of(stored.content) == stored.record.seal, "an entry was edited after sealing")
    return "unbroken"


def _files(stored: Stored) -> str:
    named = stored.record.files
    check(set(named) == {FIELD, VIEWS}, f"names {listed(named)} instead of {FIELD}, {VIEWS}")
    for name, expected in named.items():
        path = stored.folder / name
        check(path.is_file(), f"{name} is missing")
        check(file_hash(path) == expected, f"{name} is not the file that was certified")
    return f"{FIELD} and {VIEWS} have the stored hashes"


def _roles(stored: Stored) -> str:
    record = stored.record
    groups = (record.training, record.calibration, record.unlabelled)
    names = Counter(view.name for group in groups for view in group)
    twice = sorted(name for name, count in names.items() if count > 1)
    check(not twice, f"{listed(twice)} have two roles")
    held_out = sorted(view.name for view in (*record.calibration, *record.unlabelled))
    views = stored.views
    check(
        [view.name for view in record.training] == list(views.training.names)
        and held_out == sorted(views.held_out.names),
        f"the lists of views do not match {VIEWS}",
    )
    for view in (view for group in groups for view in group):
        check(
            camera_hash(view.camera) == view.pose,
            f"the camera of {view.name} does not match its stored hash",
        )
    counts = [f"{len(group)} {name}" for group, name in zip(groups, ROLES, strict=True)]
    return f"{', '.join(counts)}; no view has two roles"


def _extent(stored: Stored) -> str:
    """The unit of distances, on which descriptors and boxes of a new camera depend."""
    found = extent_of([view.camera for view in stored.record.training])
    extent = stored.record.scene.extent
    check(close(extent, found), f"stored {extent}, from the training cameras {found}")
    return f"{found:.6g}, from the training cameras"


def _levels(stored: Stored) -> str:
    promise, config = stored.record.guarantee, stored.record.config
    alpha, beta, views = promise.alpha, promise.beta, promise.views
    asked = parse_level(config.alpha, "alpha"), parse_level(config.beta, "beta")
    check(asked == (alpha, beta), f"alpha, beta = {alpha}, {beta}, but the settings say {asked}")
    count = len(stored.record.calibration)
    check(views == count, f"m = {views}, but there are {count} calibration views")
    rank = outer_rank(views, alpha)
    check(promise.rank == rank, f"k = {promise.rank}, but ceil((m + 1)(1 - alpha)) = {rank}")
    masked, batch_only = promise.counted.masked_views > 0, stored.record.scale.batch_only
    words = state_guarantee(alpha, beta, views, masked=masked, batch_only=batch_only)
    check(promise.statement == words, "the statement in words does not match the numbers")
    return f"alpha = {alpha}, beta = {beta}, m = {views}, k = {rank}"


def _masks(stored: Stored) -> str:
    """Whether the guarantee is about all pixels, from the counts of every view."""
    counted = counted_pixels(stored.views, stored.record.calibration)
    named = stored.record.guarantee.counted
    check(alike_records(counted, named), f"stored {named}, from {VIEWS} {counted}")
    views = len(stored.record.calibration)
    return counted.words(views) if counted.masked_views else "none: every pixel counts"


def _order_statistic(stored: Stored) -> str:
    promise = stored.record.guarantee
    found = threshold_of(np.array(list(stored.scores.values())), promise.alpha)
    check(found == promise.threshold, f"stored {promise.threshold}, from the scores {found}")
    return f"{found:.6g} is the k-th smallest of the stored scores"


def _risk_control(stored: Stored) -> str:
    promise = stored.record.guarantee
    found = risk_control_threshold(stored.scores.values(), promise.alpha)
    check(found == promise.threshold, f"stored {promise.threshold}, by risk control {found}")
    return f"{found:.6g} again, by conformal risk control"


def _scores(stored: Stored) -> str:
    """R_v = a*_v / a_v (eq:ratio-identity): scores follow from views.npz and the factors."""
    record, views = stored.record, stored.views
    oracle = views.oracle("held-out", record.guarantee.beta, record.scale.shape)
    known = dict(zip(views.held_out.names, oracle.tolist(), strict=True))
    for name, score in stored.scores.items():
        expected = known[name] / stored.factors[name]
        check(close(score, expected), f"score {score} of {name}, from {VIEWS} {expected}")
    return "each is the view's oracle factor over its factor"


def _scale(stored: Stored) -> str:
    """The rule follows from descriptors and predictor, and the factors from the rule."""
    record, views = stored.record, stored.views
    if record.scale.name != "paper":
        return check_other_scale(stored)
    rule = FactorRule.of(record.scale.parameters)
    again = FactorRule.freeze(
        rule.predictor, views.training.descriptors, views.held_out.descriptors, rule.unit
    )
    check(
        again.parameters() == record.scale.parameters
        and (again.lambda_b, again.batch_only) == (record.scale.shape, record.scale.batch_only),
        "units, reference or shrinkage do not follow from the descriptors and the predictor",
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


def _predictor(stored: Stored) -> str:
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


def _frozen(stored: Stored) -> str:
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
    told = f"all {len(batch)} scales were fixed before calibration labels were used, once"
    return "; ".join(filter(None, (told, record.labels.earlier())))


def _inputs(stored: Stored) -> str:
    """The hashes of splats and photographs agree wherever they are named."""
    read_parts(stored.folder, stored.record)
    check(
        stored.views.hashes.get("splats") == stored.record.model.splats,
        f"{VIEWS} was computed from a different model",
    )
    expected = view_marks(stored.record.training, stored.record.calibration)
    found = {name: text for name, text in stored.views.hashes.items() if name != "splats"}
    wrong = sorted(key for key in {*expected, *found} if expected.get(key) != found.get(key))
    check(not wrong, f"{VIEWS} was computed from different photos: {listed(wrong)}")
    return "field, views and certificate name the same model and photos"


def _diagnostics(stored: Stored) -> str:
    """Readers rely on the diagnostics, so these are recomputed too."""
    record, views = stored.record, stored.views
    cameras = {
        view.name: view.camera
        for view in (*record.training, *record.calibration, *record.unlabelled)
    }
    rows = views.held_out.rows_of(stored.scores)
    limits = SupportLimits.of(views.held_out.descriptors[rows], [cameras[n] for n in stored.scores])
    check(to_plain(limits) == to_plain(record.support), "the support limits do not match")
    test = exchangeability_test(stored.scores, cameras, record.config.seed)
    check(
        test.p_value == record.exchangeability.p_value, f"the recomputed p-value is {test.p_value}"
    )
    splits = estimate_by_splits(
        views,
        stored.factors,
        (record.guarantee.alpha, record.guarantee.beta),
        record.scale.shape,
        splits=record.config.splits,
        seed=record.config.seed,
    )
    check(alike_records(splits, record.splits), "the split estimates do not match")
    return f"support limits, exchangeability (p = {test.p_value:.2g}) and split estimates agree"


QUESTIONS: dict[str, Callable[[Stored], str]] = {
    "seal": _seal,
    "files": _files,
    "levels": _levels,
    "threshold": _order_statistic,
    "second threshold": _risk_control,
    "roles": _roles,
    "masks": _masks,
    "extent": _extent,
    "scores": _scores,
    "score spread": lambda stored: check_spread(stored.scores.values()),
    "scale": _scale,
    "predictor": _predictor,
    "labels": _frozen,
    "inputs": _inputs,
    "diagnostics": _diagnostics,
}
