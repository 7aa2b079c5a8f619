# SPDX-License-Identifier: Apache-2.0
"""A scene: training views with labels, held-out views without, and sparse points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import torch
from torch import Tensor

from splatcert.camera import Camera, extent_of
from splatcert.difficulty.holdout_check import HoldoutCheck, check_holdout
from splatcert.errors import InputError, listed
from splatcert.scene.dataset import SparsePoints, WorldFrame
from splatcert.scene.registered import Registered
from splatcert.scene.roles import HeldOut, PixelSource, QueryView, TrainingView
from splatcert.shown import Shown

Item = TypeVar("Item")


class PictureError(InputError):
    """A picture that does not belong to its camera."""


@dataclass(frozen=True, eq=False)
class TensorPixels:
    """Pixels already in memory: synthetic scenes, other people's loaders."""

    pixels: Tensor
    """[H, W, 3], float32 in [0, 1]."""
    counted: Tensor | None = None
    """[H, W], bool; None where all pixels count."""
    path: None = None
    """They come from no file."""

    @property
    def has_mask(self) -> bool:
        """Whether some pixels may not count."""
        return self.counted is not None

    def image(self) -> Tensor:
        """[H, W, 3]."""
        return self.pixels

    def mask(self) -> Tensor:
        """[H, W], bool."""
        if self.counted is None:
            return torch.ones(self.pixels.shape[:2], dtype=torch.bool)
        return self.counted


class TrainingViews(Sequence[TrainingView]):
    """Training views in order of their names, found by position or name."""

    __slots__ = ("_by_name", "_views")

    def __init__(self, views: Sequence[TrainingView]) -> None:
        self._views = tuple(views)
        self._by_name = {view.name: view for view in self._views}

    def __len__(self) -> int:
        return len(self._views)

    def __iter__(self) -> Iterator[TrainingView]:
        return iter(self._views)

    @overload
    def __getitem__(self, index: int | str) -> TrainingView: ...
    @overload
    def __getitem__(self, index: slice) -> TrainingViews: ...
    def __getitem__(self, index: int | str | slice) -> TrainingView | TrainingViews:
        """By position, by name, or some of them."""
        if isinstance(index, str):
            return self._by_name[index]
        return TrainingViews(self._views[index]) if isinstance(index, slice) else self._views[index]

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(view.name for view in self._views)

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """Cameras in order."""
        return tuple(view.camera for view in self._views)


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene(Shown):
    """Training and held-out views of one capture, in the world frame and units of the dataset."""

    path: Path
    format: str
    """colmap, transforms, blender or memory."""
    training: TrainingViews
    held_out: HeldOut
    points: SparsePoints | None = None
    frame: WorldFrame = field(default_factory=WorldFrame)
    """How the dataset's coordinates came from the original data's."""
    registered: Registered | None = None
    """How many photos have a pose; None for pictures in memory."""
    added: tuple[str, ...] = ()
    """Photos added after the poses of the others had been computed; trainers ran before that."""
    details: Mapping[str, object] = field(default_factory=dict)
    """How it was loaded: source, split, lenses, images, masks, background, cache."""

    @classmethod
    def from_arrays(
        cls,
        images: Mapping[str, Any] | Sequence[Any],
        cameras: Mapping[str, Camera] | Sequence[Camera],
        *,
        held_out: Sequence[str] | Sequence[int],
        masks: Mapping[str, Any] | None = None,
    ) -> Scene:
        """A scene of pictures in memory, without a file.

        Pictures are [H, W, 3]: uint8 from 0 to 255 or floats from 0 to 1, NumPy or torch.
        Lists of pictures and cameras get the names view_0000, view_0001, and so on, and
        `held_out` may number them. The model must not have seen the held-out views.
        """
        pictures, poses = _named(images), _named(cameras)
        if extra := sorted(pictures.keys() - poses.keys()):
            raise PictureError(f"{len(extra)} pictures have no camera: {listed(extra)}")
        hidden = [VIEW_NAME.format(one) if isinstance(one, int) else one for one in held_out]
        if unknown := sorted(set(hidden) - poses.keys()):
            raise PictureError(f"{len(unknown)} held-out views have no camera: {listed(unknown)}")
        return scene_from_tensors(
            poses,
            {name: _colours(name, picture) for name, picture in pictures.items()},
            held_out=hidden,
            masks=masks and {n: torch.as_tensor(m, dtype=torch.bool) for n, m in masks.items()},
        )

    @cached_property
    def cameras(self) -> dict[str, Camera]:
        """Cameras of training and held-out views by name, sorted by name."""
        views: list[TrainingView | QueryView] = [*self.training, *self.held_out]
        return {view.name: view.camera for view in sorted(views, key=lambda view: view.name)}

    @cached_property
    def extent(self) -> float:
        """1.1 times the largest distance of a training camera from their mean.

        Zero where all training cameras share one centre, as in a panorama: such
        a capture has no depth.
        """
        return extent_of(self.training.cameras)

    @cached_property
    def holdout_check(self) -> HoldoutCheck | None:
        """Whether held-out photos are a fair sample, by cameras alone; None if nobody can say."""
        held_out = [self.held_out[name].camera for name in self.held_out.with_photo]
        return check_holdout(held_out, self.training.cameras)

    def describe(self) -> dict[str, object]:
        """What is known about the scene, in plain values, for people and JSON."""
        sizes = Counter(f"{c.width}x{c.height}" for c in self.cameras.values())
        points: dict[str, object] | None = None
        if self.points is not None:
            error = self.points.error
            known = error[error >= 0] if error is not None else np.empty(0)
            points = {
                "count": len(self.points),
                "mean reprojection error": float(known.mean()) if len(known) else None,
                "tracks": self.points.has_tracks,
            }
        return {
            "path": str(self.path),
            "format": self.format,
            "photos": len(self.cameras),
            "training": len(self.training),
            "held out": len(self.held_out),
            "held-out photos missing": len(self.held_out) - len(self.held_out.with_photo),
            "sizes": dict(sizes.most_common()),
            "points": points,
            "extent": self.extent,
            "registered": None if self.registered is None else asdict(self.registered),
            **self.details,
        }

    def summary(self) -> str:
        """`describe` as aligned lines."""
        lines = {key: _words(value) for key, value in self.describe().items()}
        width = max(map(len, lines))
        return "\n".join(f"{key:<{width}}  {text}" for key, text in lines.items())


