# SPDX-License-Identifier: Apache-2.0
"""From a folder to a scene: recognise the format, find the photos, build the views."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from splatcert.camera import Camera
from splatcert.errors import InputError
from splatcert.scene.dataset import OWN_SPLIT, Dataset, Format, Holdout, Shot, split
from splatcert.scene.lens import Lens, LensError, same_shape
from splatcert.scene.photo_files import PhotoFinder, find_photos, fitted_lens, guessed_lens
from splatcert.scene.pixels import (
    DEFAULT_CACHE_BYTES,
    FilePixels,
    ImageError,
    Photo,
    PixelCache,
    Rgb,
    reduced_size,
)
from splatcert.scene.readers.colmap import MODEL_FOLDERS, find_model, lens_of, read_colmap
from splatcert.scene.readers.transforms import read_blender, read_transforms
from splatcert.scene.roles import HeldOut, PixelSource, QueryView, TrainingView
from splatcert.scene.scene import Scene, TrainingViews

COLOURS: dict[str, Rgb] = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0)}
PHOTO_FOLDER = "images"


class SceneError(InputError):
    """A folder or an option that makes no scene."""


def load_scene(
    path: str | os.PathLike[str],
    *,
    holdout: Holdout = "auto",
    images: str | None = None,
    resolution: int | str | None = None,
    background: Rgb | str | None = None,
    masks: str | Literal[False] | None = None,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    format: Format | None = None,
    allow_outside: bool = False,
) -> Scene:
    """Load a capture: COLMAP, `transforms.json` (nerfstudio, instant-ngp) or Blender.

    Args:
        path: Folder of the dataset, or a `transforms.json`.
        holdout: n for every n-th photo of the sorted names (index % n == 0); the path of a
            text file of names; a tuple of names; "format" for the dataset's own split; None or
            0 for none. "auto" is the dataset's own split if its format has one, else 8.
        images: Folder that takes the place of the dataset's photo folder, such as `images_4`.
        resolution: Largest long side in pixels, or a factor such as "1/2". Never enlarges.
        background: Colour below transparent pixels: "white", "black" or three numbers in
            [0, 1]. Unless told, white for Blender; elsewhere alpha says which pixels count.
        masks: Folder of masks, "alpha" for the alpha channel, False for none. Unless told,
            what the dataset names, else the folder `masks` where there is one.
        cache_bytes: Memory for decoded pixels.
        format: Format to read where a folder holds several.
        allow_outside: Let the dataset name files outside its folder.
    """
    kind, source = recognise(Path(path), format)
    root = Path(path) if Path(path).is_dir() else source.parent
    alpha = masks == "alpha"
    finder = PhotoFinder(root, images, False if alpha else masks, allow_outside)
    dataset = _read(kind, root, source, finder)
    parts, rule = split(dataset, holdout)
    colour = _background(background, kind)
    build = _Build(
        dataset=dataset,
        finder=finder,
        scale=parse_scale(resolution),
        background=colour,
        alpha=alpha or (masks is None and kind != "blender" and background is None),
    )
    paths = find_photos(dataset, parts, finder)
    placed = build.place(paths)
    cache = PixelCache(cache_bytes)
    sources: dict[str, PixelSource] = {
        name: FilePixels(photo, cache) for name, (_, photo) in placed.items() if photo
    }
    if isinstance(masks, str) and not any(one.has_mask for one in sources.values()):
        raise SceneError(
            f"masks={masks!r} was asked for, but none of {len(sources)} photos has one.\n"
            f"  In {root}.\n"
            "  Masks are named as their photos, with or without .png added."
        )
    training, queries = [], []
    for name, (camera, _) in placed.items():
        if parts[name] == "training":
            training.append(TrainingView(name, camera, sources[name]))
        else:
            queries.append(QueryView(name, camera))
    hidden = {query.name: sources[query.name] for query in queries if query.name in sources}
    details = {
        "source": str(source),
        "split": rule,
        "unused": sum(part == "unused" for part in parts.values()),
        "lenses": build.lenses(paths),
        "images": images,
        "masks": sum(one.has_mask for one in sources.values()),
        "masks asked for": masks,
        "background": colour,
        "resolution": resolution,
        "cache bytes": cache_bytes,
    }
    return Scene(
        path=root,
        format=kind,
        training=TrainingViews(training),
        held_out=HeldOut(queries, hidden),
        points=dataset.points,
        frame=dataset.frame,
        details=details,
    )


def recognise(path: Path, wanted: Format | None = None) -> tuple[Format, Path]:
    """The format of a dataset, and the file or folder that describes it.

    COLMAP beside photos goes first, then `transforms.json`, then Blender; the
    COLMAP model that nerfstudio keeps in `colmap/sparse/0` comes last, because
    its `transforms.json` is what nerfstudio itself reads.
    """
    if path.is_file() and path.suffix == ".json":
        if path.name.startswith("transforms_") and wanted in (None, "blender"):
            return "blender", path.parent / "transforms_train.json"
        return "transforms", path
    found: dict[Format, Path] = {}
    if path.is_dir():
        model = find_model(path)
        if model is not None and model != path / "colmap/sparse/0":
            found["colmap"] = model
        if (path / "transforms.json").is_file():
            found["transforms"] = path / "transforms.json"
        if (path / "transforms_train.json").is_file():
            found["blender"] = path / "transforms_train.json"
        if model is not None:
            found.setdefault("colmap", model)
    for kind, source in found.items():
        if wanted in (None, kind):
            return kind, source
    what = "is no folder" if not path.is_dir() else f"is no {wanted or 'known'} dataset"
    places = ", ".join(MODEL_FOLDERS[:-1])
    raise SceneError(
        f"{path} {what}.\n"
        f"  Looked for cameras.bin or .txt in {places} and the folder itself (COLMAP),\n"
        "  transforms.json (nerfstudio, instant-ngp), transforms_train.json (Blender).\n"
        "  Give the folder that holds one of them."
    )


def _read(kind: Format, root: Path, source: Path, finder: PhotoFinder) -> Dataset:
    """The dataset in the format that was recognised."""
    if kind == "transforms":
        return read_transforms(source, finder.size_of, allow_outside=finder.allow_outside)
    if kind == "blender":
        if not source.is_file():
            raise SceneError(f"there is no {source}.\n  A Blender dataset needs it: restore it.")
        if finder.images is not None:
            raise SceneError(
                f"images={finder.images!r} cannot replace the folders of a Blender dataset, "
                f"which has one a split ({root}).\n  Ask for a smaller resolution instead."
            )
        return read_blender(root, finder.size_of)
    model = read_colmap(source)
    photos = root / (finder.images or PHOTO_FOLDER)
    used = {image.camera_id for image in model.images}
    lenses = {key: lens_of(model.cameras[key], source, photos) for key in sorted(used)}
    shots = [
        Shot(i.name, lenses[i.camera_id], i.world_to_camera, PHOTO_FOLDER, i.name)
        for i in model.images
    ]
    return Dataset(format=kind, root=root, source=source, shots=tuple(shots), points=model.points)


@dataclass(frozen=True, kw_only=True)
class _Build:
    """The options that decide how a photo becomes a view's picture."""

    dataset: Dataset
    finder: PhotoFinder
    scale: int | Fraction | None
    background: Rgb | None
    alpha: bool
    """Whether an alpha channel says which pixels count."""

    def place(self, paths: dict[str, Path | None]) -> dict[str, tuple[Camera, Photo | None]]:
        """Camera and photo of each shot in use, in order of names."""
        shots = {shot.name: shot for shot in self.dataset.shots if shot.name in paths}
        at_size: dict[str, Lens] = {}
        others: dict[Lens, Lens] = {}
        for name, path in paths.items():
            if path is not None:
                at_size[name] = fitted_lens(shots[name], path, self.finder.header(path))
                others.setdefault(shots[name].lens, at_size[name])
        for name in paths:
            if name not in at_size:
                at_size[name] = guessed_lens(shots[name], others)
        return {name: self._view(shots[name], at_size[name], paths[name]) for name in paths}

    def _view(self, shot: Shot, lens: Lens, path: Path | None) -> tuple[Camera, Photo | None]:
        try:
            camera = shot.camera(lens)
        except InputError as error:
            kind = SceneError if not isinstance(error, LensError) else LensError
            raise kind(f"{shot.name!r} in {self.dataset.source}: {error}") from None
        whole = camera.width, camera.height
        size = self._final_size(whole)
        camera = camera if size == whole else camera.resized(*size)
        if path is None:
            return camera, None
        mask = self.finder.mask(shot, self.dataset.source)
        if mask is not None:
            self._check_mask(mask, path, lens)
        alpha = self.alpha and mask is None and self.finder.header(path).has_alpha
        return camera, Photo(path, lens, size, self.background, mask, alpha)

    def _final_size(self, size: tuple[int, int]) -> tuple[int, int]:
        if self.scale is None:
            return size
        if isinstance(self.scale, int):
            return reduced_size(size, min(1.0, self.scale / max(size)))
        return reduced_size(size, float(self.scale))

    def _check_mask(self, mask: Path, photo: Path, lens: Lens) -> None:
        size = self.finder.header(mask).size
        if not same_shape(lens.size, size):
            raise ImageError(
                f"the mask {mask} has {size[0]} x {size[1]} pixels, its photo {photo.name} "
                f"{lens.width} x {lens.height}.\n"
                "  A mask must be its photo's size or a uniform rescale of it."
            )

    def lenses(self, paths: dict[str, Path | None]) -> dict[str, int]:
        """How many photos each kind of lens took."""
        kinds = (shot.lens.kind for shot in self.dataset.shots if shot.name in paths)
        return dict(Counter(k if k == "pinhole" else f"{k}, undistorted" for k in kinds))


