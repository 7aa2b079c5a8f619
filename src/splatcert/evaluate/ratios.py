# SPDX-License-Identifier: Apache-2.0
"""How many pixels of a view any multiplier covers, from counts instead of pixels.

Pooled calibration and the distribution of within-view coverage need all ratios r / s. A
ratio is rounded up to the next of 256 steps to an octave and counted. Pooling the rounded
ratios is again conformal, with a threshold at most 0.3% above that of the exact ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.artefacts import ArtefactError
from splatcert.evaluate.archive import UNUSABLE, read_archive, unusable, write_archive
from splatcert.scale import LAMBDA_GRID

FORMAT = "splatcert ratios"
VERSION = 1

STEPS = 256
LOWEST, HIGHEST = -12, 10
"""Octaves: from 1/4096 to 1024. Ratios outside count at the ends."""
BINS = (HIGHEST - LOWEST) * STEPS + 2
EDGES = np.append(2.0 ** (LOWEST + np.arange(BINS - 1) / STEPS), np.inf)
"""Upper edge of each bin, [BINS]; a ratio x is in the first bin with x <= edge."""
MAX_BYTES = 1 << 31
"""Largest archive that is unpacked; a view takes a quarter of a megabyte in each map."""

Counts = NDArray[np.uint32]


def count_ratios(ratios: ArrayLike) -> Counts:
    """Pixels of one view in each bin, [BINS]."""
    bins = np.searchsorted(EDGES, np.asarray(ratios, dtype=np.float64).ravel(), side="left")
    return np.bincount(bins, minlength=BINS).astype(np.uint32)


@dataclass(frozen=True, eq=False)
class RatioCounts:
    """Counts by name of the map, [V, lambdas, BINS] each, for the study of the same key."""

    study: str
    maps: Mapping[str, Counts]

    def save(self, path: Path) -> None:
        """Write the archive, whole or not at all."""
        head = {"format": np.array(f"{FORMAT} {VERSION}"), "study": np.array(self.study)}
        arrays = {f"map.{name}": counts for name, counts in sorted(self.maps.items())}
        write_archive(path, head | arrays, compressed=True)

    @classmethod
    def load(cls, path: Path) -> RatioCounts:
        """Read an archive that `save` wrote."""
        arrays = read_archive(path, "ratios", MAX_BYTES)
        try:
            if str(arrays["format"]) != f"{FORMAT} {VERSION}":
                raise ArtefactError(f"it is {str(arrays['format'])!r}")
            maps = {n.removeprefix("map."): a for n, a in arrays.items() if n.startswith("map.")}
            shape = len(LAMBDA_GRID), BINS
            if any(a.dtype.kind != "u" or a.shape[1:] != shape for a in maps.values()):
                raise ArtefactError(f"counts must be whole, [V, {shape[0]}, {BINS}]")
            if any(not a.any(axis=2).all() for a in maps.values()):
                raise ArtefactError("a view has no pixels")
            return cls(str(arrays["study"]), maps)
        except UNUSABLE as error:
            raise unusable(path, "ratios", error) from error
