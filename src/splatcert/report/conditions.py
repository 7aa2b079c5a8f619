# SPDX-License-Identifier: Apache-2.0
"""What a certificate's guarantee depends on, in plain words, each with a mark."""

from __future__ import annotations

import math

from scipy.stats import beta as beta_distribution

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.diagnostics import DOUBTFUL, SIZE_SLACK
from splatcert.certificate.hashes import has_known_origin
from splatcert.certificate.record import UnseenBy
from splatcert.conformal.calibrate import ordinal, shortfall
from splatcert.conformal.levels import in_percent
from splatcert.conformal.ranks import views_needed
from splatcert.difficulty.holdout_check import UNFAIR
from splatcert.report.content import Condition, Mark, percent, plural
from splatcert.report.summary import earlier_use

UNLUCKY = 0.1
"""Share of draws of calibration views that give less than the coverage named."""
HELD_OUT_BY: dict[UnseenBy, tuple[Mark, str]] = {
    "model": ("ok", "The model's own run or settings name the photos it was trained on."),
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
        _alike(),
        _exchangeability(certificate),
        *_fair_sample(certificate),
        _enough_views(certificate),
        _unseen(certificate),
        _labels(certificate),
        _pixels(certificate),
        _support(certificate),
        *_batch(certificate),
        *_predictor(certificate),
    )


def _alike() -> Condition:
    return Condition(
        mark="yours",
        title="New views are like the calibration views",
        words="The guarantee covers views that could equally well have been calibration views: "
        "same place, lighting, lens and way of moving through the scene. This is its one "
        "assumption (exchangeability). Only you can judge whether your new views meet it.",
    )


def _exchangeability(certificate: Certificate) -> Condition:
    test = certificate.record.exchangeability
    rejected = test.p_value < DOUBTFUL
    found = (
        "The scores drift along the capture or cluster in space, so parts of the capture are "
        "harder than others. Coverage may be lower there: do not rely on the guarantee for a "
        "camera path that stays in one region."
        if rejected
        else "The test found no drift along the capture and no clusters in space. This is no "
        "evidence against exchangeability; it is not proof of it."
    )
    return Condition(
        mark="attention" if rejected else "neutral",
        title="Calibration scores depend on where or when a photo was taken"
        if rejected
        else "No evidence that calibration scores depend on place or order",
        words=f"{found} Permutation test over {plural(test.views, 'view')}: p = {test.p_value:.2g} "
        f"for all statistics together; values below {DOUBTFUL} are flagged.",
        columns=("tested against", "statistic", "value", "p alone"),
        rows=tuple(
            (one.coordinate, one.statistic, f"{one.value:+.2f}", f"{one.p_value:.2g}")
            for one in test.findings
        ),
    )


def _fair_sample(certificate: Certificate) -> tuple[Condition, ...]:
    check = certificate.holdout_check
    if check is None:
        return ()
    return (
        Condition(
            mark="attention" if check.flagged else "neutral",
            title="The calibration photos are not a fair sample of the capture"
            if check.flagged
            else "No sign that calibration and training cameras differ",
            words=f"{check.words} The test compares the cameras of "
            f"{plural(check.held_out, 'calibration view')} and "
            f"{plural(check.training, 'training view')}. Its p-value is for all features "
            f"together; values below {UNFAIR} are flagged.",
            columns=("feature", "median calibration", "median training", "z"),
            rows=tuple(
                (one.feature, one.words(one.held_out), one.words(one.training), f"{one.z:+.2f}")
                for one in check.differences
            ),
        ),
    )


def _enough_views(certificate: Certificate) -> Condition:
    guarantee = certificate.record.guarantee
    views, rank, alpha = guarantee.views, guarantee.rank, guarantee.alpha
    if missing := shortfall(views, alpha):
        title = "There are too few calibration views"
        return Condition(mark="attention", title=title, words=" ".join(missing.split()))
    draws = float(beta_distribution.ppf(UNLUCKY, rank, views + 1 - rank))
    return Condition(
        mark="ok",
        title="There are enough calibration views",
        words=f"m = {views} views; {in_percent(1 - alpha)} requires at least "
        f"{views_needed(alpha)}. The threshold is the {ordinal(rank)} smallest of their "
        f"{views} scores. Another set of calibration views would give another threshold: if views "
        f"were independent, nine sets in ten would cover at least {percent(draws)} of future "
        "views.",
    )


def _unseen(certificate: Certificate) -> Condition:
    mark, words = HELD_OUT_BY[certificate.record.scene.held_out_by]
    split = certificate.record.scene.split
    return Condition(
        mark=mark,
        title="Was the model trained on the calibration photos?"
        if mark == "attention"
        else "The model was not trained on the calibration photos",
        words=f"{words} Split: {split}.",
    )


def _labels(certificate: Certificate) -> Condition:
    title = "Every box was fixed before a calibration photo was opened"
    sealed = "All scales were hashed first; then the calibration photos were opened, once."
    earlier = earlier_use(certificate)
    if not earlier:
        return Condition(mark="ok", title=title, words=sealed)
    return Condition(mark="yours", title=title, words=f"{sealed} {earlier}")


def _pixels(certificate: Certificate) -> Condition:
    guarantee = certificate.record.guarantee
    title = "Which pixels the guarantee covers"
    if not guarantee.counted.masked_views:
        return Condition(mark="ok", title=title, words="All of them: no view has a mask.")
    words = f"Pixels that no mask excludes. Masks: {guarantee.counted.words(guarantee.views)}."
    return Condition(mark="yours", title=title, words=words)


def _support(certificate: Certificate) -> Condition:
    limits, views = certificate.record.support, len(certificate.record.calibration)
    fewest, most = limits.pixels
    size = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return Condition(
        mark="ok",
        title="Cameras that leave the captured region are flagged",
        words="A new camera is flagged as out of distribution when it exceeds a limit that "
        f"all {views} calibration views keep. Each of the first three limits flags an "
        f"exchangeable view with probability at most 1/{views + 1}.",
        columns=("a camera is flagged if", "limit"),
        rows=(
            (
                "the mean angle between it and the directions its surfaces were photographed "
                "from is larger than",
                f"{math.degrees(limits.angle):.1f}°",
            ),
            (
                "the mean log exposure of its surfaces in training photos is smaller than",
                f"{limits.exposure:.2f}",
            ),
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
    predictor = certificate.predictor
    if predictor is None:
        return ()
    if not has_known_origin(predictor.card):
        words = (
            "Its card does not name the photos it was trained on, so nobody can check whether "
            "the calibration photos are among them."
        )
        title = "Was the view predictor trained on the calibration photos?"
        return (Condition(mark="attention", title=title, words=words),)
    title = "The view predictor was trained on other photos"
    words = "None of the photos its card names is a calibration photo of this certificate."
    return (Condition(mark="ok", title=title, words=words),)
