# SPDX-License-Identifier: Apache-2.0
"""The capture with its new photos: photos linked, old bytes kept, moved into place at the end.

The reconstruction comes last. Without it the folder is not a capture, so nothing that reads
captures ever sees one whose new photos are not recorded as new.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from splatcert.registration.features import RegistrationError
from splatcert.scene.added_photos import FILE, AddedPhotos
from splatcert.scene.photo_files import MASK_FOLDER
from splatcert.scene.pixels import decode
from splatcert.scene.readers.colmap import PHOTO_FOLDER
from splatcert.storage.png import save_png

MODEL_FOLDER = "sparse"
PARTS = (PHOTO_FOLDER, MASK_FOLDER, MODEL_FOLDER)


def refuse_other_content(folder: Path) -> None:
    """Refuse an output folder that holds anything but an earlier result of ours."""
    if not folder.is_dir() or (folder / FILE).is_file():
        return
    if there := [part for part in PARTS if (folder / part).exists()]:
        raise RegistrationError(
            f"{folder} already contains {there[0]}, which splatcert register did not write.\n"
            "  Choose a folder of its own with --output."
        )


def link(source: Path, target: Path) -> None:
    """The same file under another name; a copy where the file system has no links.

    Symbolic links are not used: a capture must not name files outside its folder.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)


class Draft:
    """A capture in the making, beside the place it will have."""

    def __init__(self, folder: Path, work: Path) -> None:
        self.folder, self.aside = folder, work / "draft"
        shutil.rmtree(self.aside, ignore_errors=True)
        self.model = self.aside / MODEL_FOLDER / "0"
        self.model.mkdir(parents=True)

    def add(self, files: Mapping[str, Path]) -> None:
        """Photos and masks by their place in the capture."""
        for place, path in files.items():
            link(path, self.aside / place)

    def add_flattened(self, place: str, path: Path) -> None:
        """A transparent photo on white, which is how captures of Blender's format are read."""
        colours, alpha = decode(path)
        target = (self.aside / place).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        if alpha is not None:
            share = alpha[..., None] / 255.0
            colours = np.round(colours * share + 255.0 * (1 - share)).astype(np.uint8)
        save_png(target, colours)

    def publish(self, record: AddedPhotos) -> None:
        """Move everything into place, the reconstruction last."""
        old = self.aside / "old"
        old.mkdir()
        for part in reversed(PARTS):
            if (self.folder / part).exists():
                os.replace(self.folder / part, old / part)
        record.save(self.folder)
        for part in PARTS:
            if (self.aside / part).exists():
                os.replace(self.aside / part, self.folder / part)
        shutil.rmtree(self.aside)
