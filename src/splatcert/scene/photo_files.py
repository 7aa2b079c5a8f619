# SPDX-License-Identifier: Apache-2.0
"""Finding the photo and the mask of each shot, and reading their headers once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from splatcert.errors import InputError, be, listed
from splatcert.scene.dataset import Dataset, Part, Shot
from splatcert.scene.lens import Lens, same_shape
from splatcert.scene.pixels import Header, ImageError, exif_orientation, read_header

MASK_FOLDER = "masks"


@dataclass(frozen=True, eq=False)
class PhotoFinder:
    """Where photos and masks of one dataset are looked for."""

    root: Path
    images: str | None = None
    """Folder that replaces the dataset's own, such as `images_4`."""
    masks: str | bool | None = None
    """Folder of masks; None for `masks` if it exists, False for none."""
    allow_outside: bool = False
    headers: dict[Path, Header] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in (self.images, self.masks):
            if isinstance(folder, str) and not (self.root / folder).is_dir():
                beside = sorted(path.name for path in self.root.iterdir() if path.is_dir())
                raise ImageError(
                    f"no folder {folder!r} in {self.root}.\n"
                    f"  Folders there: {listed(beside, 8) or 'none'}."
                )

    def photo(self, folder: str, file: str, named_by: Path) -> Path | None:
        """The photo's path, or None where there is no such file."""
        base = self.root / (folder if self.images is None else self.images)
        return self._existing(base / file, named_by, base if self.images else self.root)

    def mask(self, shot: Shot, named_by: Path) -> Path | None:
        """The mask of a shot: as the dataset names it, else from the folder of masks.

        In the folder it has the photo's name, the photo's name and `.png`
        (COLMAP's habit), or the photo's name with `.png` instead of its suffix.
        """
        if self.masks is False:
            return None
        if self.masks is None and shot.mask is not None:
            path = self._existing(self.root / shot.mask, named_by, self.root)
            if path is None:
                raise ImageError(
                    f"the mask {shot.mask!r} of {shot.name!r} is missing.\n"
                    f"  Named by {named_by}.\n"
                    "  Restore it, or remove its name from that file to count every pixel."
                )
            return path
        folder = self.masks if isinstance(self.masks, str) else MASK_FOLDER
        base = self.root / folder
        for file in (shot.file, f"{shot.file}.png", str(Path(shot.file).with_suffix(".png"))):
            if (base / file).is_file():
                return self._checked(base / file, named_by, base if self.masks else self.root)
        return None

    def check_mask(self, mask: Path, photo: Path, lens: Lens) -> None:
        """Refuse a mask that no rescale brings to the size of its photo."""
        size = self.header(mask).size
        if not same_shape(lens.size, size):
            raise ImageError(
                f"the mask {mask} has {size[0]} x {size[1]} pixels, its photo {photo.name} "
                f"{lens.width} x {lens.height}.\n"
                "  A mask must be its photo's size or a uniform rescale of it."
            )

    def header(self, path: Path) -> Header:
        """Size and kind of a photo, read once."""
        if path not in self.headers:
            self.headers[path] = read_header(path)
        return self.headers[path]

    def size_of(self, folder: str, file: str) -> tuple[int, int] | None:
        """Size of a photo, or None where it is missing."""
        path = self.photo(folder, file, self.root)
        return None if path is None else self.header(path).size

    def _existing(self, path: Path, named_by: Path, base: Path) -> Path | None:
        self._checked(path, named_by, base)
        found = existing_photo(path)
        return None if found is None else self._checked(found, named_by, base)

    def _checked(self, path: Path, named_by: Path, base: Path) -> Path:
        roots = [self.root, base]
        return inside(path, roots, named_by=named_by, allow_outside=self.allow_outside)


