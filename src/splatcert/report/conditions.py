# SPDX-License-Identifier: Apache-2.0
"""What a certificate's guarantee depends on, in plain words, each with a mark."""

from __future__ import annotations

import math

from scipy.stats import beta as beta_distribution

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.diagnostics import SIZE_SLACK, UNEVEN
from splatcert.certificate.hashes import has_known_origin
from splatcert.certificate.history import history_words
from splatcert.certificate.record import UnseenBy
from splatcert.certificate.regions import regions_of
from splatcert.conformal.calibrate import ordinal, shortfall, state_flag
from splatcert.conformal.levels import in_percent, rounded_up_percent
from splatcert.conformal.ranks import views_needed
from splatcert.difficulty.holdout_check import UNFAIR
from splatcert.difficulty.trained_on import LEVEL
from splatcert.report.content import Condition, Mark, percent, plural, plus_minus
from splatcert.report.summary import earlier_use
from splatcert.strangeness.measures import COMPONENTS

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
        _alike(certificate),
        _evenness(certificate),
        *_regions(certificate),
        *_fair_sample(certificate),
        _enough_views(certificate),
        _unseen(certificate),
        *_looks_trained_on(certificate),
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


def _evenness(certificate: Certificate) -> Condition:
    test = certificate.record.evenness
    tested = plural(test.views, "view")
    if certificate.record.promise.path is not None:
        tested = f"{test.views} stretches"
    uneven = test.p_value < UNEVEN
    found = (
        "Scores drift along the capture, or neighbouring cameras have similar ones. Coverage may "
        "differ between regions: on a camera path that stays in one region it may be above or "
        f"below {in_percent(1 - certificate.alpha)}. The guarantee is unaffected, because it "
        "averages over views like all the calibration views."
        if uneven
        else "The test found no drift along the capture and no clusters in space. It cannot show "
        "that there are none."
    )
    return Condition(
        mark="attention" if uneven else "neutral",
        title="Difficulty differs across the capture"
        if uneven
        else "No sign that difficulty differs across the capture",
        words=f"{found} Permutation test over {tested}: p = {test.p_value:.2g} "
        f"for all statistics together; values below {UNEVEN} are pointed out.",
        columns=("tested against", "statistic", "value", "p alone"),
        rows=tuple(
            (one.coordinate, one.statistic, f"{one.value:+.2f}", f"{one.p_value:.2g}")
            for one in test.findings
        ),
    )


def _regions(certificate: Certificate) -> tuple[Condition, ...]:
    regions = regions_of(certificate)
    if not regions:
        return ()
    return (
        Condition(
            mark="yours",
            title="Coverage by region",
            words="Calibration views are grouped by the places of their cameras. Each view is left "
            "out in turn and compared with the threshold of the others. Few views per region give "
            "a rough picture; the guarantee is about all of them together.",
            columns=("region around", "views covered", "half-width given", "half-width needed"),
            rows=tuple(
                (
                    one.around,
                    f"{one.covered} of {one.views}",
                    plus_minus(one.half_width),
                    plus_minus(one.needed),
                )
                for one in regions
            ),
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
    promise = certificate.record.promise
    units, counted = promise.units(views), "views" if promise.path is None else "stretches"
    draws = float(beta_distribution.ppf(UNLUCKY, rank, units + 1 - rank))
    return Condition(
        mark="ok",
        title=f"There are enough calibration {counted}",
        words=f"m = {units} {counted}; {in_percent(1 - alpha)} requires at least "
        f"{views_needed(alpha)}. The threshold is the {ordinal(rank)} smallest of their "
        f"{units} scores. Another set of calibration {counted} would give another threshold: if "
        f"{counted} were independent, nine sets in ten would cover at least {percent(draws)} of "
        f"future {counted}.",
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


def _looks_trained_on(certificate: Certificate) -> tuple[Condition, ...]:
    test = certificate.trained_on_check
    if test is None:
        return ()
    return (
        Condition(
            mark="attention" if test.flagged else "neutral",
            title="The calibration photos look trained on"
            if test.flagged
            else "The calibration photos do not look trained on",
            words=f"{test.words} The test compares the residuals of "
            f"{plural(test.calibration, 'calibration view')} and "
            f"{plural(test.training, 'training view')}, each with those of the views nearest in "
            "pose. Photos that were trained on, if chosen at random, are called out with "
            f"probability at least {percent(1 - LEVEL)}. Unseen photos can be called out too: the "
            "test has no known error rate for them.",
        ),
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
