# SPDX-License-Identifier: Apache-2.0
"""Which COLMAP models a capture has, how many photos each registers, and which one is read.

COLMAP's mapper writes one model per connected group of photos: `sparse/0`, `sparse/1` and so
on, in the order in which it began them. The first is often not the largest.
"""

from __future__ import annotations

import os
from pathlib import Path

from splatcert.errors import InputError, listed
from splatcert.scene.readers.colmap import ColmapError
from splatcert.scene.readers.colmap_binary import COUNT, IMAGE
from splatcert.storage.whole import require_regular_file

MODEL_FOLDERS = ("sparse/0", "sparse", "colmap/sparse/0", ".")
"""Where reconstructions are searched for inside a dataset, in this order; 0 for any number."""
FIRST = "first"
"""Stands for the first model found, which every certificate before schema 4 was made from."""
Sparse = int | str | None
"""N for the model `sparse/N`, a model's folder inside the dataset, or None for the largest."""


def models_in(root: Path) -> list[Path]:
    """All reconstructions at the first known place inside this folder that has any."""
    for place in MODEL_FOLDERS:
        folder = root / place
        numbered = _numbered(folder.parent) if folder.name == "0" else [folder]
        # A list called images.txt beside the photos is not a reconstruction.
        stems = ("cameras",) if place == "." else ("cameras", "images")
        if found := [one for one in numbered if _has_any(one, stems)]:
            return found
    return []


def find_model(root: Path, sparse: Sparse = None) -> Path | None:
    """The reconstruction to read: the one asked for, else the one with the most photos."""
    models = models_in(root)
    if not models:
        return None
    if sparse == FIRST or (sparse is None and len(models) == 1):
        return models[0]
    if sparse is None:
        return max(models, key=lambda folder: registered_photos(folder) or 0)
    wanted = [one for one in models if sparse in (_number(one), place_of(one, root))]
    if not wanted and (isinstance(sparse, int) or len(models) > 1):
        known = [f"{place_of(one, root)} ({photo_count(one)})" for one in models]
        raise ColmapError(
            f"{root} has no COLMAP model {sparse}.\n"
            f"  Models there: {listed(known, 6)}.\n"
            "  Pass --sparse N for sparse/N, or omit it to read the largest."
        )
    return wanted[0] if wanted else models[0]


def numbered_models(folder: Path) -> list[Path]:
    """The reconstructions 0, 1, … right inside a folder, as COLMAP's mapper writes them."""
    return [one for one in _numbered(folder) if _has_any(one, ("cameras", "images"))]


def place_of(model: Path, root: Path) -> str:
    """A model's folder inside its dataset, such as `sparse/0`."""
    return Path(os.path.relpath(model, root)).as_posix()


def registered_photos(model: Path) -> int | None:
    """Number of photos that a model registers; None where its list cannot be read.

    Of a binary list only the head is read, which states the number.
    """
    from splatcert.scene.readers import colmap_text

    binary, text = model / "images.bin", model / "images.txt"
    try:
        if not binary.is_file():
            images = colmap_text.read_images(text, observations=False) if text.is_file() else ()
            return len(images)
        with require_regular_file(binary).open("rb") as file:
            (count,) = COUNT.unpack(file.read(COUNT.size).ljust(COUNT.size, b"\xff"))
        return count if count * IMAGE.size <= binary.stat().st_size else None
    except (InputError, OSError):
        return None


def photo_count(model: Path) -> str:
    """The number of photos of a model, in words."""
    count = registered_photos(model)
    return "unreadable" if count is None else f"{count} photo{'s' * (count != 1)}"


def _numbered(folder: Path) -> list[Path]:
    """Subfolders whose name is a number, in order."""
    if not folder.is_dir():
        return []
    return sorted(
        (one for one in folder.iterdir() if _number(one) is not None and one.is_dir()),
        key=lambda one: int(one.name),
    )


def _number(folder: Path) -> int | None:
    """N of a folder called N."""
    plain = folder.name.isascii() and folder.name.isdigit() and len(folder.name) < 10
    return int(folder.name) if plain else None


def _has_any(folder: Path, stems: tuple[str, ...]) -> bool:
    """Whether a folder holds a file that only a reconstruction has."""
    files = (folder / f"{stem}.{suffix}" for stem in stems for suffix in ("bin", "txt"))
    return any(file.is_file() for file in files)
