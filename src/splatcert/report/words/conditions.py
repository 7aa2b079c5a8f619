# SPDX-License-Identifier: Apache-2.0
"""What a certificate's guarantee depends on, in plain words, each with a mark."""

from __future__ import annotations

import math

from scipy.special import betaincinv

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.content.record import UnseenBy
from splatcert.certificate.diagnostics import SIZE_SLACK
from splatcert.certificate.hashes import has_known_origin
from splatcert.certificate.history import history_words
from splatcert.conformal.calibrate import ordinal, shortfall, state_flag
from splatcert.conformal.levels import in_percent, rounded_up_percent
from splatcert.conformal.ranks import views_needed
from splatcert.report.content import Condition, Mark, percent, plural
from splatcert.report.words.findings import (
    evenness_found,
    fair_sample_found,
    looks_trained_on_found,
    regions_found,
)
from splatcert.report.words.summary import earlier_use, learned_from_others
from splatcert.strangeness.measures import COMPONENTS

UNLUCKY = 0.1
"""Share of draws of calibration views that give less than the coverage named."""
HELD_OUT_BY: dict[UnseenBy, tuple[Mark, str]] = {
    "model": (
        "ok",
        "The model's own run or settings name the photos it was trained on; the calibration photos "
        "are not among them.",
    ),
    "user": (
        "yours",
        "The person who certified said which photos the model has not seen; the model file "
        "does not say.",
    ),
    "assumed": (
        "attention",
        "This is an assumption: the model file does not name its training photos. If the model "
        "was trained on the calibration photos, the boxes are too narrow and nothing is "
        "guaranteed.",
    ),
    "registered": (
        "yours",
        "The calibration photos were registered after the capture was made, and the model's own "
        "files do not list them. That the model was trained without them is for the person who "
        "certified to know.",
    ),
}


def conditions_of(certificate: Certificate) -> tuple[Condition, ...]:
    """All conditions, the one that nobody can check first."""
    return (
        _alike(certificate),
        evenness_found(certificate),
        *regions_found(certificate),
        *fair_sample_found(certificate),
        _enough_views(certificate),
        _unseen(certificate),
        *looks_trained_on_found(certificate),
        _labels(certificate),
        *_history(certificate),
        _pixels(certificate),
        _flag(certificate),
        *_batch(certificate),
        *_predictor(certificate),
    )


def _alike(certificate: Certificate) -> Condition:
    new = "views" if certificate.record.promise.path is None else "stretches"
    return Condition(
        mark="yours",
        title=f"New {new} are like the calibration {new}",
        words=f"The guarantee covers {new} that could equally well have been calibration {new}: "
        "same place, lighting, lens and way of moving through the scene. This is its one "
        f"assumption (exchangeability). Only you can judge whether your new {new} meet it.",
    )


def _enough_views(certificate: Certificate) -> Condition:
    guarantee = certificate.record.guarantee
    views, rank, alpha = guarantee.views, guarantee.rank, guarantee.alpha
    if missing := shortfall(views, alpha):
        title = "There are too few calibration views"
        return Condition(mark="attention", title=title, words=" ".join(missing.split()))
    promise = certificate.record.promise
    units, counted = promise.units(views), "views" if promise.path is None else "stretches"
    draws = float(betaincinv(rank, units + 1 - rank, UNLUCKY))
    return Condition(
        mark="ok",
        title=f"There are enough calibration {counted}",
        words=f"m = {units} {counted}; {in_percent(1 - alpha)} requires at least "
        f"{views_needed(alpha)}. The threshold is the {ordinal(rank)} smallest of their "
        f"{units} scores. Other calibration {counted} would give a different threshold: if "
        f"{counted} were independent, nine sets in ten would cover at least {percent(draws)} of "
        f"future {counted}.",
    )


def _unseen(certificate: Certificate) -> Condition:
    mark, words = HELD_OUT_BY[certificate.record.scene.held_out_by]
    split = certificate.record.scene.split
    return Condition(
        mark=mark,
        title="The model's run keeps the calibration photos out of training"
        if mark == "ok"
        else "Was the model trained on the calibration photos?",
        words=f"{words} Split: {split}.",
    )