def find_photos(
    dataset: Dataset, parts: dict[str, Part], finder: PhotoFinder
) -> dict[str, Path | None]:
    """The photo of each shot in use; only held-out ones may be missing."""
    found = {
        shot.name: finder.photo(shot.folder, shot.file, dataset.source)
        for shot in dataset.shots
        if parts[shot.name] != "unused"
    }
    training = [name for name in found if parts[name] == "training"]
    missing = [name for name in training if found[name] is None]
    if missing:
        folders = {finder.images or shot.folder for shot in dataset.shots if shot.name in missing}
        looked = ", ".join(str(finder.root / folder) for folder in sorted(folders)[:3])
        ways = "Restore them, name their folder (--images FOLDER), or leave them out "
        ways += "(--skip-missing)."
        if len(missing) == len(training):
            ways = _where_all_are(dataset, missing[0])
        raise ImageError(
            f"{len(missing)} of {len(training)} training photos {be(len(missing))} missing: "
            f"{listed(missing)}.\n"
            f"  Named by {dataset.source}, looked for in {looked}.\n"
            f"  {ways}"
        )
    return found


def _where_all_are(dataset: Dataset, name: str) -> str:
    """What to do where no photo is found: look into the folders of the dataset."""
    (file,) = (shot.file for shot in dataset.shots if shot.name == name)
    beside = sorted(path for path in dataset.root.iterdir() if path.is_dir())
    if found := [path.name for path in beside if existing_photo(path / file)]:
        return f"They are in {listed(found)}: pass --images {found[0]}."
    if dataset.source == dataset.root:
        return "Pass the capture's folder, which contains images and sparse."
    return "Restore them, or name their folder (--images FOLDER)."


def fitted_lens(shot: Shot, path: Path, header: Header) -> Lens:
    """The shot's lens at the size of its photo, which must be a uniform rescale."""
    lens, stored = shot.lens, header.size
    if stored == lens.size:
        return lens
    if same_shape(lens.size, stored):
        return lens.resized(*stored)
    turned = ""
    if same_shape(lens.size, (stored[1], stored[0])) and exif_orientation(path) > 4:
        turned = "\n  Its EXIF tag rotates it, and tags are ignored: rotate the pixels themselves."
    raise ImageError(
        f"photo {shot.name!r} has {stored[0]} x {stored[1]} pixels, its camera "
        f"{lens.width} x {lens.height}, which is not a uniform rescale.\n"
        f"  At {path}.\n"
        f"  Use the photos that the poses were computed from, or rescaled copies.{turned}"
    )


def guessed_lens(shot: Shot, others: dict[Lens, Lens]) -> Lens:
    """The lens of a shot whose photo is missing, at the size of the others.

    `others` maps lenses as the dataset states them to what they became.
    """
    if shot.lens in others:
        return others[shot.lens]
    if not others:
        return shot.lens
    stated, became = next(iter(others.items()))
    width = round(shot.lens.width * became.width / stated.width)
    height = round(shot.lens.height * became.height / stated.height)
    return shot.lens.resized(max(1, width), max(1, height))


PHOTO_SUFFIXES = (".png", ".jpg", ".jpeg", ".JPG", ".JPEG", ".PNG", ".webp", ".tif", ".tiff")
"""Tried in this order if a dataset names a photo without its suffix, or with a wrong one."""


class FilePathError(InputError):
    """A dataset names a file that it must not name."""


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
    raise FilePathError(
        f"{path}{via} lies outside the dataset {allowed[0]}.\n"
        f"  Named by {named_by}.\n"
        "  Copy the file into the dataset. In Python, the option allow_outside of load_scene\n"
        "  permits it for a dataset you trust."
    )


def _resolved(path: Path, named_by: Path) -> Path:
    try:
        real = path.resolve()
        real.is_file()  # a system call, which refuses names that are too long
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a zero byte
        why = str(getattr(error, "strerror", None) or error).split(" from ")[0]
        raise FilePathError(
            f"{str(path)[:200]!r} cannot be the name of a file: {why[:100]}.\n"
            f"  Named by {named_by}.\n"
            "  Correct the name."
        ) from None
    return real


def existing_photo(path: Path) -> Path | None:
    """The photo at this path, or with a different suffix if that one is missing.

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
