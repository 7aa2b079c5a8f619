# SPDX-License-Identifier: Apache-2.0
"""Stored ratios and images of a study: how many pixels a multiplier covers, without the pixels.

Pooled calibration and the distribution of within-view coverage require all ratios r / s. Each
ratio is rounded up to the next of 256 steps per octave and counted. Pooling rounded ratios is
still conformal, with a threshold at most 0.3% above the exact one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.maps import TENTHS
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.errors import InputError
from splatcert.storage.arrays import UNUSABLE, read_archive, unusable, write_archive
from splatcert.storage.whole import ArtefactError

FORMAT = "splatcert ratios"
VERSION = 2
STEPS = 256
LOWEST, HIGHEST = -12, 10
"""Octaves: from 1/4096 to 1024. Ratios outside are counted at the ends."""
BINS = (HIGHEST - LOWEST) * STEPS + 2
EDGES = np.append(2.0 ** (LOWEST + np.arange(BINS - 1) / STEPS), np.inf)
"""Upper edge of each bin, [BINS]; a ratio x is in the first bin with x <= edge."""
COARSER = 8
TENTH_EDGES = np.append(EDGES[:-1:COARSER], np.inf)
"""Upper edges of the coarser bins, 32 steps per octave, in which tenths of a view are counted."""
MAX_BYTES = 1 << 31
"""Largest archive that is unpacked; a view takes a quarter of a megabyte per map."""
Counts = NDArray[np.uint32]


CELLS = 10
"""Leading bits of a fraction that name a cell: too narrow to hold more than one edge."""
SHIFT = 52 - CELLS


def _cell_bins() -> tuple[int, NDArray[np.uint16]]:
    """The first cell of interest, and the bin of the lower end of each cell from there on."""
    first = int(EDGES[:1].view(np.int64)[0] >> SHIFT)
    last = int(EDGES[-2:-1].view(np.int64)[0] >> SHIFT) + 1
    low = (np.arange(first, last + 1, dtype=np.int64) << SHIFT).view(np.float64)
    return first, np.searchsorted(EDGES, low, side="left").astype(np.uint16)


FIRST_CELL, CELL_BINS = _cell_bins()


def bins_of(ratios: ArrayLike) -> NDArray[np.intp]:
    """The bin of each ratio, the first whose edge is not below it; ratios are not negative.

    Bits of positive numbers are in the order of the numbers. So the leading bits name a cell, its
    lower end has a known bin, and one comparison decides between that and the next.
    """
    values = np.ascontiguousarray(ratios, dtype=np.float64).ravel() + 0.0  # no negative zero
    cells = (values.view(np.int64) >> SHIFT) - FIRST_CELL
    bins = CELL_BINS[np.clip(cells, 0, len(CELL_BINS) - 1)].astype(np.intp)
    bins += values > EDGES[bins]
    bins[cells < 0] = 0
    return bins


def count_ratios(ratios: ArrayLike) -> Counts:
    """Pixels of one view in each bin, [BINS]."""
    return np.bincount(bins_of(ratios), minlength=BINS).astype(np.uint32)


def count_tenths(ratios: ArrayLike, tenths: NDArray[np.intp]) -> Counts:
    """Pixels of one view in each tenth and coarser bin, [10, coarser bins]."""
    size = len(TENTH_EDGES)
    places = tenths * size + (bins_of(ratios) + COARSER - 1) // COARSER
    return np.bincount(places, minlength=TENTHS * size).reshape(TENTHS, size).astype(np.uint32)


@dataclass(frozen=True, eq=False)
class RatioCounts:
    """Counts by name of the map, [V, lambdas, BINS] each, for the study of the same key."""

    study: str
    maps: Mapping[str, Counts]
    tenths: Mapping[str, Counts] = field(default_factory=dict)
    """Counts by tenth of the half-width, [V, lambdas, 10, coarser bins] each."""

    def save(self, path: Path) -> None:
        """Write the archive, whole or not at all."""
        head = {"format": np.array(f"{FORMAT} {VERSION}"), "study": np.array(self.study)}
        arrays = {f"map.{name}": _planes(counts) for name, counts in sorted(self.maps.items())}
        arrays |= {f"tenth.{name}": _planes(counts) for name, counts in sorted(self.tenths.items())}
        write_archive(path, head | arrays, compressed=True)

    @classmethod
    def load(cls, path: Path) -> RatioCounts:
        """Read an archive that `save` wrote."""
        arrays = read_archive(path, "ratios", MAX_BYTES)
        try:
            if str(arrays["format"]) != f"{FORMAT} {VERSION}":
                raise ArtefactError(f"it is {str(arrays['format'])!r}")
            maps, tenths = (
                {n.removeprefix(kind): _joined(a) for n, a in arrays.items() if n.startswith(kind)}
                for kind in ("map.", "tenth.")
            )
            lambdas = len(LAMBDA_GRID)
            for found, shape in (
                (maps, (lambdas, BINS)),
                (tenths, (lambdas, TENTHS, len(TENTH_EDGES))),
            ):
                if any(a.dtype.kind != "u" or a.shape[1:] != shape for a in found.values()):
                    raise ArtefactError(f"counts must be integers, [V, {str(shape)[1:-1]}]")
            if any(not a.any(axis=2).all() for a in maps.values()):
                raise ArtefactError("a view has no pixels")
            return cls(str(arrays["study"]), maps, tenths)
        except UNUSABLE as error:
            raise unusable(path, "ratios", error) from error


def _planes(counts: Counts) -> NDArray[np.uint8]:
    """Bytes of equal weight side by side, [4, ...]: most are zero, and compress to a third less."""
    split = np.ascontiguousarray(counts, dtype="<u4").view(np.uint8).reshape(*counts.shape, 4)
    return np.ascontiguousarray(np.moveaxis(split, -1, 0))


def _joined(planes: NDArray[Any]) -> Counts:
    """The counts that `_planes` split."""
    if planes.dtype != np.uint8 or planes.ndim < 3 or planes.shape[0] != 4:
        raise ArtefactError(f"counts must be bytes, [4, V, ...], got {planes.dtype} {planes.shape}")
    whole = np.ascontiguousarray(np.moveaxis(planes, 0, -1))
    return whole.view("<u4").reshape(planes.shape[1:]).astype(np.uint32)


class PictureError(InputError):
    """Maps that are not of the same view."""


@dataclass(frozen=True, eq=False)
class ViewPicture:
    """One held-out view, for figures. Boxes are q a_v b~; the figure chooses the multiplier."""

    study: str
    """Key of the study."""
    name: str
    """Name of the view."""
    render: NDArray[np.uint8]
    """[H, W, 3]."""
    field: NDArray[np.float32]
    """Rendered residual field b, [H, W], which gives the shape at any shrinkage."""
    residual: NDArray[np.float32]
    """|photo - render|, largest over RGB, [H, W]; NaN where a pixel does not count.

    Only misses are ever drawn, because a residual map would show the photograph.
    """

    def __post_init__(self) -> None:
        size = self.render.shape[:2]
        kinds = (self.render.dtype == np.uint8, *(a.dtype.kind == "f" for a in self.maps))
        shapes = (self.render.shape == (*size, 3), *(a.shape == size for a in self.maps))
        if not (all(kinds) and all(shapes) and self.render.size and np.isfinite(self.field).all()):
            raise PictureError("render, field and residual are not maps of one view")
        if not np.isfinite(self.residual).any():
            raise PictureError("none of its pixels count")

    @property
    def maps(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The maps with one number per pixel."""
        return self.field, self.residual

    def save(self, path: Path) -> None:
        """Write the archive, whole or not at all."""
        arrays = {entry.name: np.asarray(getattr(self, entry.name)) for entry in fields(self)}
        write_archive(path, arrays, compressed=True)

    @classmethod
    def load(cls, path: Path) -> ViewPicture:
        """Read an archive that `save` wrote."""
        arrays = read_archive(path, "a picture")
        try:
            maps = {name: arrays[name] for name in ("render", "field", "residual")}
            return cls(study=str(arrays["study"]), name=str(arrays["name"]), **maps)
        except UNUSABLE as error:
            raise unusable(path, "a picture", error) from error
