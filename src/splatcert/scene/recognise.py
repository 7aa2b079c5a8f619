# SPDX-License-Identifier: Apache-2.0
"""Which format a dataset has, and its content as one type."""

from __future__ import annotations

from pathlib import Path

from splatcert.errors import InputError, listed
from splatcert.scene.added_photos import read_added
from splatcert.scene.dataset import Dataset, Format
from splatcert.scene.photo_files import PhotoFinder
from splatcert.scene.readers.colmap import PHOTO_FOLDER, ColmapError, read_colmap, shots_of
from splatcert.scene.readers.colmap_models import (
    MODEL_FOLDERS,
    Sparse,
    find_model,
    numbered_models,
)
from splatcert.scene.readers.transforms import read_blender, read_transforms


class SceneError(InputError):
    """A folder or an option that cannot be loaded as a scene."""


def recognise(
    path: Path, wanted: Format | None = None, sparse: Sparse = None
) -> tuple[Format, Path]:
    """The format of a dataset, and the file or folder that describes it.

    COLMAP beside photos goes first, then `transforms.json`, then Blender; the
    COLMAP model that nerfstudio keeps in `colmap/sparse/0` comes last, because
    its `transforms.json` is what nerfstudio itself reads. A number for `sparse`
    asks for that COLMAP model, whatever else is there.
    """
    if not path.exists():
        raise SceneError(f"{path}: no such file or folder.\n  Pass the folder of a capture.")
    if isinstance(sparse, int):
        wanted = "colmap"
    if path.is_file() and path.suffix == ".json" and wanted != "colmap":
        if path.name.startswith("transforms_") and wanted in (None, "blender"):
            return "blender", path.parent / "transforms_train.json"
        return "transforms", path
    model = find_model(path, sparse) if path.is_dir() else None
    found: list[tuple[Format, Path | None]] = [
        ("colmap", None if model and model.is_relative_to(path / "colmap") else model),
        ("transforms", path / "transforms.json"),
        ("blender", path / "transforms_train.json"),
        ("colmap", model),
    ]
    for kind, source in found:
        if wanted in (None, kind) and source is not None and (source == model or source.is_file()):
            return kind, source
    if inside := numbered_models(path):
        raise ColmapError(
            f"{path} holds {len(inside)} COLMAP model{'s' * (len(inside) > 1)} "
            f"({listed(model.name for model in inside)}), but no photos.\n"
            "  Pass the capture's folder, which contains images and sparse."
        )
    what = f"not a {wanted} dataset" if wanted else "not a dataset splatcert can read"
    what = what if path.is_dir() else "not a folder"
    places = ", ".join(MODEL_FOLDERS[:-1])
    raise SceneError(
        f"{path} is {what}.\n"
        f"  Looked for cameras.bin or .txt in {places} and the folder itself (COLMAP),\n"
        "  transforms.json (nerfstudio, instant-ngp), transforms_train.json (Blender).\n"
        "  Pass the folder that contains one of them."
    )


def read_dataset(kind: Format, root: Path, source: Path, finder: PhotoFinder) -> Dataset:
    """The dataset in the format that was recognised."""
    if kind == "transforms":
        return read_transforms(source, finder.size_of, allow_outside=finder.allow_outside)
    if kind == "blender":
        if not source.is_file():
            raise SceneError(f"{source} is missing.\n  A Blender dataset needs it: restore it.")
        if finder.images is not None:
            raise SceneError(
                f"--images {finder.images} cannot replace the folders of a Blender dataset, "
                f"which has one per split ({root}).\n  Pass --resolution to read smaller photos."
            )
        return read_blender(root, finder.size_of)
    model = read_colmap(source)
    shots = tuple(shots_of(model, root / (finder.images or PHOTO_FOLDER)))
    added = read_added(root, {shot.name for shot in shots}, root / PHOTO_FOLDER)
    more = {} if added is None else {"added": added.names, "frame": added.frame}
    return Dataset(
        format=kind, root=root, source=source, shots=tuple(shots), points=model.points, **more
    )
