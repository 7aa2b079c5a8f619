# SPDX-License-Identifier: Apache-2.0
"""A certificate in the words that commands print."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from splatcert.certificate.content.record import SCHEMA
from splatcert.certificate.hashes import has_known_origin
from splatcert.certificate.history import history_words
from splatcert.conformal.boxes import VACUOUS, width_in_words
from splatcert.conformal.calibrate import shortfall
from splatcert.conformal.levels import parse_level
from splatcert.difficulty.guided.rule import GuidedRule
from splatcert.errors import listed
from splatcert.report.content import plural
from splatcert.report.words.diagnosis import estimate_words, evenness_words, flag_words
from splatcert.report.words.promise import promise_lines

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate
    from splatcert.certificate.content.record import UnseenBy
    from splatcert.difficulty.guided.guide import Guide
    from splatcert.difficulty.predictor import ViewPredictor
    from splatcert.scene.roles import Purpose

HELD_OUT_BY: dict[UnseenBy, str] = {
    "model": "",
    "user": "You stated that the model has not seen these photos; the model file does not say.",
    "assumed": "Assumed: the model file does not say which photos it was trained on. If it was "
    "trained on the held-out ones, nothing is guaranteed.",
    "registered": "These photos were registered after the capture was made. The guarantee assumes "
    "that the model was trained before that, or without them.",
}
"""Who says which photos the model has not seen, where it is not the model itself."""
LABEL_USES: dict[Purpose, str] = {
    "calibration": "for calibration",
    "evaluation": "to measure quality",
    "source": "to train a view predictor",
}


def closing_lines(certificate: Certificate, folder: Path) -> dict[str, str]:
    """What `certify` ends with: the guarantee, whom it serves, what it costs, what comes next.

    Rows beyond the seven usual ones appear only where there is something to say.
    """
    record = certificate.record
    counted, views = record.guarantee.counted, record.guarantee.views
    family, guided = record.promise.family, record.scale.name == "guided"
    place = shlex.quote(str(folder))
    rows = {
        "Certificate": str(folder),
        **promise_lines(certificate),
        "Member": "" if family is None else f"{family.member}, of {len(family.members)} members",
        "Masks": counted.words(views) if counted.masked_views else "",
        "Held out": HELD_OUT_BY[record.scene.held_out_by],
        "Photos used": earlier_use(certificate),
        "Calibrated": certified_before(certificate),
        "Guide" if guided else "Predictor": _predictor_note(certificate),
        "Half-width": width_words(certificate),
        "Estimate": estimate_words(certificate),
        "Prediction": prediction_words([certificate]),
        **_holdout_rows(certificate),
        "Next": f"splatcert report {place}    splatcert view {place}",
    }
    return {label: text for label, text in rows.items() if text}


def detail_lines(certificate: Certificate) -> dict[str, str]:
    """How a certificate was made, for whoever inspects it."""
    record = certificate.record
    rows = {
        "Field": f"{record.field.ending}; training views re-rendered at "
        f"{record.field.training_psnr:.1f} dB",
        "Scale": scale_words(certificate),
        "Calibration": record.promise.calibration(certificate.alpha, record.guarantee.views),
        "Evenness": f"permutation of scores: {record.evenness.in_words()}",
        "Flag": flag_words(certificate),
    }
    return {label: text for label, text in rows.items() if text}


def earlier_use(certificate: Certificate) -> str:
    """Who had used held-out photos before the scales were fixed, and what follows; or nothing."""
    labels, told = certificate.record.labels, []
    for entry in labels.ledger[: labels.handed_out_before]:
        photos = f"{plural(len(entry.views), 'held-out photo')} ({listed(entry.views)})"
        told.append(f"{entry.by} had already used {photos} {LABEL_USES[entry.purpose]}.")
    if not told:
        return ""
    return (
        f"{' '.join(told)} The guarantee assumes that nobody used them to choose the model or "
        "its settings."
    )


def certified_before(certificate: Certificate) -> str:
    """Other certificates of the same photos, or why none could be known; nothing in general."""
    record = certificate.record
    if words := history_words(record):
        return words
    from_files = any(view.file for view in record.calibration)
    if record.history is None and record.schema == SCHEMA and from_files:
        return (
            "The ledger of calibrated photos could not be kept, so nobody knows whether these "
            "photos calibrated other certificates. Set SPLATCERT_STATE to a writable folder."
        )
    return ""


def learned_from_others(certificate: Certificate) -> ViewPredictor | Guide | None:
    """The view predictor or the guide, whichever the scale has."""
    scale = certificate.record.scale
    if scale.name == "guided":
        return GuidedRule.of(scale.parameters).guide
    return certificate.predictor


def _predictor_note(certificate: Certificate) -> str:
    """What is unusual about the view predictor or the guide, if anything is."""
    predictor = learned_from_others(certificate)
    if predictor is None:
        return "" if certificate.rule is None else "none: every view has factor 1"
    notes = []
    if parse_level(str(predictor.beta), "beta") != certificate.beta:
        notes.append(f"trained for beta = {predictor.beta}: boxes may be wider, but remain valid")
    if not has_known_origin(predictor.card):
        notes.append(
            "origin unknown: its card does not name the photos it was trained on, so nobody can "
            "check whether the held-out photos are among them"
        )
    return "; ".join(notes)


def prediction_words(members: Iterable[Certificate]) -> str:
    """That prediction requires the training photos; nothing for scales that require none."""
    needed = {one.record.scale.needs_photos for one in members}
    if needed == {True, False}:
        return "members of the guided scale require the training photos, the others do not."
    if needed == {True}:
        return "requires the training photos. --scale paper makes a certificate that does not."
    return ""


def scale_words(certificate: Certificate) -> str:
    """Where the view factor comes from, and how much factor and shape count."""
    rule, predictor = certificate.rule, certificate.predictor
    name, center = certificate.record.scale.name, certificate.record.center
    if name == "guided":
        around = "the render" if center == "render" else "the render, corrected by these photos"
        return f"scale guided: boxes follow training photos of the same surfaces, around {around}"
    if rule is None:
        return f"scale {name}: a view's factor is the mean of its scale"
    if predictor is None:
        return f"no view predictor: every view has factor 1; lambda_b = {rule.lambda_b}"
    scenes = len(predictor.card.get("scenes", ()))
    return (
        f"view predictor trained on {plural(scenes, 'scene')}; lambda_a = {rule.lambda_a}, "
        f"lambda_b = {rule.lambda_b}, hash {predictor.sha256[:12]}"
    )


def width_words(certificate: Certificate) -> str:
    """How wide the boxes are; nothing where they are unbounded."""
    if shortfall(certificate.record.guarantee.views, certificate.alpha):
        return ""
    widths = [certificate.threshold * v.factor for v in certificate.record.calibration]
    mean, least, most = sum(widths) / len(widths), min(widths), max(widths)
    if mean > VACUOUS:
        return width_in_words(mean)
    if least == most:
        return f"{width_in_words(mean)} on average, the same in every view"
    across = f"{255 * least:.1f} to {255 * min(most, VACUOUS):.1f} across calibration views"
    return f"{width_in_words(mean)} on average ({across})"


def _holdout_rows(certificate: Certificate) -> dict[str, str]:
    """The notes; a test of the hold-out that calls it out gets a row of its own."""
    rows, notes = {}, [evenness_words(certificate)]
    tests = {"Hold-out": certificate.holdout_check, "Unseen": certificate.trained_on_check}
    for name, test in tests.items():
        if test is not None and test.flagged:
            rows[name] = test.words
        elif test is not None:
            notes.append(test.words)
    return {**rows, "Notes": " ".join(notes)}
