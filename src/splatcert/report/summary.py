# SPDX-License-Identifier: Apache-2.0
"""A certificate in the words that commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from splatcert.report.content import percent

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate
    from splatcert.certificate.record import HeldOutBy

HELD_OUT_BY: dict[HeldOutBy, str] = {
    "model": "what its own run or settings say",
    "user": "the statement of whoever held them out",
    "assumed": "assumed: the file does not say",
}


def words(certificate: Certificate) -> dict[str, str]:
    """What a certificate says, for people: the guarantee first, doubts and estimates after."""
    from splatcert.conformal.calibrate import shortfall, state_calibration

    record, alpha = certificate.record, certificate.alpha
    promise = record.guarantee
    told = {
        "field": f"{record.field.ending}; training views re-rendered at "
        f"{record.field.training_psnr:.1f} dB",
        "predictor": predictor_words(certificate),
        "calibrated": state_calibration(alpha, promise.views),
        "guarantee": promise.statement,
    }
    if earlier := record.labels.earlier():
        told["labels"] = (
            f"{earlier}; the guarantee needs that nobody chose model or settings by them"
        )
    if promise.counted.masked_views:
        told["masks"] = promise.counted.words(promise.views)
    if missing := shortfall(promise.views, alpha):
        told["missing"] = " ".join(missing.split())
    else:
        told["width"] = width_words(certificate)
    return {
        **told,
        "assumes": assumption_words(certificate),
        "estimate": estimate_words(certificate),
    }


def predictor_words(certificate: Certificate) -> str:
    """Where the view factor comes from."""
    from splatcert.certificate.hashes import has_known_origin

    rule = certificate.rule
    if rule.predictor is None:
        return f"none: every view has factor 1, the shape counts by lambda_b = {rule.lambda_b}"
    scenes = len(rule.predictor.card.get("scenes", ()))
    other = (
        ""
        if rule.predictor.beta == certificate.beta
        else (f"; it was learned for beta = {rule.predictor.beta}, which costs width, not validity")
    )
    if not has_known_origin(rule.predictor.card):
        other += (
            "; origin unknown: its card does not name the photos it learned from, so nobody can "
            "check that they are not these"
        )
    return (
        f"learned on {scenes} scenes, lambda_a = {rule.lambda_a}, lambda_b = {rule.lambda_b}, "
        f"hash {rule.predictor.sha256[:12]}{other}"
    )


def width_words(certificate: Certificate) -> str:
    """How wide the boxes are."""
    widths = [certificate.threshold * view.factor for view in certificate.record.calibration]
    mean, least, most = sum(widths) / len(widths), min(widths), max(widths)
    told = f"mean half-width {mean:.4f} where colours go from 0 to 1, {255 * mean:.1f} of 255"
    if least == most:
        return f"{told}, in every view"
    return f"{told}; calibration views from {least:.4f} to {most:.4f}"


def assumption_words(certificate: Certificate) -> str:
    """What the guarantee rests on, and how it looks."""
    from splatcert.certificate.diagnostics import DOUBTFUL

    test = certificate.record.exchangeability
    verdict = (
        "the scores speak against it, so be careful with single regions or stretches of the capture"
        if test.p_value < DOUBTFUL
        else "the scores do not speak against it"
    )
    return (
        "a new view is exchangeable with the calibration views; by a permutation test against "
        f"capture order and pose {verdict} ({test.in_words()}); that the model has not seen the "
        f"held-out photos is {HELD_OUT_BY[certificate.record.scene.held_out_by]}"
    )


def estimate_words(certificate: Certificate) -> str:
    """The diagnostic by random splits, kept apart from the guarantee."""
    from splatcert.certificate.diagnostics import CERTIFIED, CONSTANT, too_few_to_split

    found = certificate.record.splits
    if found is None:
        return f"none: {too_few_to_split(certificate.record.guarantee.views, certificate.alpha)}"
    ours = found.scales[CERTIFIED]
    told = {CERTIFIED, CONSTANT}
    if certificate.rule.predictor is None:
        told |= {"a only", "b~ only"}  # they are the constant and the certified scale again
    rest = ", ".join(
        f"{name} {percent(one.saving)}" for name, one in found.scales.items() if name not in told
    )
    return (
        f"no part of the guarantee: over {found.splits} random splits with "
        f"{found.calibration_views} calibration views, {percent(ours.coverage)} of the test "
        f"views are covered at half-width {ours.width:.4f}, {percent(abs(ours.saving))} "
        f"{'less' if ours.saving >= 0 else 'more'} than a constant scale needs (saved by {rest})"
    )
