# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a certificate say beyond its guarantee, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from splatcert.certificate.diagnostics import CERTIFIED, CONSTANT, UNEVEN, too_few_to_split
from splatcert.certificate.regions import regions_of
from splatcert.conformal.boxes import width_in_words
from splatcert.conformal.levels import rounded_up_percent
from splatcert.report.content import percent

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate


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
        f"{width_in_words(easy.needed)}. The report lists the {len(regions)} regions."
    )


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
        "Savings": savings_words(certificate),
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


def savings_words(certificate: Certificate) -> str:
    """Width that parts of the scale save against a constant one."""
    found = certificate.record.splits
    if found is None:
        return ""
    left_out = {CERTIFIED, CONSTANT}
    if len({view.factor for view in certificate.record.calibration}) == 1:
        left_out |= {"a only", "b~ only"}  # they are the constant and the certified scale again
    parts = [
        f"{name} {percent(s.saving)}" for name, s in found.scales.items() if name not in left_out
    ]
    return f"against a constant scale: {', '.join(parts)}"
