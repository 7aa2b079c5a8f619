# SPDX-License-Identifier: Apache-2.0
"""A certificate together with its model, wherever that lies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.certificate.hashes import splats_hash
from splatcert.certificate.record import Record
from splatcert.certificate.store import MAIN, folder_of, load_certificate, read_content
from splatcert.raster.placement import load_for_scene
from splatcert.scene.load import load_scene
from splatcert.scene.scene import Scene
from splatcert.splats.files import load_splats
from splatcert.splats.gaussians import Splats
from splatcert.splats.transform import FrameError
from splatcert.storage.whole import require_regular_file, write_text_whole

PLACES = "places.json"
"""Beside a certificate: where capture and model were. A hint that nothing rests on: a model is
recognised by its content."""
LONGEST_PLACES = 1 << 16
"""Bytes that are read of it."""


def is_certificate(path: Path) -> bool:
    """Whether a path is a certificate's folder, or its main file."""
    return (path / MAIN).is_file() or (path.name == MAIN and path.is_file())


def remember_places(certificate: Path, data: Path, model: Path) -> None:
    """Write down where a certificate's inputs are, seen from its folder.

    Relative, so that a project can be moved as a whole and no path of a machine is passed on.
    """
    places = {"data": data, "model": model}
    relative = {name: os.path.relpath(path, certificate) for name, path in places.items()}
    write_text_whole(certificate / PLACES, json.dumps(relative, indent=1) + "\n")


def remembered(certificate: Path, what: str) -> Path | None:
    """The place of the `data` or `model` of a certificate, if it is known and still there."""
    try:
        with require_regular_file(certificate / PLACES).open("rb") as file:
            place = json.loads(file.read(LONGEST_PLACES))[what]
        path = Path(os.path.normpath(certificate / place))
        return path if path.exists() else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def open_certificate(
    path: Path, model: Path | None = None, data: Path | None = None
) -> Certificate:
    """A certificate that can predict: with the model given, or the one it was made from.

    A model in a trainer's own frame is brought to the capture's, for which the capture is
    needed.
    """
    folder = folder_of(path)
    _, record = read_content(folder)
    place = model or remembered(folder, "model")
    if place is None:
        raise CertificateError(
            f"{folder} does not hold its model, and it is not where it was.\n"
            f"  Give the one that was certified ({record.model.gaussians:,} Gaussians): "
            "--model MODEL."
        )
    return load_certificate(
        folder, _certified_splats(place, record, data or remembered(folder, "data"))
    )


def _certified_splats(model: Path, record: Record, data: Path | None) -> Splats:
    """The splats of a model; in the capture's frame if they are not the certified ones as such."""
    try:
        splats = load_splats(model)
        if data is None or splats_hash(splats) == record.model.splats:
            return splats
    except FrameError:
        if data is None:
            raise CertificateError(
                f"{model} is in its trainer's own frame, which is rebuilt from the capture.\n"
                "  Give it as well: --data DATA."
            ) from None
    return load_certified_splats(record, model, load_certified_scene(record, data))


def load_certified_scene(record: Record, data: Path, images: str | None = None) -> Scene:
    """The capture at its certified size, split and masks; `images` may name another folder."""
    held_out = tuple(view.name for view in (*record.calibration, *record.unlabelled))
    loaded = record.scene.loaded
    options: dict[str, Any] = {"holdout": held_out, "images": images}
    if loaded is not None:
        options |= {
            "images": images or loaded.images,
            "resolution": loaded.resolution,
            "background": loaded.background,
            "masks": False if loaded.masks == "off" else loaded.masks,
            "format": record.scene.format,
        }
    return load_scene(data, **options)


def load_certified_splats(record: Record, model: Path, scene: Scene | None = None) -> Splats:
    """The model; in the capture's frame if the capture is there to find it by."""
    if scene is None:
        return load_splats(model)
    renderer = record.renderer
    placed = load_for_scene(model, scene, background=renderer.background, backend=renderer.backend)
    return placed.splats
