# SPDX-License-Identifier: Apache-2.0
"""Files that a dataset names must lie inside the dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from splatcert.errors import InputError

PHOTO_SUFFIXES = (".png", ".jpg", ".jpeg", ".JPG", ".JPEG", ".PNG", ".webp", ".tif", ".tiff")
"""Tried in this order when a dataset names a photo without its suffix, or with another one."""


class PathError(InputError):
    """A dataset names a file that it may not name."""


def inside(path: Path, roots: Iterable[Path], *, named_by: Path, allow_outside: bool) -> Path:
    """The path itself, once it is known to stay below one of the roots.

    A downloaded dataset is somebody else's text: without this check it could
    make us read any file of the user's, through `..`, an absolute path or a link.
    """
    if allow_outside:
        return path
    real = _resolved(path, named_by)
    allowed = [root.resolve() for root in roots]
    if any(real.is_relative_to(root) for root in allowed):
        return path
    via = f" (a link to {real})" if Path(os.path.abspath(path)) != real else ""
    raise PathError(
        f"{path}{via} lies outside the dataset {allowed[0]}.\n"
        f"  Named by {named_by}.\n"
        "  Copy the file into the dataset, or pass allow_outside=True if you trust it."
    )


def _resolved(path: Path, named_by: Path) -> Path:
    try:
        real = path.resolve()
        real.is_file()  # asks the system, which refuses names that are too long
    except (OSError, RuntimeError, ValueError) as error:  # a ring of links, a zero byte
        why = str(getattr(error, "strerror", None) or error).split(" from ")[0]
        raise PathError(
            f"{str(path)[:200]!r} cannot be the name of a file: {why[:100]}.\n"
            f"  Named by {named_by}.\n"
            "  Correct the name."
        ) from None
    return real


def existing_photo(path: Path) -> Path | None:
    """The photo at this path, or under another suffix where that one is missing.

    Blender files leave the suffix out, and reduced copies of JPEG photos are often PNG.
    """
    if path.is_file():
        return path
    known = path.suffix.lower() in {suffix.lower() for suffix in PHOTO_SUFFIXES}
    stem = path.with_suffix("") if known else path
    for suffix in PHOTO_SUFFIXES:
        other = stem.with_name(stem.name + suffix)
        if other.is_file():
            return other
    return None


def listed(names: Iterable[str], limit: int = 3) -> str:
    """The first few names for a message, and how many more there are."""
    names = list(names)
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
