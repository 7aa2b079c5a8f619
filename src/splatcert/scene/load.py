# SPDX-License-Identifier: Apache-2.0
"""From a folder to a scene: recognise the format, find the photos, build the views."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from splatcert.camera import Camera
from splatcert.errors import InputError
from splatcert.scene.dataset import Dataset, Format, Shot
from splatcert.scene.lens import Lens, LensError
from splatcert.scene.photo_files import PhotoFinder, find_photos, fitted_lens, guessed_lens
from splatcert.scene.pixels import (
    DEFAULT_CACHE_BYTES,
    Photo,
    PixelCache,
    Rgb,
    reduced_size,
)
from splatcert.scene.readers.colmap_models import Sparse
from splatcert.scene.recognise import SceneError, read_dataset, recognise
from splatcert.scene.registered import Registered, count_registered, without_missing
from splatcert.scene.roles import HeldOut, QueryView, TrainingView
from splatcert.scene.scene import Scene, TrainingViews
from splatcert.scene.split import Holdout, split

COLOURS: dict[str, Rgb] = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0)}


def load_scene(path: str | os.PathLike[str], *, holdout: Holdout = "auto", **options: Any) -> Scene:
    """Load a capture: COLMAP, `transforms.json` (nerfstudio, instant-ngp) or Blender.

    Args:
        path: Folder of the dataset, or a `transforms.json`.
        holdout: n for every n-th photo of the sorted names (index % n == 0); "random8" for one
            random photo of every 8; "block5of20" for 5 consecutive photos at a random place in
            every 20; the path of a text file of names; a tuple of names; "format" for the
            dataset's own split; None or 0 for none. "auto" is the dataset's own split if its
            format has one, else 8.
        options: As for `read_photographs`, such as images, resolution, background and masks.
    """
    return read_photographs(path, **options).scene(holdout)


def read_photographs(
    path: str | os.PathLike[str],
    *,
    images: str | None = None,
    resolution: int | str | None = None,
    background: Rgb | str | None = None,
    masks: str | Literal[False] | None = None,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    format: Format | None = None,
    allow_outside: bool = False,
    sparse: Sparse = None,
    skip_missing: bool = False,
) -> Photographs:
    """Read a capture once, to apply one or several split rules to it.

    Args:
        path: Folder of the dataset, or a `transforms.json`.
        images: Folder that takes the place of the dataset's photo folder, such as `images_4`.
        resolution: Largest long side in pixels, or a factor such as "1/2". Never enlarges.
        background: Colour below transparent pixels: "white", "black" or three numbers in
            [0, 1]. Default: white for Blender; elsewhere alpha says which pixels count.
        masks: Folder of masks, "alpha" for the alpha channel, False for none. Default: the
            masks that the dataset names, else the folder `masks` if there is one.
        cache_bytes: Memory for decoded pixels.
        format: Format to read if a folder holds several. Default: the first that is recognised.
        allow_outside: Let the dataset name files outside its folder.
        sparse: N for the COLMAP model `sparse/N`. Default: the one with the most photos.
        skip_missing: Skip poses whose photo is missing, as if the dataset did not name them.
    """
    kind, source = recognise(Path(path), format, sparse)
    root = Path(path) if Path(path).is_dir() else source.parent
    alpha = masks == "alpha"
    finder = PhotoFinder(root, images, False if alpha else masks, allow_outside)
    dataset = read_dataset(kind, root, source, finder)
    registered = count_registered(dataset, finder)
    if skip_missing:
        dataset, registered = without_missing(dataset, finder, registered)
    return Photographs(
        dataset=dataset,
        finder=finder,
        registered=registered,
        skip_missing=skip_missing,
        masks=masks,
        resolution=resolution,
        scale=parse_scale(resolution),
        background=_background(background, kind),
        alpha=alpha or (masks is None and kind != "blender" and background is None),
        cache=PixelCache(cache_bytes),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Photographs:
    """A capture that has been read, before anything decides which photos are held out."""

    dataset: Dataset
    finder: PhotoFinder
    """Finds photos and masks, and remembers their headers."""
    registered: Registered
    """How many photos have a pose, and by which COLMAP model."""
    skip_missing: bool
    """As asked for."""
    masks: str | Literal[False] | None
    """As asked for."""
    resolution: int | str | None
    """As asked for."""
    scale: int | Fraction | None
    """The resolution, parsed."""
    background: Rgb | None
    alpha: bool
    """Whether an alpha channel says which pixels count."""
    cache: PixelCache

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all photos, sorted."""
        return tuple(shot.name for shot in self.dataset.shots)

    @property
    def own_split(self) -> bool:
        """Whether the format brings a split of its own."""
        return self.dataset.split is not None

    def scene(self, holdout: Holdout = "auto") -> Scene:
        """The scene under one split rule; photo headers are read at most once for all rules."""
        parts, rule = split(self.dataset, holdout)
        placed = self._place(find_photos(self.dataset, parts, self.finder))
        photos = {name: photo for name, (_, photo) in placed.items() if photo}
        with_mask = sum(photo.has_mask for photo in photos.values())
        if isinstance(self.masks, str) and not with_mask:
            raise SceneError(
                f"masks {self.masks!r} were requested, but none of {len(photos)} photos has one.\n"
                f"  In {self.finder.root}.\n"
                "  A mask has the name of its photo, with or without .png added."
            )
        training, queries = [], []
        for name, (camera, _) in placed.items():
            if parts[name] == "training":
                training.append(TrainingView(name, camera, photos[name]))
            else:
                queries.append(QueryView(name, camera))
        return Scene(
            path=self.finder.root,
            format=self.dataset.format,
            training=TrainingViews(training),
            held_out=HeldOut(
                queries, {q.name: photos[q.name] for q in queries if q.name in photos}
            ),
            points=self.dataset.points,
            frame=self.dataset.frame,
            registered=self.registered,
            added=self.dataset.added,
            details={
                "source": str(self.dataset.source),
                "split": rule,
                "unused": sum(part == "unused" for part in parts.values()),
                "lenses": self._lenses(placed),
                "images": self.finder.images,
                "sparse": self.registered.model,
                "skip missing": self.skip_missing,
                "masks": with_mask,
                "masks asked for": self.masks,
                "background": self.background,
                "resolution": self.resolution,
                "cache bytes": self.cache.limit,
            },
        )

    def _place(self, paths: dict[str, Path | None]) -> dict[str, tuple[Camera, Photo | None]]:
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
            self.finder.check_mask(mask, path, lens)
        alpha = self.alpha and mask is None and self.finder.header(path).has_alpha
        return camera, Photo(path, lens, size, self.background, mask, alpha, self.cache)

    def _final_size(self, size: tuple[int, int]) -> tuple[int, int]:
        if self.scale is None:
            return size
        if isinstance(self.scale, int):
            return reduced_size(size, min(1.0, self.scale / max(size)))
        return reduced_size(size, float(self.scale))

    def _lenses(self, used: Collection[str]) -> dict[str, int]:
        """How many photos each kind of lens took."""
        kinds = (shot.lens.kind for shot in self.dataset.shots if shot.name in used)
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
    """The colour below transparent pixels; by default white for Blender, none elsewhere."""
    if background is None:
        return COLOURS["white"] if kind == "blender" else None
    colour = COLOURS.get(background, ()) if isinstance(background, str) else background
    try:
        r, g, b = (float(value) for value in colour)
    except (TypeError, ValueError):
        r = g = b = -1.0
    if not all(0 <= value <= 1 for value in (r, g, b)):
        raise SceneError(
            "background must be 'white', 'black' or three numbers between 0 and 1, "
            f"got {background!r}"
        )
    return r, g, b
