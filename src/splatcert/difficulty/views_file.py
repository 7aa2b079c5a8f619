# SPDX-License-Identifier: Apache-2.0
"""Per-view numbers of a scene, from which the predictor learns and every table is made.

`views.npz` stores one row per view instead of its pixels. It is an ordinary NumPy archive
without Python objects, with a schema version and the hashes of its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.levels import Level, parse_level
from splatcert.conformal.maps import TENTHS
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.errors import InputError, listed
from splatcert.storage.arrays import read_archive, unusable, write_archive

FORMAT = "splatcert views"
VERSION = 1
MOST = 1e30
"""Largest oracle factor; sums of squares of larger ones would overflow."""
Views = Literal["training", "held-out"]
NUMBERS = ("descriptors", "oracle", "field_means", "pixels", "psnr")
OPTIONAL = ("shares", "tenths")
"""Arrays that older files do not have."""
COUNTS = ("pixels", "tenths")
"""Arrays of integers."""
SHARES = 3
"""Number of shares of pixels that training hardly showed."""


class ViewTableError(InputError):
    """Per-view arrays that do not fit together."""


@dataclass(frozen=True, eq=False)
class ViewTable:
    """Per-view arrays, one row per view."""

    names: tuple[str, ...]
    descriptors: NDArray[np.float64]
    """z_v, [n, features]."""
    oracle: NDArray[np.float64]
    """a*_v at b~(lambda_b), [n, betas, lambdas]; NaN where labels were not used.

    At lambda_b = 0 the shape is flat, and this is the score of the constant scale.
    """
    field_means: NDArray[np.float64]
    """Mean of the rendered residual field b, [n]."""
    pixels: NDArray[np.int64]
    """Pixels that count, [n]."""
    psnr: NDArray[np.float64]
    """[n]; NaN where unknown."""
    shares: NDArray[np.float64] | None = None
    """Shares of pixels that training hardly showed, [n, 3]; None in older files."""
    tenths: NDArray[np.int64] | None = None
    """Pixels, and pixels inside their certified boxes, by tenths of a view's half-width,
    [n, 10, 2]; zero without a label, None in older files."""

    def __post_init__(self) -> None:
        for name in self.stored:
            dtype = np.int64 if name in COUNTS else np.float64
            values = np.array(getattr(self, name), dtype=dtype)
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def stored(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return (*NUMBERS, *(name for name in OPTIONAL if getattr(self, name) is not None))

    def coverage_by_tenth(self, names: Iterable[str]) -> NDArray[np.float64] | None:
        """Share of these views' pixels inside, by tenths of the half-width, [10]; NaN for none."""
        if self.tenths is None:
            return None
        pixels, inside = self.tenths[self.rows_of(names)].sum(axis=0).T
        return np.where(pixels > 0, inside / np.maximum(pixels, 1), np.nan)

    def rows_of(self, names: Iterable[str]) -> list[int]:
        """Rows of these views, in time linear in both."""
        at = {name: row for row, name in enumerate(self.names)}
        wanted = list(names)
        if missing := [name for name in wanted if name not in at]:
            raise ViewTableError(f"there are no rows of {listed(missing)}")
        return [at[name] for name in wanted]

    @classmethod
    def of(cls, views: Sequence[Any], betas: int) -> ViewTable:
        """Rows from a certificate's view records; NaN where there is no label."""
        unknown = np.full((betas, len(LAMBDA_GRID)), np.nan)
        oracle = [getattr(view, "oracle", None) for view in views]
        pixels = [getattr(view, "pixels", None) for view in views]
        tenths = [getattr(view, "tenths", None) for view in views]
        empty = np.zeros((TENTHS, 2), dtype=np.int64)
        return cls(
            names=tuple(view.name for view in views),
            descriptors=np.array([view.descriptor for view in views]),
            oracle=np.array([unknown if one is None else one for one in oracle]),
            field_means=np.array([view.field_mean for view in views]),
            pixels=np.array(
                [
                    view.camera.width * view.camera.height if count is None else count
                    for view, count in zip(views, pixels, strict=True)
                ]
            ),
            psnr=np.array([getattr(view, "psnr", np.nan) for view in views]),
            shares=_shares(views),
            tenths=None
            if all(one is None for one in tenths)
            else np.array([empty if one is None else one for one in tenths]),
        )


