# SPDX-License-Identifier: Apache-2.0
"""What Git LFS leaves in the place of a file that was not downloaded."""

from __future__ import annotations

import re
from pathlib import Path

from splatcert.errors import InputError

POINTER = b"version https://git-lfs.github.com/spec/"
LONGEST = 1024
"""Bytes of a pointer, by its specification."""


def start_of(path: Path) -> bytes:
    """Enough of a file to know a pointer; nothing of what cannot be opened, or may never end."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST)
    except OSError:
        return b""


def refuse_pointer(path: Path, start: bytes, raises: type[InputError]) -> None:
    """Refuse a file whose first bytes say that it is a pointer."""
    if start.startswith(POINTER):
        size = re.search(rb"\nsize (\d{1,15})\s", start[:LONGEST])
        stated = f" to {int(size[1]) / 1e6:,.1f} MB" if size else ""
        raise raises(
            f"{path}: this is a Git LFS pointer{stated}, not the file itself.\n"
            "  Run `git lfs pull` in its repository."
        )
