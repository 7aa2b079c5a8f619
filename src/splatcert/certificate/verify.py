# SPDX-License-Identifier: Apache-2.0
"""Does a certificate hold together? What it needs is in its own folder.

Nothing is taken on trust: what can be derived from other entries is derived again, the
threshold by two roads that share no code. `compare.py` goes further and holds a certificate
against one computed afresh from photographs and splats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from splatcert.camera import camera_hash
from splatcert.certificate.checks import Check, Verification, answer, require
from splatcert.certificate.diagnostics import (
    SupportLimits,
    doubt_exchangeability,
    estimate_by_splits,
)
from splatcert.certificate.freeze import freeze_hash
from splatcert.certificate.hashes import seal_of
from splatcert.certificate.issue import counted_pixels, view_marks
from splatcert.certificate.record import Record
from splatcert.certificate.rule import ScaleRule
from splatcert.certificate.store import FIELD, VIEWS, read_content, read_parts
from splatcert.conformal.calibrate import state_guarantee, threshold_of
from splatcert.conformal.levels import parse_level
from splatcert.conformal.ranks import outer_rank
from splatcert.conformal.risk_control import risk_control_threshold
from splatcert.difficulty.views_file import SceneViews
from splatcert.errors import InputError, listed
from splatcert.scene.scene import extent_of
from splatcert.storage.schema import to_plain
from splatcert.storage.whole import file_hash

ROUNDING = 1e-9
"""Relative difference between two ways of computing one number."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A certificate as it lies on disk."""

    folder: Path
    content: dict[str, Any]
    record: Record

    @cached_property
    def views(self) -> SceneViews:
        """Per-view numbers, from a file whose hash is checked."""
        return read_parts(self.folder, self.record)[1]

    @property
    def factors(self) -> dict[str, float]:
        """Of the calibration views, by name."""
        return {view.name: view.factor for view in self.record.calibration}

    @property
    def scores(self) -> dict[str, float]:
        """Of the calibration views, by name."""
        return {view.name: view.score for view in self.record.calibration}


def verify_folder(folder: Path) -> Verification:
    """Every check that needs nothing but the certificate's own files."""
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
        yield answer(name, lambda ask=question: ask(stored))


def _seal(stored: Stored) -> str:
    require(seal_of(stored.content) == stored.record.seal, "an entry was changed after sealing")
    return "unbroken"


def _files(stored: Stored) -> str:
    named = stored.record.files
    require(set(named) == {FIELD, VIEWS}, f"names {listed(named)} instead of {FIELD}, {VIEWS}")
    for name, expected in named.items():
        path = stored.folder / name
        require(path.is_file(), f"{name} is missing")
        require(file_hash(path) == expected, f"{name} is not the file that was certified")
    return f"{FIELD} and {VIEWS} have the hashes named"


def _roles(stored: Stored) -> str:
    record = stored.record
    groups = (record.training, record.calibration, record.unlabelled)
    names = [view.name for group in groups for view in group]
    twice = sorted({name for name in names if names.count(name) > 1})
    require(not twice, f"{listed(twice)} appear in two roles")
    held_out = sorted(view.name for view in (*record.calibration, *record.unlabelled))
    views = stored.views
    require(
        [view.name for view in record.training] == list(views.training.names)
        and held_out == sorted(views.held_out.names),
        f"the lists of views are not those of {VIEWS}",
    )
    for view in (view for group in groups for view in group):
        require(
            camera_hash(view.camera.camera()) == view.pose,
            f"the camera of {view.name} does not have the hash beside it",
        )
    return f"{len(record.training)} training, {len(record.calibration)} calibration, " + (
        f"{len(record.unlabelled)} without a photo; no view has two roles"
    )


def _extent(stored: Stored) -> str:
    """The unit of distances, which descriptors and boxes of a new camera rest on."""
    found = extent_of([view.camera.camera() for view in stored.record.training])
    extent = stored.record.scene.extent
    require(_close(extent, found), f"stored {extent}, from the training cameras {found}")
    return f"{found:.6g}, from the training cameras"


def _levels(stored: Stored) -> str:
    promise, config = stored.record.guarantee, stored.record.config
    alpha, beta, views = promise.alpha, promise.beta, promise.views
    asked = parse_level(config.alpha, "alpha"), parse_level(config.beta, "beta")
    require(asked == (alpha, beta), f"alpha, beta = {alpha}, {beta}, but {asked} were asked for")
    count = len(stored.record.calibration)
    require(views == count, f"m = {views}, but there are {count} calibration views")
    rank = outer_rank(views, alpha)
    require(promise.rank == rank, f"k = {promise.rank}, but ceil((m + 1)(1 - alpha)) = {rank}")
    masked, batch_only = promise.counted.masked_views > 0, stored.record.scale.batch_only
    words = state_guarantee(alpha, beta, views, masked=masked, batch_only=batch_only)
    require(promise.statement == words, "the statement in words is another than the numbers'")
    return f"alpha = {alpha}, beta = {beta}, m = {views}, k = {rank}"


def _masks(stored: Stored) -> str:
    """Whether the promise is about all pixels, from the counts of every view."""
    counted = counted_pixels(stored.views, stored.record.calibration)
    named = stored.record.guarantee.counted
    require(_alike(counted, named), f"{named} stored, but by {VIEWS} it is {counted}")
    views = len(stored.record.calibration)
    return counted.words(views) if counted.masked_views else "none: every pixel counts"


def _order_statistic(stored: Stored) -> str:
    promise = stored.record.guarantee
    found = threshold_of(np.array(list(stored.scores.values())), promise.alpha)
    require(found == promise.threshold, f"stored {promise.threshold}, from the scores {found}")
    return f"{found:.6g} is the k-th smallest of the stored scores"


