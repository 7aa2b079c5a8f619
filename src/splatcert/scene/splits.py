# SPDX-License-Identifier: Apache-2.0
"""Which photos are held out: every n-th by name, by a list, or as the dataset says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from splatcert.errors import InputError
from splatcert.scene.dataset import Dataset, Part
from splatcert.scene.paths import listed

Holdout = int | str | tuple[str, ...] | os.PathLike[str] | None
DEFAULT_EVERY = 8
OWN_SPLIT = "the dataset's own split"
"""The rule in words where the format declares one."""


class SplitError(InputError):
    """A split that cannot be made."""


def split(dataset: Dataset, holdout: Holdout) -> tuple[dict[str, Part], str]:
    """The part of each photo by name, and the rule in words.

    `"auto"` is the dataset's own split where its format has one, else every
    8th photo in sorted order, which is what published comparisons hold out.
    """
    names = [shot.name for shot in dataset.shots]
    if isinstance(holdout, str) and holdout.isdigit():
        holdout = int(holdout)
    if holdout == "auto":
        holdout = DEFAULT_EVERY if dataset.split is None else "format"
    if holdout is None or (holdout == 0 and not isinstance(holdout, bool)):
        parts, rule = _by_index(names, 0), "no photo held out"
    elif isinstance(holdout, bool):
        raise SplitError(f"holdout must be a number, a list file, 'format' or None, got {holdout}")
    elif isinstance(holdout, int):
        parts, rule = (
            _by_index(names, holdout),
            f"index % {holdout} == 0 of the sorted names held out",
        )
    elif holdout == "format":
        parts, rule = _own(dataset)
    elif isinstance(holdout, tuple):
        parts, rule = _by_name(names, holdout), f"{len(holdout)} photos held out by name"
    else:
        path = Path(holdout)
        path = path if path.is_file() else dataset.root / path
        parts, rule = _by_list(names, path), f"held out as listed in {path.name}"
    if "training" not in parts.values():
        raise SplitError(
            f"no photo of {len(names)} is left for training ({rule}).\n"
            f"  In {dataset.source}.\n"
            "  Hold out fewer photos."
        )
    return parts, rule


def _by_index(names: Sequence[str], every: int) -> dict[str, Part]:
    """Photos at index 0, n, 2n, ... of the sorted names."""
    if every < 0 or every == 1:
        raise SplitError(
            f"holdout={every} leaves nothing to train on.\n"
            "  Give 8 for every 8th photo, any number above 1, or 0 for none."
        )
    return {
        name: "held out" if every and index % every == 0 else "training"
        for index, name in enumerate(sorted(names))
    }


def _by_name(names: Sequence[str], chosen: tuple[str, ...]) -> dict[str, Part]:
    """Exactly these photos."""
    wanted = set(chosen)
    if unknown := sorted(wanted - set(names)):
        raise SplitError(
            f"{len(unknown)} of {len(chosen)} held-out names are not in the dataset: "
            f"{listed(unknown)}.\n  Names look like {names[0]!r}."
        )
    return {name: "held out" if name in wanted else "training" for name in names}


def _by_list(names: Sequence[str], path: Path) -> dict[str, Part]:
    """Photos named in a text file, one a line; blank lines and # comments are skipped."""
    if not path.is_file():
        raise SplitError(
            f"no list of held-out photos at {path}.\n"
            "  holdout takes a number, the path of a text file with one photo name a line, "
            "'format', 'auto' or None."
        )
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise SplitError(f"{path} is not text.\n  It must hold one photo name a line.") from None
    wanted = [line for line in lines if line and not line.startswith("#")]
    known = set(names)
    if unknown := [name for name in wanted if name not in known]:
        near = get_close_matches(unknown[0], names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Names look like {names[0]!r}."
        raise SplitError(
            f"{len(unknown)} of {len(wanted)} held-out names are not in the dataset: "
            f"{listed(unknown)}.\n"
            f"  In {path}, line {lines.index(unknown[0]) + 1}.\n"
            f"  Correct the names.{hint}"
        )
    chosen = set(wanted)
    return {name: "held out" if name in chosen else "training" for name in names}


def _own(dataset: Dataset) -> tuple[dict[str, Part], str]:
    """The split that the format declares, or COLMAP's `test.txt` beside the model."""
    if dataset.split is not None:
        return dataset.split, OWN_SPLIT
    listing = dataset.source / "test.txt"
    if dataset.format == "colmap" and listing.is_file():
        names = [shot.name for shot in dataset.shots]
        return _by_list(names, listing), "held out as listed in test.txt"
    raise SplitError(
        f"the dataset {dataset.source} declares no split of its own.\n"
        "  Give holdout=8, a list file, or None."
    )
