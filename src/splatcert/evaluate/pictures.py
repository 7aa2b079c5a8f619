# SPDX-License-Identifier: Apache-2.0
"""Maps of a few views for the figures: what was rendered, never what was photographed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError
from splatcert.evaluate.archive import UNUSABLE, read_archive, unusable, write_archive


class PictureError(InputError):
    """Maps that do not belong together."""


@dataclass(frozen=True, eq=False)
class ViewPicture:
    """One held-out view. Boxes are q a_v b~; the multiplier is the table side's to choose."""

    study: str
    """Key of the study."""
    name: str
    """Of the view."""
    render: NDArray[np.uint8]
    """[H, W, 3]."""
    field: NDArray[np.float32]
    """Rendered residual field b, [H, W]; shapes at any shrinkage follow from it."""
    residual: NDArray[np.float32]
    """|photo - render|, largest over RGB, [H, W]; NaN where a pixel does not count.

    Only what a box misses is ever drawn: a residual map would show the photograph.
    """

    def __post_init__(self) -> None:
        size = self.render.shape[:2]
        kinds = (self.render.dtype == np.uint8, *(a.dtype.kind == "f" for a in self.maps))
        shapes = (self.render.shape == (*size, 3), *(a.shape == size for a in self.maps))
        if not (all(kinds) and all(shapes) and self.render.size and np.isfinite(self.field).all()):
            raise PictureError("render, field and residual are no maps of one view")
        if not np.isfinite(self.residual).any():
            raise PictureError("no pixel of it counts")

    @property
    def maps(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Those of one number a pixel."""
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
