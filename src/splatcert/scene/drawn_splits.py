# SPDX-License-Identifier: Apache-2.0
"""Hold-out rules that draw by chance: single photos, or runs of consecutive photos."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from splatcert.errors import InputError

SPLIT_SEED = 0
_RANDOM = re.compile("random([0-9]{1,18})")
_BLOCK = re.compile("block([0-9]{1,18})of([0-9]{1,18})")


class SplitError(InputError):
    """A split that cannot be made."""


@dataclass(frozen=True)
class DrawnRule:
    """A run of `length` photos at a random place in every `every` photos, in name order."""

    length: int
    every: int

    @property
    def words(self) -> str:
        """The rule in words, as a certificate records it."""
        photos = "one random photo"
        if self.length > 1:
            photos = f"{self.length} consecutive photos at a random place"
        return f"{photos} of every {self.every} in name order held out (seed {SPLIT_SEED})"

    def draw(self, names: Sequence[str]) -> set[str]:
        """The photos held out: evenly spread, and in step with no rhythm.

        A hash of the names draws the place. In a short last part the run may not fit, and then
        none of it is held out: a run is held out whole or not at all.
        """
        self._check(len(names))
        ordered, chosen = sorted(names), set[str]()
        for start in range(0, len(ordered), self.every):
            part = ordered[start : start + self.every]
            text = "\0".join((str(SPLIT_SEED), *part)).encode(errors="backslashreplace")
            places = self.every - self.length + 1
            place = int.from_bytes(hashlib.sha256(text).digest(), "big") % places
            run = part[place : place + self.length]
            chosen.update(run if len(run) == self.length else ())
        return chosen

    def _check(self, photos: int) -> None:
        if self.length == 1 and not 2 <= self.every <= photos:
            raise SplitError(
                f"random{self.every} cannot split {photos} photos.\n"
                "  Pass a number from 2 to that many, such as random8 for one of every 8."
            )
        if not 1 <= self.length < self.every <= photos:
            raise SplitError(
                f"block{self.length}of{self.every} cannot split {photos} photos.\n"
                "  The second number must be larger than the first and at most that many:\n"
                "  block5of20 holds out 5 consecutive photos of every 20."
            )


def drawn_rule(holdout: object) -> DrawnRule | None:
    """The rule "randomN" or "blockLofN"; None for any other rule."""
    if not isinstance(holdout, str):
        return None
    if found := _RANDOM.fullmatch(holdout):
        return DrawnRule(1, int(found[1]))
    found = _BLOCK.fullmatch(holdout)
    return DrawnRule(int(found[1]), int(found[2])) if found else None