def _labels(certificate: Certificate) -> Condition:
    title = "Every box was fixed before a calibration photo was opened"
    sealed = "All scales were hashed first; then this run opened the calibration photos, once."
    earlier = earlier_use(certificate)
    if not earlier:
        return Condition(mark="ok", title=title, words=sealed)
    return Condition(mark="yours", title=title, words=f"{sealed} {earlier}")


def _history(certificate: Certificate) -> tuple[Condition, ...]:
    words = history_words(certificate.record)
    title = "The calibration photos have calibrated other certificates"
    return (Condition(mark="attention", title=title, words=words),) if words else ()


def _pixels(certificate: Certificate) -> Condition:
    guarantee = certificate.record.guarantee
    title = "Which pixels the guarantee covers"
    if not guarantee.counted.masked_views:
        return Condition(mark="ok", title=title, words="All of them: no view has a mask.")
    words = f"Pixels that no mask excludes. Masks: {guarantee.counted.words(guarantee.views)}."
    return Condition(mark="yours", title=title, words=words)


def _flag(certificate: Certificate) -> Condition:
    limit = certificate.record.strangeness
    if limit is None:
        return _support(certificate)
    views, allowed = plural(limit.views, "calibration view"), limit.allowed()
    return Condition(
        mark="yours",
        title="Cameras unlike the calibration views are flagged",
        words="The strangeness of a camera is the largest of seven numbers, in units of the "
        f"training views. A camera is flagged if it is stranger than the {ordinal(limit.rank)} "
        f"least strange of {views}. A view like them is flagged with probability at most "
        f"{rounded_up_percent(limit.rate)}. A camera that is not flagged may still differ in "
        f"other ways. {state_flag(certificate.alpha, limit.rate)}",
        columns=("a camera is flagged if this exceeds its limit", "limit"),
        rows=tuple(
            (component.meaning, _limit_words(component.name, float(most)))
            for component, most in zip(COMPONENTS, allowed, strict=True)
        ),
    )


def _limit_words(name: str, most: float) -> str:
    if name in ("holes", "unseen", "oblique"):
        return percent(most)
    if name == "pose":
        return f"{most:.2f} (extents and radians)"
    return f"{math.exp(most):.2f} times"


def _support(certificate: Certificate) -> Condition:
    """The limits of certificates of schemas 2 and 3."""
    limits, views = certificate.record.support, len(certificate.record.calibration)
    assert limits is not None
    fewest, most = limits.pixels
    size = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return Condition(
        mark="yours",
        title="Cameras beyond the calibration views are flagged",
        words=f"A camera is flagged if it exceeds a limit that all {views} calibration views "
        f"keep. Each of the first three flags a view like them with probability at most "
        f"1/{views + 1}. Turned and zoomed cameras may pass: certify again for a sharper flag. "
        f"{state_flag(certificate.alpha, None)}",
        columns=("a camera is flagged if", "limit"),
        rows=(
            (
                "the mean angle to the directions of training is larger than",
                f"{math.degrees(limits.angle):.1f}°",
            ),
            ("the mean log exposure of its surfaces is smaller than", f"{limits.exposure:.2f}"),
            (
                "its distance to the nearest training camera is larger than",
                f"{limits.distance:.3f} scene extents",
            ),
            (
                f"its image size differs by more than {100 * (SIZE_SLACK - 1):.0f}% from",
                f"{size} pixels",
            ),
        ),
    )


def _batch(certificate: Certificate) -> tuple[Condition, ...]:
    if not certificate.record.scale.batch_only:
        return ()
    return (
        Condition(
            mark="attention",
            title="Only views of the certified batch are covered",
            words="The unit of the view factor is the mean over the held-out views, as in the "
            "paper. The guarantee does not cover other cameras, because they did not enter that "
            "mean. To cover them, certify with --unit deployed.",
        ),
    )


def _predictor(certificate: Certificate) -> tuple[Condition, ...]:
    predictor = learned_from_others(certificate)
    if predictor is None:
        return ()
    name = "guide" if certificate.predictor is None else "view predictor"
    if not has_known_origin(predictor.card):
        words = (
            "Its card does not name the photos it was trained on, so nobody can check whether "
            "the calibration photos are among them."
        )
        title = f"Was the {name} trained on the calibration photos?"
        return (Condition(mark="attention", title=title, words=words),)
    title = f"The {name} was trained on other photos"
    words = "None of the photos its card names is a calibration photo of this certificate."
    return (Condition(mark="ok", title=title, words=words),)
