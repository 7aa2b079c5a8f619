# SPDX-License-Identifier: Apache-2.0
"""A certificate in the words that commands print."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from splatcert.certificate.diagnostics import CERTIFIED, CONSTANT, DOUBTFUL, too_few_to_split
from splatcert.certificate.hashes import has_known_origin
from splatcert.conformal.calibrate import shortfall, state_calibration
from splatcert.conformal.levels import in_percent
from splatcert.errors import listed
from splatcert.report.content import percent, plural

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate
    from splatcert.certificate.record import UnseenBy
    from splatcert.scene.roles import Purpose

HELD_OUT_BY: dict[UnseenBy, str] = {
    "model": "",
    "user": "You stated that the model has not seen these photos; the model file does not say.",
    "assumed": "Assumed: the model file does not say which photos it was trained on. If it was "
    "trained on the held-out ones, nothing is guaranteed.",
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
    place = shlex.quote(str(folder))
    rows = {
        "Certificate": str(folder),
        "Guarantee": guarantee_words(certificate),
        "Applies to": f"views exchangeable with the {plural(views, 'held-out photo')} it was "
        "calibrated on",
        "Masks": counted.words(views) if counted.masked_views else "",
        "Held out": HELD_OUT_BY[record.scene.held_out_by],
        "Photos used": earlier_use(certificate),
        "Predictor": _predictor_note(certificate),
        "Half-width": width_words(certificate),
        "Estimate": estimate_words(certificate),
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
        "Calibration": state_calibration(certificate.alpha, record.guarantee.views),
        "Test": f"permutation of scores: {record.exchangeability.in_words()}",
        "Savings": _savings(certificate),
    }
    return {label: text for label, text in rows.items() if text}


def guarantee_words(certificate: Certificate) -> str:
    """The guarantee in one sentence, or why there is none."""
    guarantee = certificate.record.guarantee
    if missing := shortfall(guarantee.views, certificate.alpha):
        return f"None: {' '.join(missing.split())}"
    pixels = "unmasked pixels" if guarantee.counted.masked_views else "pixels"
    only = certificate.record.scale.batch_only
    view = "new view of the certified batch" if only else "new view"
    other = " Cameras outside the batch are not covered." if only else ""
    return (
        f"With probability ≥ {in_percent(1 - certificate.alpha)}, "
        f"≥ {in_percent(1 - certificate.beta)} of the {pixels} of a {view} lie inside their boxes."
        f"{other}"
    )


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


def _predictor_note(certificate: Certificate) -> str:
    """What is unusual about the view predictor, if anything is."""
    predictor = certificate.predictor
    if certificate.rule is None:
        return ""
    if predictor is None:
        return "none: every view has factor 1"
    notes = []
    if predictor.beta != certificate.beta:
        notes.append(f"trained for beta = {predictor.beta}: boxes may be wider, but remain valid")
    if not has_known_origin(predictor.card):
        notes.append(
            "origin unknown: its card does not name the photos it was trained on, so nobody can "
            "check whether the held-out photos are among them"
        )
    return "; ".join(notes)


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
    widths = [255 * certificate.threshold * v.factor for v in certificate.record.calibration]
    mean, least, most = sum(widths) / len(widths), min(widths), max(widths)
    if least == most:
        return f"{mean:.1f} of 255 on average, the same in every view"
    return f"{mean:.1f} of 255 on average ({least:.1f} to {most:.1f} across calibration views)"


def exchangeability_words(certificate: Certificate) -> str:
    """What the permutation test found about the one assumption."""
    test = certificate.record.exchangeability
    if test.p_value < DOUBTFUL:
        return (
            "Coverage may differ between regions of this capture "
            f"(permutation test: p = {test.p_value:.2g}; see the report)."
        )
    return (
        "A permutation test on capture order and pose found no evidence against "
        f"exchangeability (p = {test.p_value:.2g})."
    )


def _holdout_rows(certificate: Certificate) -> dict[str, str]:
    """The notes; a hold-out that is no fair sample gets a row of its own."""
    notes, check = exchangeability_words(certificate), certificate.holdout_check
    if check is None:
        return {"Notes": notes}
    if check.flagged:
        return {"Hold-out": check.words, "Notes": notes}
    return {"Notes": f"{notes} {check.words}"}


def estimate_words(certificate: Certificate) -> str:
    """The diagnostic estimate from random splits, which is not part of the guarantee."""
    found = certificate.record.splits
    if found is None:
        return f"none: {too_few_to_split(certificate.record.guarantee.views, certificate.alpha)}"
    ours = found.scales[CERTIFIED]
    return (
        f"{percent(ours.coverage)} of test views covered over {found.splits} random splits; "
        f"{percent(abs(ours.saving))} {'narrower' if ours.saving >= 0 else 'wider'} than a "
        "constant scale"
    )


def _savings(certificate: Certificate) -> str:
    """Width that parts of the scale save against a constant one."""
    found = certificate.record.splits
    if found is None:
        return ""
    left_out = {CERTIFIED, CONSTANT}
    if certificate.predictor is None:
        left_out |= {"a only", "b~ only"}  # they are the constant and the certified scale again
    parts = [
        f"{name} {percent(s.saving)}" for name, s in found.scales.items() if name not in left_out
    ]
    return f"against a constant scale: {', '.join(parts)}"
