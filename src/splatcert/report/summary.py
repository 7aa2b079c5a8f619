# SPDX-License-Identifier: Apache-2.0
"""A certificate in the words that commands print."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from splatcert.certificate.diagnostics import CERTIFIED, CONSTANT, UNEVEN, too_few_to_split
from splatcert.certificate.hashes import has_known_origin
from splatcert.certificate.history import history_words
from splatcert.certificate.promise import path_words
from splatcert.certificate.record import SCHEMA
from splatcert.certificate.regions import regions_of
from splatcert.conformal.boxes import VACUOUS, width_in_words
from splatcert.conformal.calibrate import shortfall
from splatcert.conformal.levels import in_percent, rounded_up_percent
from splatcert.conformal.ranks import ceil_rank
from splatcert.errors import listed
from splatcert.report.content import of_255, percent, plural

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate
    from splatcert.certificate.promise import FamilyRecord
    from splatcert.certificate.record import UnseenBy
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
    family = record.promise.family
    place = shlex.quote(str(folder))
    rows = {
        "Certificate": str(folder),
        **promise_lines(certificate),
        "Member": "" if family is None else f"{family.member}, of {len(family.members)} members",
        "Masks": counted.words(views) if counted.masked_views else "",
        "Held out": HELD_OUT_BY[record.scene.held_out_by],
        "Photos used": earlier_use(certificate),
        "Calibrated": certified_before(certificate),
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
        "Calibration": record.promise.calibration(certificate.alpha, record.guarantee.views),
        "Evenness": f"permutation of scores: {record.evenness.in_words()}",
        "Flag": flag_words(certificate),
    }
    return {label: text for label, text in rows.items() if text}


def flag_words(certificate: Certificate) -> str:
    """How often a view like the calibration views is flagged; empty for older certificates."""
    limit = certificate.record.strangeness
    if limit is None:
        return ""
    return (
        f"a camera is flagged above strangeness {limit.limit:.2f}; views like the "
        f"{limit.views} calibration views are flagged at most {rounded_up_percent(limit.rate)} of "
        "the time"
    )


def promise_lines(certificate: Certificate) -> dict[str, str]:
    """The guarantee and its scope, which no output prints one without the other."""
    return {"Guarantee": guarantee_words(certificate), "Applies to": applies_words(certificate)}


def guarantee_words(certificate: Certificate) -> str:
    """The guarantee in one sentence, or why there is none."""
    guarantee = certificate.record.guarantee
    if missing := shortfall(guarantee.views, certificate.alpha):
        return f"None: {' '.join(missing.split())}"
    pixels = "unmasked pixels" if guarantee.counted.masked_views else "pixels"
    chance, share = in_percent(1 - certificate.alpha), in_percent(1 - certificate.beta)
    path, family = certificate.record.promise.path, certificate.record.promise.family
    if path is not None:
        covered = ceil_rank(path.length, 1 - path.gamma)
        views = f"all {covered}" if covered == path.length else f"≥ {covered} of the {path.length}"
        return (
            f"With probability ≥ {chance}, {views} views of a new stretch have ≥ {share} of their "
            f"{pixels} inside their boxes."
        )
    if family is not None:
        return (
            f"With probability ≥ {chance}, ≥ {share} of the {pixels} of a new view lie inside the "
            f"boxes of each of the {len(family.members)} members. Any of them may be chosen "
            "afterwards."
        )
    only = certificate.record.scale.batch_only
    view = "new view of the certified batch" if only else "new view"
    other = " Cameras outside the batch are not covered." if only else ""
    return (
        f"With probability ≥ {chance}, ≥ {share} of the {pixels} of a {view} lie inside their "
        f"boxes.{other}"
    )


def applies_words(certificate: Certificate) -> str:
    """What a new view or stretch must be exchangeable with."""
    promise, views = certificate.record.promise, certificate.record.guarantee.views
    if promise.path is not None:
        runs, _, unused = path_words(promise.path).partition("; ")
        rest = f". Of the others, {unused}" if unused else ""
        return f"stretches exchangeable with the {runs} it was calibrated on{rest}"
    return f"views exchangeable with the {plural(views, 'held-out photo')} it was calibrated on"


def path_guarantee(certificate: Certificate) -> dict[str, str]:
    """What is guaranteed about the frames of a film or camera path, in labelled lines."""
    path = certificate.record.promise.path
    if path is None:
        return {
            "Guarantee": "None for a camera path: this certificate is about single views. For a "
            "promise about stretches of a path, certify with --promise path."
        }
    return {
        "Guarantee": guarantee_words(certificate),
        "Applies to": f"{path.length} views in a row, spaced like the held-out photos; not to "
        "every frame",
    }


MEMBER_COLUMNS = ("member", "scale", "Gaussians", "half-width of 255", "wider than alone")


def member_rows(family: FamilyRecord) -> list[tuple[str, ...]]:
    """All members of a family with their widths, for a table."""
    return [
        (
            one.name,
            one.scale,
            f"{one.gaussians:,}",
            of_255(one.width),
            percent(one.price),
        )
        for one in family.members
    ]


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
    if rule is None:
        return f"scale {certificate.record.scale.name}: a view's factor is the mean of its scale"
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


def evenness_words(certificate: Certificate) -> str:
    """Whether difficulty is even across the capture, with the regions that differ most."""
    test, regions = certificate.record.evenness, regions_of(certificate)
    if test.p_value >= UNEVEN:
        return f"No sign that difficulty differs across the capture (p = {test.p_value:.2g})."
    if not regions:
        return f"Coverage may differ between regions of this capture (p = {test.p_value:.2g})."
    easy, hard = (pick(regions, key=lambda one: one.needed) for pick in (min, max))
    return (
        f"Coverage may differ between regions of this capture (p = {test.p_value:.2g}): views "
        f"around {hard.around} needed {width_in_words(hard.needed)}, views around {easy.around} "
        f"{width_in_words(easy.needed)}. The report lists all {len(regions)} regions."
    )


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


def estimate_words(certificate: Certificate) -> str:
    """The diagnostic estimate from random splits, which is not part of the guarantee."""
    found = certificate.record.splits
    if found is None:
        return f"none: {why_no_estimate(certificate)}"
    ours = found.scales[CERTIFIED]
    return (
        f"{percent(ours.coverage)} of test views covered over {found.splits} random splits; "
        f"{percent(abs(ours.saving))} {'narrower' if ours.saving >= 0 else 'wider'} than a "
        "constant scale"
    )


def why_no_estimate(certificate: Certificate) -> str:
    """Why a certificate has no estimate by random splits."""
    if not certificate.record.promise.is_plain:
        return "random splits of views do not test this promise"
    return too_few_to_split(certificate.record.guarantee.views, certificate.alpha)


COST = (
    "These numbers come from the calibration labels. Reading them costs nothing. Choosing a model, "
    "scale or level by them and certifying the same photos again does: the guarantee does not "
    "cover that choice."
)
"""What `certify --diagnose` says about itself."""


def diagnosis_lines(certificate: Certificate) -> dict[str, str]:
    """What the calibration labels say beyond the guarantee, for whoever asks."""
    rows = {
        "Diagnosis": COST,
        "Savings": _savings(certificate),
        "By width": tenths_words(certificate),
    }
    return {label: text for label, text in rows.items() if text}


def tenths_words(certificate: Certificate) -> str:
    """Coverage of pixels in narrow and in wide boxes; nothing where it is not known."""
    found = certificate.coverage_by_tenth
    if found is None:
        return ""
    if math.isnan(found[-1]):
        return f"{percent(found[0])} of calibration pixels are inside; widths do not differ"
    listed_ones = " ".join(f"{100 * share:.1f}" for share in found)
    return (
        "calibration pixels inside their boxes, in percent, from the tenth of each view with the "
        f"narrowest boxes to the tenth with the widest: {listed_ones}"
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