def parse_scale(resolution: int | str | None) -> int | Fraction | None:
    """A long side in pixels, or a factor of at most one."""
    if resolution is None:
        return None
    try:
        if isinstance(resolution, str) and "/" in resolution:
            scale = Fraction(resolution)
            valid = 0 < scale <= 1
        else:
            scale = int(resolution)
            valid = scale >= 1 and not isinstance(resolution, (bool, float))
    except (ValueError, ZeroDivisionError):
        valid, scale = False, None
    if not valid:
        raise SceneError(
            f"resolution {resolution!r} is neither a long side in pixels, such as 1600, "
            "nor a factor of at most one, such as '1/2'"
        )
    return scale


def _background(background: Rgb | str | None, kind: Format) -> Rgb | None:
    """A colour below transparent pixels; white for Blender unless told."""
    if background is None:
        return COLOURS["white"] if kind == "blender" else None
    if isinstance(background, str):
        background = COLOURS.get(background, ())  # type: ignore[assignment]
    try:
        r, g, b = (float(value) for value in background)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        r = g = b = -1.0
    if not all(0 <= value <= 1 for value in (r, g, b)):
        raise SceneError(
            "background must be 'white', 'black' or three numbers between 0 and 1, "
            f"got {background!r}"
        )
    return r, g, b


class Photographs:
    """A capture that has been read, before its split is decided."""

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        self._path, self._options = path, options
        self._usual = load_scene(path, holdout="auto", **options)
        self.names = tuple(self._usual.cameras)
        self.own_split = self._usual.details.get("split") == OWN_SPLIT

    def scene(self, holdout: Holdout = "auto") -> Scene:
        """The scene with this split."""
        return load_scene(self._path, holdout=holdout, **self._options)


def read_photographs(path: str | os.PathLike[str], **options: Any) -> Photographs:
    """Read a capture."""
    return Photographs(path, **options)
