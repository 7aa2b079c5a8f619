# SPDX-License-Identifier: Apache-2.0
"""A stored certificate compared with one computed from scratch from photographs and splats.

This detects forgeries: anybody can recreate a seal, but not the scores of photographs under
a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.content.record import CalibrationRecord, Record, TrainingRecord
from splatcert.errors import listed
from splatcert.storage.schema import to_plain
from splatcert.verification.checks import Check, NotCheckable, check, differences, run_check
from splatcert.verification.tolerances import (
    FLOOR,
    OTHER_DECODER,
    SAME_PIXELS,
    Tolerance,
    check_arrays,
    within,
)

HalfWidths = Iterable[tuple[str, NDArray[np.float64], NDArray[np.float64]]]
"""Half-widths over q, [H, W], of each calibration view by name: as certified, and recomputed."""
APART = {
    # Entries about the writing of the file, not about what was certified.
    *("created", "splatcert", "schema", "files", "seal"),
    # Where the capture is stored and how it was loaded: its views and pixels are compared.
    *("scene.name", "scene.split", "scene.loaded"),
    # Hashes of rounded numbers, and the solver's end, which depends on rounding. The numbers
    # themselves are compared, and the offline check compares them with the hashes.
    *("calibration[].field", "unlabelled[].field", "labels.frozen"),
    *("field.steps", "field.ending", "field.residual", "field.converged"),
    # Hashes of pixels, which a different image library may decode differently: see `_photos`.
    *("training[].image", "calibration[].image"),
    # Units of the descriptor: they follow from descriptors, and the factors from them.
    *("scale.parameters.feature_means", "scale.parameters.feature_stds"),
    # They follow from views.npz, whose arrays are compared; older schemas had other ones.
    *("support", "strangeness", "scale.bounds"),
    # These follow from scores, factors and cameras, as the offline check shows. Scores that
    # tie up to rounding may swap ranks.
    *("evenness", "splits"),
    # Earlier uses of labels, and who says that views were held out: neither can be recomputed.
    *("labels.handed_out_before", "labels.ledger", "history", "scene.held_out_by"),
}
"""Entries that are not compared with a recomputed certificate, and why."""


def compare(
    stored: Certificate, again: Certificate, half_widths: HalfWidths = ()
) -> tuple[Check, ...]:
    """One check for each part that must match after recomputing."""
    allowed = OTHER_DECODER if _decoded_differently(stored.record, again.record) else SAME_PIXELS
    questions: dict[str, Callable[[Certificate, Certificate, Tolerance], str]] = {
        "model": _model,
        "views": _views,
        "photos": _photos,
        "field": _field,
        "new scores": _scores,
        "new q": _threshold,
        "new factors": _factors,
        "half-widths": lambda *both: _half_widths(half_widths, *both),
        "entries": _entries,
        "numbers": _numbers,
    }
    return tuple(
        run_check(name, lambda ask=question: ask(stored, again, allowed))
        for name, question in questions.items()
    )


def _decoded_differently(stored: Record, again: Record) -> list[str]:
    """Photos whose files match but whose pixels do not."""
    ours = _labelled(again)
    return [
        name
        for name, view in _labelled(stored).items()
        if name in ours
        and view.image != ours[name].image
        and view.file is not None
        and view.file == ours[name].file
    ]


def _model(stored: Certificate, again: Certificate, _: Tolerance) -> str:
    one, other = stored.record, again.record
    check(one.model == other.model, "these are not the splats that were certified")
    told = f"{one.model.gaussians:,} Gaussians, hash {one.model.splats[:12]}"
    if one.renderer.backend != other.renderer.backend:
        check(one.renderer.background == other.renderer.background, "the background differs")
        return (
            f"{told}; certified with {one.renderer.backend}, recomputed with "
            f"{other.renderer.backend}"
        )
    check(one.renderer == other.renderer, "a different renderer was certified")
    return f"{told}; same renderer"


def _views(stored: Certificate, again: Certificate, _: Tolerance) -> str:
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


def _photos(stored: Certificate, again: Certificate, tolerance: Tolerance) -> str:
    ours, theirs = _labelled(again.record), _labelled(stored.record)
    decoded = _decoded_differently(stored.record, again.record)
    other = [
        name
        for name, view in theirs.items()
        if name not in decoded and (name not in ours or ours[name].image != view.image)
    ]
    check(not other, f"{len(other)} photos differ from the certified ones: {listed(other)}")
    if decoded:
        return (
            f"all {len(theirs)} files match; {len(decoded)} decode to slightly different pixels "
            f"here, so numbers are compared within {100 * tolerance.near:g}%"
        )
    return f"all {len(theirs)} photos have the pixels that were certified"


def _labelled(record: Record) -> dict[str, TrainingRecord | CalibrationRecord]:
    views: Sequence[TrainingRecord | CalibrationRecord] = (*record.training, *record.calibration)
    return {view.name: view for view in views}


def _field(stored: Certificate, again: Certificate, tolerance: Tolerance) -> str:
    one, other = stored.field.coefficients, again.field.coefficients
    size = max(float(np.abs(other).max(initial=0.0)), 1e-30)
    difference = tolerance.check("coefficients of the refitted field", one, other, size)
    # Direction and error of a Gaussian are sums over the same pixels as its exposure.
    exposure = FLOOR / tolerance.far + again.field.support[..., :1]
    tolerance.check("recomputed support", stored.field.support, again.field.support, exposure)
    return f"refitted to the training photos: coefficients {within(difference)}"


def _scores(stored: Certificate, again: Certificate, tolerance: Tolerance) -> str:
    return _same_for_views(stored.record, again.record, "score", tolerance)


def _factors(stored: Certificate, again: Certificate, tolerance: Tolerance) -> str:
    """Factors of the held-out views, and those that the stored rule gives to training views."""
    told = _same_for_views(stored.record, again.record, "factor", tolerance)
    if stored.rule is None or again.rule is None:
        return told
    training = again.views.training.descriptors
    ours, theirs = again.rule.factors(training), stored.rule.factors(training)
    apart = np.abs(theirs - ours) / ours
    check(
        bool((apart <= tolerance.near).all()),
        f"the stored rule gives training views factors that differ by {apart.max():.1e}",
    )
    return f"{told}; the rule agrees on training views"


def _same_for_views(one: Record, other: Record, entry: str, tolerance: Tolerance) -> str:
    """A number of every calibration view; the promise depends on each of them."""
    ours = {view.name: getattr(view, entry) for view in other.calibration}
    theirs = {view.name: getattr(view, entry) for view in one.calibration}
    check(ours.keys() == theirs.keys(), "the calibration views differ")
    apart = {
        n: 0.0 if theirs[n] == ours[n] else abs(theirs[n] - ours[n]) / max(abs(ours[n]), 1e-30)
        for n in ours
    }
    wrong = [name for name, difference in apart.items() if not difference <= tolerance.near]
    check(not wrong, f"{len(wrong)} recomputed {entry}s do not match: {listed(wrong)}")
    return f"all {len(ours)} recomputed from scratch: {within(max(apart.values()))}"


def _half_widths(
    maps: HalfWidths, stored: Certificate, again: Certificate, tolerance: Tolerance
) -> str:
    """What the stored field, support and rule give at the calibration cameras, pixel by pixel."""
    check(stored.record.model == again.record.model, "these are not the splats that were certified")
    worst, views = 0.0, 0
    for name, certified, recomputed in maps:
        size = float(recomputed.mean())
        worst = max(worst, tolerance.check(f"half-widths of {name}", certified, recomputed, size))
        views += 1
    if not views:
        raise NotCheckable("no half-widths were recomputed")
    return f"at all {views} calibration cameras, relative to their mean: {within(worst)}"


def _threshold(stored: Certificate, again: Certificate, tolerance: Tolerance) -> str:
    one, other = stored.threshold, again.threshold
    # Unlike a difference and a tolerance, isclose tells infinity from every finite number.
    check(math.isclose(one, other, rel_tol=tolerance.near), f"stored {one}, recomputed {other}")
    return f"{other:.6g}, from the photos and the splats alone"


def _entries(stored: Certificate, again: Certificate, tolerance: Tolerance) -> str:
    """Everything else in certificate.json; `predict` depends on units and extent too."""
    one, other = to_plain(stored.record), to_plain(again.record)
    asked = one["renderer"]["backend"] != other["renderer"]["backend"]  # see `_model`
    apart = APART | {"renderer"} if asked else APART
    wrong = list(differences(one, other, tolerance.near, apart=apart))
    check(not wrong, f"{len(wrong)} recomputed entries do not match: {listed(wrong)}")
    return "scale, factors, extent and limits match"


def _numbers(stored: Certificate, again: Certificate, tolerance: Tolerance) -> str:
    """Everything in views.npz: units and factors depend on its descriptors."""
    check_arrays(stored.views, again.views, tolerance)
    return "every array of views.npz matches"
