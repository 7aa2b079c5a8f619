# SPDX-License-Identifier: Apache-2.0
"""A stored certificate against one computed afresh from photographs and splats.

This is what finds a forger: a seal can be made again by anybody, the scores of photographs
under a model cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.checks import Check, answer, differences, different_arrays, require
from splatcert.certificate.record import CalibrationRecord, Record, TrainingRecord
from splatcert.errors import listed
from splatcert.storage.schema import to_plain

TOLERANCE = 1e-4
"""Relative difference that another processor's or image library's rounding may explain."""
APART = {
    # Of this writing, not of what was certified.
    *("created", "splatcert", "files", "seal"),
    # Where the capture lies and how it was asked for: its views and pixels are compared.
    *("scene.name", "scene.split", "scene.loaded"),
    # Hashes of rounded numbers, and where rounding lets the solver stop. The numbers behind
    # them are compared, and that the hashes follow from the stored ones is checked offline.
    *("calibration[].field", "unlabelled[].field", "labels.frozen"),
    *("field.steps", "field.ending", "field.residual"),
    # Who was given labels before, and on whose word views were held out, is history, which
    # cannot be computed again.
    *("labels.handed_out_before", "labels.ledger", "scene.held_out_by"),
}
"""Entries that are not compared with a certificate made afresh, and why."""


def compare(stored: Certificate, again: Certificate) -> tuple[Check, ...]:
    """One check for each thing that should have come out the same."""
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
        answer(name, lambda ask=question: ask(stored, again))
        for name, question in questions.items()
    )


def _model(stored: Certificate, again: Certificate) -> str:
    one, other = stored.record, again.record
    require(one.model == other.model, "the splats are others than the certified ones")
    require(one.renderer == other.renderer, "the renderer is another than the certified one")
    return f"{one.model.gaussians:,} Gaussians, hash {one.model.splats[:12]}; same renderer"


def _views(stored: Certificate, again: Certificate) -> str:
    for role in ("training", "calibration", "unlabelled"):
        ours = {view.name: view.pose for view in getattr(again.record, role)}
        theirs = {view.name: view.pose for view in getattr(stored.record, role)}
        require(ours.keys() == theirs.keys(), f"the {role} views of the capture are others")
        moved = [name for name in theirs if theirs[name] != ours[name]]
        require(not moved, f"cameras of {len(moved)} {role} views are others: {listed(moved)}")
    return "same views, same cameras, same roles"


def _photos(stored: Certificate, again: Certificate) -> str:
    ours, theirs = _labelled(again.record), _labelled(stored.record)
    other = [
        name for name, view in theirs.items() if name not in ours or ours[name].image != view.image
    ]
    files = [n for n in other if n in ours and theirs[n].file and ours[n].file != theirs[n].file]
    same_file = " (the files are the same: another image library decodes them differently)"
    hint = same_file if other and not files else ""
    require(not other, f"{len(other)} photos are others: {listed(other)}{hint}")
    return f"all {len(theirs)} photos have the pixels that were certified"


def _labelled(record: Record) -> dict[str, TrainingRecord | CalibrationRecord]:
    views: Sequence[TrainingRecord | CalibrationRecord] = (*record.training, *record.calibration)
    return {view.name: view for view in views}


def _field(stored: Certificate, again: Certificate) -> str:
    one, other = stored.fit.field.coefficients, again.fit.field.coefficients
    require(one.shape == other.shape, f"shape {tuple(one.shape)}, refitted {tuple(other.shape)}")
    difference = float((one - other).abs().max() / other.abs().max().clamp(min=1e-30))
    require(difference <= TOLERANCE, f"refitted, its coefficients differ by {difference:.1e}")
    support = stored.fit.support.sums, again.fit.support.sums
    require(
        support[0].shape == support[1].shape
        and bool(np.allclose(*(part.numpy() for part in support), rtol=TOLERANCE, atol=1e-3)),
        "accumulated again, the support is another",
    )
    return f"refitted to the training photos: coefficients within {difference:.1e}"


def _scores(stored: Certificate, again: Certificate) -> str:
    ours = {view.name: view.score for view in again.record.calibration}
    theirs = {view.name: view.score for view in stored.record.calibration}
    require(ours.keys() == theirs.keys(), "the calibration views are others")
    apart = {n: abs(theirs[n] - ours[n]) / max(abs(ours[n]), 1e-30) for n in ours}
    wrong = [name for name, difference in apart.items() if not difference <= TOLERANCE]
    require(not wrong, f"recomputed, {len(wrong)} scores are others: {listed(wrong)}")
    return f"all {len(ours)} recomputed from scratch, within {max(apart.values()):.1e}"


def _threshold(stored: Certificate, again: Certificate) -> str:
    one, other = stored.threshold, again.threshold
    # Unlike a difference times a tolerance, isclose holds an infinite one apart from any other.
    require(math.isclose(one, other, rel_tol=TOLERANCE), f"stored {one}, recomputed {other}")
    return f"{other:.6g}, from the photos and the splats alone"


def _entries(stored: Certificate, again: Certificate) -> str:
    """Everything else that certificate.json says; `predict` believes units and extent too."""
    one, other = to_plain(stored.record), to_plain(again.record)
    wrong = list(differences(one, other, TOLERANCE, apart=APART))
    require(not wrong, f"recomputed, {len(wrong)} entries are others: {listed(wrong)}")
    return "scale, factors, extent, limits and estimates come out the same"


def _numbers(stored: Certificate, again: Certificate) -> str:
    """Everything that views.npz says: units and factors rest on its descriptors."""
    wrong = list(different_arrays(stored.views, again.views, TOLERANCE))
    require(not wrong, f"recomputed, arrays of views.npz are others: {listed(wrong)}")
    return "every array of views.npz comes out the same"
