# SPDX-License-Identifier: Apache-2.0
"""Check that a certificate is consistent, from its own folder alone.

Whatever follows from other entries is recomputed, the threshold in two ways that share no
code. `recompute.py` goes further and compares a certificate with one computed from scratch
from photographs and splats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from splatcert.camera import camera_hash, extent_of
from splatcert.certificate.diagnostics import (
    SupportLimits,
    estimate_by_splits,
    evenness_test,
)
from splatcert.certificate.hashes import seal_of
from splatcert.certificate.history import history_words
from splatcert.certificate.issue import counted_pixels, view_marks
from splatcert.certificate.sights import strangeness_limit
from splatcert.certificate.store import FIELD, VIEWS, Stored, read_content, read_parts
from splatcert.conformal.levels import parse_level
from splatcert.difficulty.trained_on import check_trained_on
from splatcert.errors import InputError, listed
from splatcert.storage.whole import file_hash
from splatcert.verification.checks import (
    Check,
    NotCheckable,
    Verification,
    Warned,
    alike_records,
    check,
    check_spread,
    close,
    run_check,
)
from splatcert.verification.promise_checks import (
    check_order_statistic,
    check_promise,
    check_risk_control,
)
from splatcert.verification.scale_checks import (
    check_frozen,
    check_predictor,
    check_scale,
    check_scores,
    check_tenths,
)

ROLES = ("training", "calibration", "not calibrating")


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
    return "intact"


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
    rank = stored.record.promise.rank(views, alpha)
    check(promise.rank == rank, f"k = {promise.rank}, but ceil((m + 1)(1 - alpha)) = {rank}")
    masked, batch_only = promise.counted.masked_views > 0, stored.record.scale.batch_only
    about = {"masked": masked, "batch_only": batch_only}
    words = stored.record.promise.statement(alpha, beta, views, **about)
    check(promise.statement == words, "the statement in words does not match the numbers")
    return f"alpha = {alpha}, beta = {beta}, m = {views}, k = {rank}"


def _masks(stored: Stored) -> str:
    """Whether the guarantee is about all pixels, from the counts of every view."""
    counted = counted_pixels(stored.views, stored.record.calibration)
    named = stored.record.guarantee.counted
    check(alike_records(counted, named), f"stored {named}, from {VIEWS} {counted}")
    views = len(stored.record.calibration)
    return counted.words(views) if counted.masked_views else "none: every pixel counts"


def _history(stored: Stored) -> str:
    """Other certificates of the same photographs, as certificate and ledger list them."""
    if words := history_words(stored.record):
        raise Warned(words)
    return "no other certificate of these photos is listed on this computer"


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
    stored_limits = record.support if record.strangeness is None else record.strangeness
    check(alike_records(_limits(stored), stored_limits), "the limits of the flag do not match")
    test = evenness_test(record.promise.scores(stored.scores), cameras, record.config.seed)
    check(test.p_value == record.evenness.p_value, f"the recomputed p-value is {test.p_value}")
    splits = estimate_by_splits(
        views,
        stored.factors,
        (record.guarantee.alpha, record.guarantee.beta),
        record.scale.shape,
        splits=record.config.splits,
        seed=record.config.seed,
    )
    splits = splits if record.promise.is_plain else None
    check(alike_records(splits, record.splits), "the split estimates do not match")
    check_tenths(stored)
    return f"limits of the flag, evenness (p = {test.p_value:.2g}) and split estimates agree"


def _limits(stored: Stored) -> Any:
    """The limits of the flag, computed again."""
    record, views = stored.record, stored.views
    if record.strangeness is not None:
        extent = record.scene.extent
        return strangeness_limit(record.scale, record.training, record.calibration, views, extent)
    rows = views.held_out.rows_of(stored.scores)
    cameras = [view.camera for view in record.calibration]
    return SupportLimits.of(views.held_out.descriptors[rows], cameras)


def _unseen(stored: Stored) -> str:
    """Whether the model fits calibration photos as it fits photos that it was trained on."""
    test = check_trained_on(stored.record.calibration, stored.record.training, stored.views)
    if test is None:
        raise NotCheckable("too few or too many views to compare how well the model fits them")
    if test.flagged:
        raise Warned(test.finding)
    return f"p = {test.p_value:.2g}: fitted worse than other photos from similar poses"


QUESTIONS: dict[str, Callable[[Stored], str]] = {
    "seal": _seal,
    "files": _files,
    "levels": _levels,
    "promise": check_promise,
    "threshold": check_order_statistic,
    "second threshold": check_risk_control,
    "roles": _roles,
    "masks": _masks,
    "extent": _extent,
    "scores": check_scores,
    "score spread": lambda stored: check_spread(stored.scores.values()),
    "scale": check_scale,
    "predictor": check_predictor,
    "labels": check_frozen,
    "photo history": _history,
    "inputs": _inputs,
    "diagnostics": _diagnostics,
    "unseen photos": _unseen,
}
