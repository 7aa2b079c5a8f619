# SPDX-License-Identifier: Apache-2.0
"""Which photos are held out: the rules, and the rule in words."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from splatcert.errors import InputError, be, listed
from splatcert.scene.dataset import Dataset, Part

Holdout = int | str | tuple[str, ...] | os.PathLike[str] | None
DEFAULT_EVERY = 8
SPLIT_SEED = 0
_RANDOM = re.compile("random([0-9]{1,18})")
_BLOCK = re.compile("block([0-9]{1,18})of([0-9]{1,18})")
OWN_SPLIT = "the dataset's own split"
"""The rule in words, if the format defines one."""
RULES = (
    "8 for every 8th photo, random8 for one random photo of every 8,\n"
    "  block5of20 for 5 consecutive photos of every 20,\n"
    "  photo names separated by commas, a text file with one name per line,\n"
    "  format for the dataset's own split, auto, or none"
)


class HoldoutRuleError(InputError):
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
            raise HoldoutRuleError(
                f"random{self.every} cannot split {photos} photos.\n"
                "  Pass a number from 2 to that many, such as random8 for one of every 8."
            )
        if not 1 <= self.length < self.every <= photos:
            raise HoldoutRuleError(
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


def split(dataset: Dataset, holdout: Holdout) -> tuple[dict[str, Part], str]:
    """The part of each photo by name, and the rule in words.

    `"auto"` is the photos registered afterwards if there are any, else the dataset's own
    split where its format has one, else every 8th photo in sorted order, which is what
    published comparisons hold out.
    """
    names = [shot.name for shot in dataset.shots]
    if isinstance(holdout, str) and holdout.isdigit():
        holdout = int(holdout)
    if holdout == "auto":
        holdout = dataset.added or (DEFAULT_EVERY if dataset.split is None else "format")
    if holdout is None or (holdout == 0 and not isinstance(holdout, bool)):
        parts, rule = _by_index(names, 0), "no photo held out"
    elif isinstance(holdout, bool):
        raise HoldoutRuleError(f"the hold-out must be {RULES}; got {holdout}")
    elif isinstance(holdout, int):
        parts = _by_index(names, holdout)
        rule = f"index % {holdout} == 0 of the sorted names held out"
    elif (drawn := drawn_rule(holdout)) is not None:
        parts, rule = _parts(sorted(names), drawn.draw(names)), drawn.words
    elif holdout == "format":
        parts, rule = _own(dataset)
    elif isinstance(holdout, tuple):
        parts, rule = _by_name(names, holdout, dataset.added)
    elif (path := _list_file(dataset, holdout)) is not None:
        parts, rule = _by_list(names, path), f"held out as listed in {path.name}"
    elif (named := names_in(holdout)) and (len(named) > 1 or named[0] in names):
        parts, rule = _by_name(names, named, dataset.added)
    else:
        raise HoldoutRuleError(
            f"{os.fspath(holdout)[:200]!r} is neither a rule, nor a photo of this dataset, nor a "
            f"text file.\n  Pass {RULES}."
        )
    if "training" not in parts.values():
        raise HoldoutRuleError(
            f"none of the {len(names)} photos is left for training ({rule}).\n"
            f"  In {dataset.source}.\n"
            "  Hold out fewer photos."
        )
    return parts, rule


def _by_index(names: Sequence[str], every: int) -> dict[str, Part]:
    """Photos at index 0, n, 2n, ... of the sorted names."""
    if every < 0 or every == 1:
        raise HoldoutRuleError(
            f"a hold-out of {every} leaves nothing to train on.\n"
            "  Pass 8 for every 8th photo, any other number above 1, or 0 for none."
        )
    return {
        name: "held out" if every and index % every == 0 else "training"
        for index, name in enumerate(sorted(names))
    }


def names_in(text: str | os.PathLike[str]) -> list[str]:
    """Names separated by commas, in their order."""
    return [name for part in os.fspath(text).split(",") if (name := part.strip())]


def _by_name(
    names: Sequence[str], chosen: Sequence[str], added: Sequence[str]
) -> tuple[dict[str, Part], str]:
    """Exactly these photos, and the rule in words."""
    wanted = set(chosen)
    _require_known(names, chosen)
    how = "registered afterwards" if wanted == set(added) else "held out by name"
    return _parts(names, wanted), f"{len(wanted)} photo{'s' * (len(wanted) > 1)} {how}"


def _parts(names: Sequence[str], held_out: set[str]) -> dict[str, Part]:
    return {name: "held out" if name in held_out else "training" for name in names}


def _list_file(dataset: Dataset, holdout: str | os.PathLike[str]) -> Path | None:
    """The text file of this path, from here or from the dataset; None if there is none."""
    for path in (Path(holdout), dataset.root / holdout):
        if os.path.isfile(path):  # False where a list of names is too long for a path
            return path
    return None


def _by_list(names: Sequence[str], path: Path) -> dict[str, Part]:
    """Photos named in a text file, one per line; blank lines and # comments are skipped."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise HoldoutRuleError(
            f"{path} is not text.\n  It must contain one photo name per line."
        ) from None
    wanted = [line for line in lines if line and not line.startswith("#")]
    _require_known(names, wanted, lambda name: f"  In {path}, line {lines.index(name) + 1}.\n")
    return _parts(names, set(wanted))


def _require_known(
    names: Sequence[str], wanted: Sequence[str], where: Callable[[str], str] = lambda name: ""
) -> None:
    """Refuse names that are not in the dataset; `where` says where the first one is written."""
    known = set(names)
    if unknown := [name for name in wanted if name not in known]:
        near = get_close_matches(unknown[0], names, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Names look like {names[0]!r}."
        raise HoldoutRuleError(
            f"{len(unknown)} of {len(wanted)} held-out names {be(len(unknown))} not in the "
            f"dataset: {listed(unknown)}.\n{where(unknown[0])}  Correct the names. {hint}"
        )


def _own(dataset: Dataset) -> tuple[dict[str, Part], str]:
    """The split that the format defines, or COLMAP's `test.txt` beside the model."""
    if dataset.split is not None:
        return dataset.split, OWN_SPLIT
    listing = dataset.source / "test.txt"
    if dataset.format == "colmap" and listing.is_file():
        names = [shot.name for shot in dataset.shots]
        return _by_list(names, listing), "held out as listed in test.txt"
    raise HoldoutRuleError(
        f"the dataset {dataset.source} does not define a split of its own.\n"
        "  Hold out every 8th photo (8), or the photos that a text file lists."
    )
