# SPDX-License-Identifier: Apache-2.0
"""A certificate's capture and model, loaded as they were when it was made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from splatcert.certificate.record import Record
    from splatcert.scene.scene import Scene
    from splatcert.splats.gaussians import Splats


def load_certified_scene(record: Record, data: Path, images: str | None = None) -> Scene:
    """The capture at its certified size, split and masks; `images` may name another folder."""
    from splatcert.scene.load import load_scene

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
        from splatcert.splats.files import load_splats

        return load_splats(model)
    from splatcert.commands.frames import load_for_scene

    renderer = record.renderer
    placed = load_for_scene(model, scene, background=renderer.background, backend=renderer.backend)
    return placed.splats