def _words(value: object) -> str:
    """A value as a person would write it."""
    if isinstance(value, Mapping):
        shown = [f"{_words(key)}: {_words(item)}" for key, item in list(value.items())[:6]]
        return ", ".join(shown) + (f" and {len(value) - 6} more" if len(value) > 6 else "")
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


VIEW_NAME = "view_{:04d}"


def _named(values: Mapping[str, Item] | Sequence[Item]) -> dict[str, Item]:
    """The same by name; values in a list are numbered."""
    if isinstance(values, Mapping):
        return dict(values)
    return {VIEW_NAME.format(number): value for number, value in enumerate(values)}


def _colours(name: str, picture: Any) -> Tensor:
    """[H, W, 3], float32 in [0, 1]."""
    pixels = torch.as_tensor(picture)
    if pixels.ndim != 3 or pixels.shape[-1] != 3:
        raise PictureError(
            f"picture {name!r} has shape {list(pixels.shape)}, expected height, width, 3.\n"
            "  Convert it to RGB."
        )
    if pixels.dtype == torch.uint8:
        return pixels.float() / 255
    if not pixels.is_floating_point() or not ((pixels >= 0) & (pixels <= 1)).all():
        raise PictureError(
            f"picture {name!r} ({pixels.dtype}) must be uint8, or floats from 0 to 1.\n"
            "  Divide it by its largest possible value."
        )
    return pixels.float()


def scene_from_tensors(
    cameras: Mapping[str, Camera],
    images: Mapping[str, Tensor],
    *,
    held_out: Sequence[str] = (),
    masks: Mapping[str, Tensor] | None = None,
    points: SparsePoints | None = None,
    path: Path | str = "memory",
) -> Scene:
    """A scene of pictures already in memory; held-out ones may lack a picture."""
    masks = masks or {}
    for name, image in images.items():
        camera = cameras[name]
        if tuple(image.shape) != (camera.height, camera.width, 3):
            raise PictureError(
                f"picture {name!r} has shape {list(image.shape)}, its camera "
                f"{camera.height} x {camera.width} pixels"
            )
    if absent := sorted(cameras.keys() - images.keys() - set(held_out)):
        raise PictureError(f"{len(absent)} training views have no picture: {listed(absent)}")
    sources: dict[str, PixelSource] = {
        name: TensorPixels(image, masks.get(name)) for name, image in images.items()
    }
    hidden = set(held_out)
    names = sorted(cameras)
    training = [TrainingView(n, cameras[n], sources[n]) for n in names if n not in hidden]
    queries = [QueryView(name, cameras[name]) for name in names if name in hidden]
    return Scene(
        path=Path(path),
        format="memory",
        training=TrainingViews(training),
        held_out=HeldOut(queries, {n: s for n, s in sources.items() if n in hidden}),
        points=points,
    )
