# SPDX-License-Identifier: Apache-2.0
"""What tests found about a hold-out and across a capture, as conditions of a report."""

from __future__ import annotations

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.diagnostics import UNEVEN
from splatcert.certificate.regions import regions_of
from splatcert.conformal.levels import in_percent
from splatcert.difficulty.holdout_check import UNFAIR
from splatcert.difficulty.trained_on import LEVEL
from splatcert.report.content import Condition, percent, plural, plus_minus


def evenness_found(certificate: Certificate) -> Condition:
    """Whether scores depend on the place or the order of their views."""
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
        f"for all statistics together; values below {UNEVEN} need attention.",
        columns=("tested against", "statistic", "value", "p alone"),
        rows=tuple(
            (one.coordinate, one.statistic, f"{one.value:+.2f}", f"{one.p_value:.2g}")
            for one in test.findings
        ),
    )


def regions_found(certificate: Certificate) -> tuple[Condition, ...]:
    """Coverage and width region by region."""
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


def fair_sample_found(certificate: Certificate) -> tuple[Condition, ...]:
    """Whether the held-out photos are a fair sample of the capture."""
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
            f"together; values below {UNFAIR} need attention.",
            columns=("feature", "median calibration", "median training", "z"),
            rows=tuple(
                (one.feature, one.words(one.held_out), one.words(one.training), f"{one.z:+.2f}")
                for one in check.differences
            ),
        ),
    )


def looks_trained_on_found(certificate: Certificate) -> tuple[Condition, ...]:
    """Whether the calibration photos look trained on."""
    test = certificate.trained_on_check
    if test is None:
        return ()
    return (
        Condition(
            mark="attention" if test.flagged else "neutral",
            title="No evidence that the calibration photos are new to the model"
            if test.flagged
            else "The calibration photos do not look trained on",
            words=f"{test.words} The test compares the residuals of "
            f"{plural(test.calibration, 'calibration view')} and "
            f"{plural(test.training, 'training view')}, each with those of the views nearest in "
            "pose. Photos that were trained on, if chosen at random, get this warning with "
            f"probability at least {percent(1 - LEVEL)}. Unseen photos can get it too: the test "
            "has no known error rate for them.",
        ),
    )