def _risk_control(stored: Stored) -> str:
    promise = stored.record.guarantee
    found = risk_control_threshold(stored.scores.values(), promise.alpha)
    require(found == promise.threshold, f"stored {promise.threshold}, by risk control {found}")
    return f"{found:.6g} again, by conformal risk control"


def _scores(stored: Stored) -> str:
    """R_v = a*_v / a_v (eq:ratio-identity): scores follow from views.npz and the factors."""
    record, views = stored.record, stored.views
    oracle = views.oracle("held-out", record.guarantee.beta, record.scale.lambda_b)
    known = dict(zip(views.held_out.names, oracle.tolist(), strict=True))
    for name, score in stored.scores.items():
        expected = known[name] / stored.factors[name]
        require(_close(score, expected), f"score {score} of {name}, from {VIEWS} {expected}")
    return "each is the view's oracle factor over its factor"


def _scale(stored: Stored) -> str:
    """The rule follows from descriptors and predictor, and the factors from the rule."""
    record, views = stored.record, stored.views
    rule = ScaleRule.of(record.scale)
    again = ScaleRule.freeze(
        rule.predictor, views.training.descriptors, views.held_out.descriptors, rule.unit
    )
    require(
        to_plain(again.record()) == to_plain(record.scale),
        "units, reference or shrinkage do not follow from the descriptors and the predictor",
    )
    require(rule.unit == record.config.unit, "the unit is not the one asked for")
    rows = zip(views.held_out.names, views.held_out.descriptors, strict=True)
    known = {name: rule.factor(row) for name, row in rows}
    for view in (*record.calibration, *record.unlabelled):
        require(_close(view.factor, known[view.name]), f"the factor of {view.name} is another")
    return "units, reference and every factor follow from descriptors and predictor"


def _frozen(stored: Stored) -> str:
    """Scales were fixed first, and calibration labels handed out once, afterwards.

    Once in the process that certified; what was handed out earlier is named, not judged.
    """
    record = stored.record
    batch = sorted((*record.calibration, *record.unlabelled), key=lambda view: view.name)
    require(
        freeze_hash(record.scale, batch) == record.labels.frozen,
        "the scales are not those that were frozen",
    )
    ledger = record.labels.ledger
    require([e.order for e in ledger] == list(range(len(ledger))), "the ledger has gaps")
    calibrating = [entry for entry in ledger if entry.purpose == "calibration"]
    require(len(calibrating) == 1, f"calibration labels were handed out {len(calibrating)} times")
    (entry,) = calibrating
    require(entry.order >= record.labels.handed_out_before, "labels came before the freeze")
    require(
        sorted(entry.views) == sorted(stored.scores),
        "the labels handed out are not those of the calibration views",
    )
    told = f"all {len(batch)} scales were fixed before calibration labels were handed out, once"
    earlier = record.labels.earlier()
    return f"{told}; {earlier}" if earlier else told


def _inputs(stored: Stored) -> str:
    """The hashes of splats and photographs agree wherever they are named."""
    read_parts(stored.folder, stored.record)
    require(
        stored.views.hashes.get("splats") == stored.record.model.splats,
        f"{VIEWS} was computed from another model",
    )
    expected = view_marks(stored.record.training, stored.record.calibration)
    found = {name: text for name, text in stored.views.hashes.items() if name != "splats"}
    wrong = sorted(key for key in {*expected, *found} if expected.get(key) != found.get(key))
    require(not wrong, f"{VIEWS} was computed from other photos: {listed(wrong)}")
    return "field, views and certificate name the same model and photos"


def _aids(stored: Stored) -> str:
    """Diagnostics are part of what a reader trusts, so they are derived again too."""
    record, views = stored.record, stored.views
    cameras = {
        view.name: view.camera.camera()
        for view in (*record.training, *record.calibration, *record.unlabelled)
    }
    rows = [views.held_out.names.index(name) for name in stored.scores]
    limits = SupportLimits.of(views.held_out.descriptors[rows], [cameras[n] for n in stored.scores])
    require(to_plain(limits) == to_plain(record.support), "support limits are others")
    test = doubt_exchangeability(stored.scores, cameras, record.config.seed)
    require(test.p_value == record.exchangeability.p_value, f"p is {test.p_value}")
    splits = estimate_by_splits(
        views,
        stored.factors,
        (record.guarantee.alpha, record.guarantee.beta),
        record.scale.lambda_b,
        splits=record.config.splits,
        seed=record.config.seed,
    )
    require(_alike(splits, record.splits), "the split estimates are others")
    return f"support limits, exchangeability (p = {test.p_value:.2g}) and split estimates agree"


def _alike(one: Any, other: Any) -> bool:
    """Whether two records have the same entries, numbers up to rounding."""
    left, right = to_plain(one), to_plain(other)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_alike(left[k], right[k]) for k in left)
    if isinstance(left, float) and isinstance(right, float):
        return _close(left, right)
    return left == right


def _close(found: float, expected: float) -> bool:
    return found == expected or abs(found - expected) <= ROUNDING * max(abs(found), abs(expected))


QUESTIONS: dict[str, Callable[[Stored], str]] = {
    "seal": _seal,
    "files": _files,
    "levels": _levels,
    "threshold": _order_statistic,
    "second road": _risk_control,
    "roles": _roles,
    "masks": _masks,
    "extent": _extent,
    "scores": _scores,
    "scale": _scale,
    "labels": _frozen,
    "inputs": _inputs,
    "aids": _aids,
}