@dataclass(frozen=True, eq=False)
class SceneViews:
    """The training views (described out of fold) and held-out views of one scene."""

    scene: str
    schema: tuple[str, ...]
    """Names of the descriptor's features, in order."""
    betas: tuple[Fraction, ...]
    training: ViewTable
    held_out: ViewTable
    hashes: Mapping[str, str]
    """SHA-256 of splats, photos and poses, by name."""

    def __post_init__(self) -> None:
        for role, table in self._tables():
            self._check(role, table)

    def views(self, which: Views) -> ViewTable:
        """The table of one group of views."""
        return self.training if which == "training" else self.held_out

    def oracle(self, which: Views, beta: Level, lambda_b: Fraction | float) -> NDArray[np.float64]:
        """a*_v of one group of views at one beta and one shape, [n]."""
        level = parse_level(beta, "beta")
        if level not in self.betas:
            known = ", ".join(map(str, self.betas))
            raise ViewTableError(f"scene {self.scene} has no targets at beta = {level}: {known}")
        if lambda_b not in LAMBDA_GRID:
            known = ", ".join(map(str, LAMBDA_GRID))
            raise ViewTableError(f"there are no targets at lambda_b = {lambda_b}, only at {known}")
        at = self.betas.index(level), LAMBDA_GRID.index(Fraction(lambda_b))
        return self.views(which).oracle[:, at[0], at[1]]

    def save(self, path: Path) -> None:
        """Write the archive, never a partial one; equal contents give equal bytes."""
        arrays: dict[str, Any] = {
            "format": np.array(FORMAT),
            "version": np.array(VERSION),
            "scene": np.array(self.scene),
            "schema": np.array(self.schema, dtype=np.str_),
            "betas": np.array([str(beta) for beta in self.betas], dtype=np.str_),
            "lambdas": np.array([str(value) for value in LAMBDA_GRID], dtype=np.str_),
            "hash_names": np.array(sorted(self.hashes), dtype=np.str_),
            "hashes": np.array([self.hashes[n] for n in sorted(self.hashes)], dtype=np.str_),
        }
        for role, table in self._tables():
            arrays[f"{role}_names"] = np.array(table.names, dtype=np.str_)
            arrays |= {f"{role}_{name}": getattr(table, name) for name in table.stored}
        write_archive(path, arrays)

    @classmethod
    def load(cls, path: Path) -> SceneViews:
        """Read an archive that `save` wrote; no Python object is ever loaded."""
        arrays = read_archive(path, "views")
        try:
            if str(arrays["format"]) != FORMAT or int(arrays["version"]) != VERSION:
                found = f"{arrays['format']} {arrays['version']}"
                raise ViewTableError(f"it is {found!r}, this program reads '{FORMAT} {VERSION}'")
            return _scene_views(arrays)
        except (KeyError, ValueError, TypeError) as error:
            raise unusable(path, "views", error) from error

    def _tables(self) -> tuple[tuple[str, ViewTable], tuple[str, ViewTable]]:
        return ("training", self.training), ("held_out", self.held_out)

    def _check(self, role: str, table: ViewTable) -> None:
        n = len(table)
        expected = {
            "descriptors": (n, len(self.schema)),
            "oracle": (n, len(self.betas), len(LAMBDA_GRID)),
            "field_means": (n,),
            "pixels": (n,),
            "psnr": (n,),
            "shares": (n, SHARES),
            "tenths": (n, TENTHS, 2),
        }
        for name in table.stored:
            found, shape = getattr(table, name).shape, expected[name]
            if found != shape:
                raise ViewTableError(
                    f"{role} views of scene {self.scene}: {name} is {found}, expected {shape}"
                )
        counts = np.zeros((n, TENTHS, 2)) if table.tenths is None else table.tenths
        if (counts < 0).any() or (counts[..., 1] > counts[..., 0]).any():
            raise ViewTableError(
                f"{role} views of scene {self.scene}: covered pixels exceed pixels"
            )
        if len(set(table.names)) != n:
            raise ViewTableError(f"{role} views of scene {self.scene}: names are not unique")
        if not np.isfinite(table.descriptors).all():
            raise ViewTableError(f"{role} views of scene {self.scene}: a descriptor is not finite")
        large = np.isfinite(table.oracle) & (table.oracle > MOST)
        impossible = (table.oracle < 0) | large
        if impossible.any() or (table.pixels < 1).any():
            raise ViewTableError(
                f"{role} views of scene {self.scene}: oracle factors must be 0 to {MOST:g}, "
                "and every view must have pixels"
            )


def _shares(views: Sequence[Any]) -> NDArray[np.float64] | None:
    rows = [view.shares for view in views]
    return None if any(row is None for row in rows) else np.array(rows).reshape(-1, SHARES)


def _scene_views(arrays: Mapping[str, NDArray[Any]]) -> SceneViews:
    lambdas, ours = _texts(arrays["lambdas"]), tuple(str(value) for value in LAMBDA_GRID)
    if lambdas != ours:
        raise ViewTableError(f"its shrinkages are not {', '.join(ours)}")
    keys, values = _texts(arrays["hash_names"]), _texts(arrays["hashes"])
    return SceneViews(
        scene=str(arrays["scene"]),
        schema=_texts(arrays["schema"]),
        betas=tuple(parse_level(text, "beta") for text in _texts(arrays["betas"])),
        training=_table(arrays, "training"),
        held_out=_table(arrays, "held_out"),
        hashes=dict(zip(keys, values, strict=True)),
    )


def _table(arrays: Mapping[str, NDArray[Any]], role: str) -> ViewTable:
    numbers = {name: arrays[f"{role}_{name}"] for name in NUMBERS}
    numbers |= {name: arrays[key] for name in OPTIONAL if (key := f"{role}_{name}") in arrays}
    return ViewTable(names=_texts(arrays[f"{role}_names"]), **numbers)


def _texts(array: NDArray[Any]) -> tuple[str, ...]:
    if array.ndim != 1 or array.dtype.kind != "U":
        raise ViewTableError(f"a list of names is expected, got {array.dtype} {array.shape}")
    return tuple(str(text) for text in array)
