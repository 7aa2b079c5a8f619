# SPDX-License-Identifier: Apache-2.0
"""What a certificate's promise rests on, in plain words, each with a mark."""

from __future__ import annotations

import math

from scipy.stats import beta as beta_distribution

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.diagnostics import DOUBTFUL, SIZE_SLACK
from splatcert.certificate.hashes import has_known_origin
from splatcert.certificate.record import HeldOutBy
from splatcert.conformal.calibrate import ordinal, shortfall
from splatcert.conformal.levels import in_percent
from splatcert.conformal.ranks import views_needed
from splatcert.report.content import Condition, Mark, percent, plural

UNLUCKY = 0.1
"""Share of draws of calibration views that give less than the coverage named."""
HELD_OUT_BY: dict[HeldOutBy, tuple[Mark, str]] = {
    "model": ("ok", "The model's own run or settings name the photos it was trained on."),
    "user": ("yours", "Whoever held the photos out says so; the model itself does not."),
    "assumed": (
        "attention",
        "Nobody says so: the model file does not name its training photos. If it has seen the "
        "calibration photos, the boxes are too narrow and nothing is guaranteed.",
    ),
}


def conditions_of(certificate: Certificate) -> tuple[Condition, ...]:
    """Everything, the assumption nobody can check first."""
    return (
        _alike(),
        _exchangeability(certificate),
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
        words="The promise is about views that could as well have been among the calibration "
        "views: the same place, light, lens and way of walking. This is its one assumption "
        "(exchangeability), and only you can see to it.",
    )


def _exchangeability(certificate: Certificate) -> Condition:
    test = certificate.record.exchangeability
    doubtful = test.p_value < DOUBTFUL
    told = (
        "Their scores change along the capture or from place to place, so some stretch of it is "
        "harder than the rest. Do not rely on the promise for a path that stays in one corner."
        if doubtful
        else "Their scores show no drift along the capture and no clusters in space. That is no "
        "proof, but nothing speaks against it."
    )
    return Condition(
        mark="attention" if doubtful else "ok",
        title="The calibration views differ among themselves"
        if doubtful
        else "The calibration views are alike among themselves",
        words=f"{told} Permutation test over {plural(test.views, 'view')}: p = {test.p_value:.2g} "
        f"for all statistics together; below {DOUBTFUL} would be a reason for doubt.",
        columns=("against", "statistic", "value", "p alone"),
        rows=tuple(
            (one.coordinate, one.statistic, f"{one.value:+.2f}", f"{one.p_value:.2g}")
            for one in test.findings
        ),
    )


def _enough_views(certificate: Certificate) -> Condition:
    promise = certificate.record.guarantee
    views, rank, alpha = promise.views, promise.rank, promise.alpha
    if missing := shortfall(views, alpha):
        title = "There are too few calibration views"
        return Condition(mark="attention", title=title, words=" ".join(missing.split()))
    draws = float(beta_distribution.ppf(UNLUCKY, rank, views + 1 - rank))
    return Condition(
        mark="ok",
        title="There are enough calibration views",
        words=f"m = {views} views, {views_needed(alpha)} are the least for "
        f"{in_percent(1 - alpha)}. The threshold is the k = {ordinal(rank)} smallest of their "
        f"{views} scores. They are one draw: were views independent, nine draws in ten "
        f"would cover at least {percent(draws)} of future views.",
    )


def _unseen(certificate: Certificate) -> Condition:
    mark, words = HELD_OUT_BY[certificate.record.scene.held_out_by]
    split = certificate.record.scene.split
    return Condition(
        mark=mark,
        title="Has the model seen the calibration photos?"
        if mark == "attention"
        else "The model has not seen the calibration photos",
        words=f"{words} The split: {split}.",
    )


def _labels(certificate: Certificate) -> Condition:
    labels = certificate.record.labels
    title = "Every box was fixed before a calibration photo was looked at"
    sealed = "All scales were hashed first, then the photos were handed out, once."
    earlier = labels.earlier()
    if not earlier:
        return Condition(mark="ok", title=title, words=sealed)
    return Condition(
        mark="yours",
        title=title,
        words=f"{sealed} But {earlier}. The promise needs that nobody chose the model or a "
        "setting by what they saw there.",
    )


def _pixels(certificate: Certificate) -> Condition:
    promise = certificate.record.guarantee
    title = "Which pixels the promise is about"
    if not promise.counted.masked_views:
        return Condition(mark="ok", title=title, words="All of them: no view has a mask.")
    words = f"Those that masks let count: masks {promise.counted.words(promise.views)}."
    return Condition(mark="yours", title=title, words=words)


def _support(certificate: Certificate) -> Condition:
    limits, views = certificate.record.support, len(certificate.record.calibration)
    fewest, most = limits.pixels
    size = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return Condition(
        mark="ok",
        title="Cameras that leave the captured region are flagged",
        words="A new camera is called out of support when it goes beyond the extremes of the "
        f"{views} calibration views. A view like them is flagged by each of the first three "
        f"with probability at most 1/{views + 1}.",
        columns=("a camera is flagged when", "limit"),
        rows=(
            (
                "it sees surfaces from further off the directions they were photographed from, "
                "on average",
                f"{math.degrees(limits.angle):.1f}°",
            ),
            (
                "it sees surfaces that were photographed less (mean log exposure)",
                f"{limits.exposure:.2f}",
            ),
            (
                "it stands further from the nearest training camera",
                f"{limits.distance:.3f} scene extents",
            ),
            (
                f"its picture is over {100 * (SIZE_SLACK - 1):.0f}% larger or smaller",
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
            "paper. A camera asked later was no part of that mean, so the promise does not cover "
            "it. Certify with the deployed unit for cameras asked later.",
        ),
    )


def _predictor(certificate: Certificate) -> tuple[Condition, ...]:
    predictor = certificate.rule.predictor
    if predictor is None:
        return ()
    if not has_known_origin(predictor.card):
        words = (
            "Its card does not name the photos it learned from, so nobody can check that they "
            "are not the calibration photos."
        )
        title = "Has the view predictor seen the calibration photos?"
        return (Condition(mark="attention", title=title, words=words),)
    title = "The view predictor learned from other photos"
    words = "None of the photos that its card names is a calibration photo of this certificate."
    return (Condition(mark="ok", title=title, words=words),)
