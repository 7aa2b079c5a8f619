# SPDX-License-Identifier: Apache-2.0
"""The guarantee of a certificate in words, with what it applies to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from splatcert.certificate.content.promise import path_words
from splatcert.conformal.calibrate import shortfall
from splatcert.conformal.levels import in_percent
from splatcert.conformal.ranks import ceil_rank
from splatcert.report.content import of_255, percent, plural

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate
    from splatcert.certificate.content.promise import FamilyRecord


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
        each = "" if family is None else f", for each of the {len(family.members)} members"
        choice = "" if family is None else " Any of them may be chosen afterwards, per stretch."
        return (
            f"With probability ≥ {chance}, {views} views of a new stretch have ≥ {share} of their "
            f"{pixels} inside their boxes{each}.{choice}"
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
