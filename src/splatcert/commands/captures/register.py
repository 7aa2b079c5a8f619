# SPDX-License-Identifier: Apache-2.0
"""`splatcert register`: new photographs for a capture whose model has seen every photo."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from splatcert.commands import require_threads, unset
from splatcert.console import say, show_table, stages
from splatcert.errors import InputError, listed

if TYPE_CHECKING:
    from splatcert.registration.register import Outcome, Registration

COLUMNS = ("photo", "camera", "points", "inliers", "error", "spread", "halves", "verdict")
CAMERA = (
    "Intrinsics of the new photographs: those of a camera of the capture (shared), or estimated "
    "(own). auto: shared if picture size and EXIF focal length agree with the capture's, else own."
)
ENOUGH = 9
"""Fewest calibration photos for certify's default, 1/10."""


class NothingRegisteredError(InputError):
    """No new photo has a pose that is certain enough."""


@dataclass(frozen=True, kw_only=True)
class Register:
    """Add new photographs to a capture, to calibrate a model that has seen all its photos.

    The poses and points of the capture stay untouched. Photographs whose pose is uncertain are
    refused by name. certify then calibrates on exactly the new photographs. Safe to interrupt:
    run the same command again to resume. Requires the extra splatcert[register].
    """

    interrupted: ClassVar[str] = (
        "Features and matches are kept. Run the same command again to resume."
    )

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Capture: COLMAP, transforms.json or Blender folder. Nothing in it is changed."""
    photos: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PHOTOS")]
    """Folder of new photographs of the same place."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="DATA2")]
    """Folder to write the capture with the new photographs to, as COLMAP."""
    camera: Annotated[Literal["auto", "shared", "own"], tyro.conf.arg(help=CAMERA)] = "auto"
    images: Annotated[str | None, unset("FOLDER")] = None
    """Folder of the capture's photographs, such as images_4. Default: the capture's own."""
    sparse: Annotated[int | None, unset("N")] = None
    """COLMAP model to read, sparse/N. Default: the one with the most photos."""
    skip_missing: bool = False
    """Leave poses out whose photo is missing."""
    threads: int = 0
    """Threads; 0 means all cores."""
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        require_threads(self.threads)

    def run(self) -> None:
        """Register, print the table, and name what comes next."""
        from splatcert.registration.register import register

        with stages() as on:
            result = register(
                self.data,
                self.photos,
                self.output,
                reading={
                    "images": self.images,
                    "sparse": self.sparse,
                    "skip_missing": self.skip_missing,
                },
                camera=self.camera,
                threads=self.threads,
                on=on,
            )
        if self.json:
            print(json.dumps(facts(result, self.output), indent=2))
        else:
            show_table(COLUMNS, [cells(one) for one in result.outcomes], numbers=COLUMNS[2:7])
            self._close(result)
        if not result.accepted:
            raise NothingRegisteredError(
                f"none of the {len(result.outcomes)} photos in {self.photos} could be registered "
                f"in {self.data}.\n"
                "  They must show parts of the place that several photos of the capture show, in\n"
                "  similar light. The table gives the reason for each."
            )

    def _close(self, result: Registration) -> None:
        kept, all_of_them = result.accepted, len(result.outcomes)
        say("Registered", f"{len(kept)} of {all_of_them} photos, from {result.landmarks:,} points")
        if refused := [one.photo.name for one in result.outcomes if one.doubts]:
            say("Refused", f"{listed(refused, 20)}: not part of the new capture")
        if not kept:
            return
        say("Wrote", f"{self.output}; the poses and points of {self.data} are unchanged in it")
        if len(kept) < ENOUGH:
            say(
                "Too few",
                f"certify requires {ENOUGH} at its default alpha of 1/10: take more photos",
            )
        sizes = {max(lens.size) for lens in result.known.lenses}
        larger = max(max(one.photo.optics.size) for one in kept) > max(sizes)
        more = f" --resolution {max(sizes)}" if larger else ""
        # COLMAP's own poses are copied byte for byte, with those whose photo is missing.
        if result.known.photographs.registered.skipped and result.known.is_colmap:
            more += " --skip-missing"
        say("Next", f"splatcert certify {shlex.quote(str(self.output))} MODEL -o CERT{more}")


def cells(one: Outcome) -> tuple[str, ...]:
    """A row of the table."""
    found, camera = one.located, "own" if one.photo.shared is None else "shared"
    told = ("-",) * 4
    if found.world_to_camera is not None:
        apart = f"{found.turn:.2f}°" if math.isfinite(found.turn) else "-"
        told = (str(found.inliers), f"{found.error:.2f} px", f"{found.cells}/16", apart)
    verdict = f"refused: {one.doubts[0]}" if one.doubts else "registered"
    return one.photo.name, camera, str(found.points), *told, verdict


def facts(result: Registration, folder: Path) -> dict[str, Any]:
    """The same for scripts."""
    from splatcert.storage.schema import to_plain

    extent = max(result.known.extent, 1e-12)
    rows = [
        {
            "name": one.photo.name,
            "sha256": one.photo.sha256,
            "camera": "own" if one.photo.shared is None else "shared",
            "registered": not one.doubts,
            "doubts": list(one.doubts),
            "points": one.located.points,
            "inliers": one.located.inliers,
            "error": one.located.error,
            "spread": one.located.cells,
            "halves_degrees": one.located.turn,
            "halves_extent": one.located.shift / extent,
        }
        for one in result.outcomes
    ]
    counts = Counter("registered" if row["registered"] else "refused" for row in rows)
    return {
        "kind": "registration",
        "path": str(folder) if counts["registered"] else None,
        "known": len(result.known.shots),
        "landmarks": result.landmarks,
        "registered": counts["registered"],
        "refused": counts["refused"],
        "photos": to_plain(rows),
    }
