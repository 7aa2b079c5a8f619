# SPDX-License-Identifier: Apache-2.0
"""A stored certificate compared with one computed from scratch from photographs and splats.

This detects forgeries: anybody can recreate a seal, but not the scores of photographs under
a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.record import CalibrationRecord, Record, TrainingRecord
from splatcert.errors import listed
from splatcert.storage.schema import to_plain
from splatcert.verification.checks import Check, check, differences, different_arrays, run_check

TOLERANCE = 1e-4
"""Relative difference that rounding on a different processor or image library explains."""
APART = {
    # Entries about the writing of the file, not about what was certified.
    *("created", "splatcert", "schema", "files", "seal"),
    # Where the capture is stored and how it was loaded: its views and pixels are compared.
    *("scene.name", "scene.split", "scene.loaded"),
    # Hashes of rounded numbers, and the solver's end, which depends on rounding. The numbers
    # themselves are compared, and the offline check compares them with the hashes.
    *("calibration[].field", "unlabelled[].field", "labels.frozen"),
    *("field.steps", "field.ending", "field.residual"),
    # They follow from views.npz, whose arrays are compared; older schemas had other ones.
    *("support", "strangeness", "scale.bounds"),
    # Earlier uses of labels, and who says that views were held out: neither can be recomputed.
    *("labels.handed_out_before", "labels.ledger", "history", "scene.held_out_by"),
}
"""Entries that are not compared with a recomputed certificate, and why."""


def compare(stored: Certificate, again: Certificate) -> tuple[Check, ...]:
    """One check for each part that must match after recomputing."""
    questions: dict[str, Callable[[Certificate, Certificate], str]] = {
        "model": _model,
        "views": _views,
        "photos": _photos,
        "field": _field,
        "new scores": _scores,
        "new q": _threshold,
        "entries": _entries,
        "numbers": _numbers,
    }
    return tuple(
        run_check(name, lambda ask=question: ask(stored, again))
        for name, question in questions.items()
    )


def _model(stored: Certificate, again: Certificate) -> str:
    one, other = stored.record, again.record
    check(one.model == other.model, "these are not the splats that were certified")
    check(one.renderer == other.renderer, "a different renderer was certified")
    return f"{one.model.gaussians:,} Gaussians, hash {one.model.splats[:12]}; same renderer"


def _views(stored: Certificate, again: Certificate) -> str:
    for role in ("training", "calibration", "unlabelled"):
        ours = {view.name: view.pose for view in getattr(again.record, role)}
        theirs = {view.name: view.pose for view in getattr(stored.record, role)}
        check(
            ours.keys() == theirs.keys(),
            f"the capture's {role} views differ from the certificate's",
        )
        moved = [name for name in theirs if theirs[name] != ours[name]]
        check(not moved, f"the cameras of {len(moved)} {role} views differ: {listed(moved)}")
    return "same views, same cameras, same roles"


def _photos(stored: Certificate, again: Certificate) -> str:
    ours, theirs = _labelled(again.record), _labelled(stored.record)
    other = [
        name for name, view in theirs.items() if name not in ours or ours[name].image != view.image
    ]
    files = [n for n in other if n in ours and theirs[n].file and ours[n].file != theirs[n].file]
    same_file = " (the files match: a different image library decodes them differently)"
    hint = same_file if other and not files else ""
    check(not other, f"{len(other)} photos differ from the certified ones: {listed(other)}{hint}")
    return f"all {len(theirs)} photos have the pixels that were certified"


def _labelled(record: Record) -> dict[str, TrainingRecord | CalibrationRecord]:
    views: Sequence[TrainingRecord | CalibrationRecord] = (*record.training, *record.calibration)
    return {view.name: view for view in views}


def _field(stored: Certificate, again: Certificate) -> str:
    one, other = stored.field.coefficients, again.field.coefficients
    check(one.shape == other.shape, f"shape {one.shape}, refitted {other.shape}")
    difference = float(np.abs(one - other).max() / max(np.abs(other).max(), 1e-30))
    check(difference <= TOLERANCE, f"the refitted coefficients differ by {difference:.1e}")
    support = stored.field.support, again.field.support
    check(
        support[0].shape == support[1].shape
        and bool(np.allclose(*support, rtol=TOLERANCE, atol=1e-3)),
        "the recomputed support does not match",
    )
    return f"refitted to the training photos: coefficients within {difference:.1e}"


def _scores(stored: Certificate, again: Certificate) -> str:
    ours = {view.name: view.score for view in again.record.calibration}
    theirs = {view.name: view.score for view in stored.record.calibration}
    check(ours.keys() == theirs.keys(), "the calibration views differ")
    apart = {n: abs(theirs[n] - ours[n]) / max(abs(ours[n]), 1e-30) for n in ours}
    wrong = [name for name, difference in apart.items() if not difference <= TOLERANCE]
    check(not wrong, f"{len(wrong)} recomputed scores do not match: {listed(wrong)}")
    return f"all {len(ours)} recomputed from scratch, within {max(apart.values()):.1e}"


def _threshold(stored: Certificate, again: Certificate) -> str:
    one, other = stored.threshold, again.threshold
    # Unlike a difference and a tolerance, isclose tells infinity from every finite number.
    check(math.isclose(one, other, rel_tol=TOLERANCE), f"stored {one}, recomputed {other}")
    return f"{other:.6g}, from the photos and the splats alone"


def _entries(stored: Certificate, again: Certificate) -> str:
    """Everything else in certificate.json; `predict` depends on units and extent too."""
    one, other = to_plain(stored.record), to_plain(again.record)
    wrong = list(differences(one, other, TOLERANCE, apart=APART))
    check(not wrong, f"{len(wrong)} recomputed entries do not match: {listed(wrong)}")
    return "scale, factors, extent, limits and estimates match"


def _numbers(stored: Certificate, again: Certificate) -> str:
    """Everything in views.npz: units and factors depend on its descriptors."""
    wrong = list(different_arrays(stored.views, again.views, TOLERANCE))
    check(not wrong, f"recomputed arrays of views.npz do not match: {listed(wrong)}")
    return "every array of views.npz matches"
