# SPDX-License-Identifier: Apache-2.0
"""What a certificate promises: about a new view, a new stretch of a path, or a family of models.

All three take one order statistic. They differ in what is counted (views or stretches) and in
the score of one of them; `PromiseRecord` is the single place where that difference is made. A
family may be about stretches too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from splatcert.certificate.content.view_records import MOST, RecordError, is_width
from splatcert.config import PathPromise
from splatcert.conformal.calibrate import ordinal, state_calibration, state_guarantee, threshold_of
from splatcert.conformal.family_conformal import member_threshold, state_family_guarantee
from splatcert.conformal.path_conformal import (
    PathConformal,
    PathError,
    Stretches,
    state_path_guarantee,
    stretch_score,
    stretches_of,
)
from splatcert.conformal.ranks import outer_rank, views_needed
from splatcert.errors import listed


@dataclass(frozen=True, kw_only=True)
class PathRecord:
    """Which held-out photographs form the stretches that calibrate."""

    length: int
    """L, the number of views of a stretch."""
    gamma: Fraction
    """Largest share of a stretch's views that may fall short."""
    stretches: tuple[tuple[str, ...], ...]
    """Names of the views of each stretch, neighbours in name order among all views."""
    unused: tuple[str, ...]
    """Held-out photographs that fill no stretch; their labels were not opened."""

    def __post_init__(self) -> None:
        alike = all(len(run) == self.length for run in self.stretches)
        if self.length < 2 or not self.stretches or not alike or not 0 <= self.gamma < 1:
            raise RecordError(
                f"stretches must have {self.length} views each, at least 2, and gamma must lie "
                f"in [0, 1), got {self.gamma}"
            )

    def scores(self, views: Mapping[str, float]) -> dict[str, float]:
        """Score of each stretch, under the name of its middle view."""
        return {
            run[len(run) // 2]: stretch_score([views[name] for name in run], self.gamma)
            for run in self.stretches
        }


@dataclass(frozen=True, kw_only=True)
class MemberRecord:
    """One member of a family, as all members list it."""

    name: str
    scale: str
    gaussians: int
    unit: float
    """c_k: the median of its scores on training photographs, fixed before labels were opened."""
    threshold: float
    """q c_k, the multiplier of its boxes."""
    alone: float
    """Multiplier of a certificate for this member alone; not valid after a choice."""
    width: float
    """Mean half-width over the calibration views."""

    def __post_init__(self) -> None:
        widths = (self.threshold, self.alone, self.width)
        if not 1 / MOST <= self.unit <= MOST or not all(map(is_width, widths)):
            raise RecordError(
                f"unit, thresholds and width of member {self.name} must be 0 to {MOST:g}, and the "
                "unit positive"
            )

    @property
    def price(self) -> float:
        """Relative cost of the choice: 0.26 means boxes 26% wider than for this member alone."""
        return self.threshold / self.alone - 1 if 0 < self.alone < np.inf else 0.0


@dataclass(frozen=True, kw_only=True)
class FamilyRecord:
    """The family that a certificate is a member of."""

    member: str
    """Name of the certificate's own member."""
    frozen: str
    """Hash of every member's scales and unit, taken before any calibration label was used."""
    threshold: float
    """q, in the members' units."""
    scores: dict[str, float]
    """Score of each calibration view, or stretch: its worst over the members, in their units."""
    members: tuple[MemberRecord, ...]

    @property
    def own(self) -> MemberRecord:
        """The certificate's own member."""
        for one in self.members:
            if one.name == self.member:
                return one
        raise RecordError(f"the family has no member {self.member!r}")


@dataclass(frozen=True, kw_only=True)
class PromiseRecord:
    """Which of the three guarantees a certificate carries."""

    kind: Literal["view", "path", "family"]
    path: PathRecord | None
    """Only for a path, or for a family about paths."""
    family: FamilyRecord | None
    """Only for a member of a family."""

    def __post_init__(self) -> None:
        path, family = self.path is not None, self.family is not None
        if self.kind != ("family" if family else "path" if path else "view"):
            raise RecordError(f"a promise of kind {self.kind} does not have these entries")

    @property
    def is_plain(self) -> bool:
        """Whether the promise is about single views of one model."""
        return self.kind == "view"

    def asked(self) -> PathPromise | None:
        """The argument of `certify` that leads to this promise."""
        return self.path and PathPromise(self.path.length, str(self.path.gamma))

    def is_about(self, calibration: Collection[str]) -> bool:
        """Whether the views that the promise names are the calibration views."""
        counted = set(calibration)
        if self.path is not None:
            if {name for run in self.path.stretches for name in run} != counted:
                return False
            counted = self.path.scores(dict.fromkeys(calibration, 0.0)).keys()
        return self.family is None or self.family.scores.keys() == counted

    def calibrating(self, with_photo: Sequence[str]) -> tuple[str, ...]:
        """The held-out views whose labels calibrate, in order."""
        if self.path is None:
            return tuple(with_photo)
        used = {name for run in self.path.stretches for name in run}
        return tuple(name for name in with_photo if name in used)

    def scores(self, views: Mapping[str, float]) -> dict[str, float]:
        """The scores that are ranked: of views, of stretches, or of views for a whole family."""
        return self.own_scores(views) if self.family is None else self.family.scores

    def own_scores(self, views: Mapping[str, float]) -> dict[str, float]:
        """The same for one model alone, from the scores of its views."""
        return dict(views) if self.path is None else self.path.scores(views)

    def threshold(self, views: Mapping[str, float], alpha: Fraction) -> float:
        """The multiplier of the boxes: an order statistic of `scores`, in the member's unit."""
        q = threshold_of(np.array(list(self.scores(views).values())), alpha)
        return q if self.family is None else member_threshold(q, self.family.own.unit)

    def units(self, views: int) -> int:
        """m, the number of scores that are ranked, for this number of calibration views."""
        return views if self.path is None else len(self.path.stretches)

    def rank(self, views: int, alpha: Fraction) -> int:
        """Rank of the threshold, k = ceil((m + 1)(1 - alpha))."""
        return outer_rank(self.units(views), alpha)

    def statement(
        self, alpha: Fraction, beta: Fraction, views: int, *, masked: bool, batch_only: bool
    ) -> str:
        """The guarantee in words, for a certificate."""
        if self.is_plain or self.rank(views, alpha) > self.units(views):
            return state_guarantee(alpha, beta, views, masked=masked, batch_only=batch_only)
        names = [one.name for one in self.family.members] if self.family else []
        choice = "; any of them may be chosen afterwards" if names else ""
        if self.path is not None:
            about = state_path_guarantee(
                alpha, beta, self.path.gamma, self.path.length, names=names, masked=masked
            )
            units = f"stretch is exchangeable with the {self.units(views)} calibration stretches"
            return f"{about}, if the {units}{choice}{', for the whole stretch' if names else ''}"
        about = state_family_guarantee(alpha, beta, names, masked=masked)
        return f"{about}, if the view is exchangeable with the {views} calibration views{choice}"

    def calibration(self, alpha: Fraction, views: int) -> str:
        """Which score became the threshold, in words."""
        known = state_calibration(alpha, views)
        if self.path is not None:
            m, length = self.units(views), self.path.length
            rank = f"{ordinal(self.rank(views, alpha))} smallest of {m} stretch scores"
            known = f"{m} stretches of {length} views, threshold = {rank}"
        if self.family is None:
            return known
        unit = f"{self.family.own.unit:.4g}"
        return f"{known} (each the worst of {len(self.family.members)} members), times unit {unit}"


VIEW = PromiseRecord(kind="view", path=None, family=None)


def promise_of(
    asked: PathPromise | None,
    order: Sequence[str],
    with_photo: Sequence[str],
    alpha: Fraction,
    beta: Fraction,
) -> PromiseRecord:
    """The promise asked for, from names alone; a path that no stretch carries is refused.

    `order` has the names of all views of the capture, `with_photo` those that can calibrate.
    """
    if asked is None:
        return VIEW
    path = PathConformal(alpha, beta, asked.gamma, asked.stretch)
    found = consecutive_stretches(order, with_photo, path.length)
    if len(found.runs) < views_needed(alpha):
        raise PathError(_too_few(path, order, with_photo, len(found.runs)))
    record = PathRecord(
        length=path.length, gamma=path.gamma, stretches=found.runs, unused=found.dropped
    )
    return PromiseRecord(kind="path", path=record, family=None)


def consecutive_stretches(
    order: Sequence[str], with_photo: Collection[str], length: int
) -> Stretches:
    """Stretches among the held-out photographs, without a training view in between.

    Views are consecutive if they are neighbours in name order among all views of the capture.
    Each unbroken run of held-out photographs is cut into stretches from its start; what is left
    at its end is dropped.
    """
    chosen, blocks = set(with_photo), list[list[str]]()
    after_training = True
    for name in sorted(order):
        if name not in chosen:
            after_training = True
            continue
        if after_training:
            blocks.append([])
        blocks[-1].append(name)
        after_training = False
    cut = [stretches_of(block, length) for block in blocks]
    return Stretches(
        tuple(run for one in cut for run in one.runs),
        tuple(name for one in cut for name in one.dropped),
    )


def _too_few(
    path: PathConformal, order: Sequence[str], with_photo: Sequence[str], found: int
) -> str:
    """What is missing for a path promise, with the smallest numbers that would do."""
    needed, length, photos = views_needed(path.alpha), path.length, len(order)
    shortest = path.shortest
    shorter = next(
        (
            n
            for n in range(length - 1, shortest - 1, -1)
            if len(consecutive_stretches(order, with_photo, n).runs) >= needed
        ),
        None,
    )
    ways = []
    if shorter is not None:
        ways.append(f"use stretches of {shorter} views")
    if found:
        ways.append(f"use alpha >= 1/{found + 1}")
    every = photos // needed
    if every > length:
        ways.append(f"train again with runs held out: --holdout block{length}of{every}")
    else:
        ways.append(f"photograph more: {needed} stretches take {needed * length} photos alone")
    text = "; or ".join(ways)
    return (
        f"{len(with_photo)} held-out photos contain {found} stretches of {length} consecutive "
        f"photos; alpha = {path.alpha} requires {needed}.\n"
        "  Consecutive photos are neighbours in name order, with no training photo between them.\n"
        f"  {text[0].upper()}{text[1:]}."
    )


def path_words(path: PathRecord) -> str:
    """How a path was calibrated, and which photographs were left over."""
    told = f"{len(path.stretches)} runs of {path.length} consecutive held-out photos"
    if not path.unused:
        return told
    return f"{told}; {len(path.unused)} fill no run and are not used: {listed(path.unused)}"
